"""The searches of the eighth to twelfth protocols: for each row and column some fixed lies and a whole audit.

    python reports/audit/search.py FOLDER 9 [ROW ...]

Several of these may run at once. First every row meets the first lie; then always the row whose worst case is the
highest so far meets its next part: the lies that were the worst before, the other fixed lies, the audit. From the ninth
on the audits wait for the fixed lies. Results are CSV files in the folder, one per part, with the columns of
worst-cases.csv; a new folder begins with the parts that are in that file.
"""

from __future__ import annotations

import csv
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from byzmesh.config.overrides import read_config
from byzmesh.studies.audit.audit import FRESH, SEEDS, audit
from byzmesh.studies.audit.halving import LAST
from byzmesh.studies.audit.lies import FAMILIES
from byzmesh.studies.audit.trials import QUIET, Budget, Search, Trial

HERE = Path(__file__).parent
COLUMNS = {
    "8": ("erdos-dirichlet", "tripartite-shards"),
    "9": ("king-dirichlet", "bipartite-dirichlet"),
    "10": ("clebsch-dirichlet", "paley-shards"),
    "11": ("shrikhande-dirichlet", "icosahedron-shards"),
    "12": ("rook-dirichlet", "coring-dirichlet"),
    "before": (
        *("scale-free-shards", "dumbbell-dirichlet", "regular-dirichlet", "small-world-shards"),
        *("circulant-dirichlet", "hypercube-shards", "erdos-dirichlet", "tripartite-shards"),
    ),
}
"""Those of a protocol; "before": of the fifth to eighth, for a row that came later."""
ROUNDS = 400
PARTS = (
    (("target", 500, "common"),),
    (
        ("riding, ascent", 1.0, "common"),
        ("far ascent", 1e4, "normal"),
        ("pull-back, start", None, "common"),
        ("box", 1.0, "common"),
    ),
    (
        ("far ascent", 1e4, "common"),
        ("ascent", 10, "common"),
        ("target", 500, "zero"),
        ("riding, ascent", 1.0, "zero"),
        ("ascent", 10, "zero"),
        ("target", 500, "normal"),
        ("box", 1.0, "zero"),
    ),
)
"""The fixed lies, in the order in which rows meet them."""
SHORTER: tuple[tuple[tuple[str, float | None], ...], ...] = (
    (("target", 500),),
    (("riding, ascent", 1.0), ("far ascent", 1e4), ("box", 1.0)),
    (("pull-back, start", None), ("ascent", 10)),
)
"""Those since the eleventh, from each of its starts."""
STARTS = {"11": ("zero", "common"), "12": ("zero",)}
"""Of a protocol that does not try all of them."""
AUDIT = len(PARTS)
"""The last part of a search."""
MOMENTUM = ", momentum 0.99"
AROUND = {name: {"name": name, "inner": "CooMed"} for name in ("NNM", "ARC", "bucketing")} | {
    "WeightedNNM": {"name": "WeightedNNM", "inner": "WeightedCooMed"}
}
ROWS = [
    *(rule + more for rule in ("TriMean", "CooMed", "Leash", "MeaMed") for more in ("", MOMENTUM)),
    *("IOS", "CC", "DRSA", "GeoMed", "FABA", "SCC", "WeiMean", "Krum"),
    *("Reprieve", "IOS" + MOMENTUM, "CC" + MOMENTUM, "Tether", "CS+", "SimRew", "ByRDiE"),
    *(
        "SMEA",
        "CAF",
        "MDA",
        "MultiKrum",
        "NNA",
        "LazyIOS",
        "GTS",
        "ClippedGossip",
        "RTC",
        "BALANCE",
        "GeoMed" + MOMENTUM,
    ),
    *("UBAR", "Zeno", "bucketing", "ARC", "NNM", "Bulyan", "Phocas", "WeightedTriMean", "WeightedCooMed"),
]
"""The rules that coordinates decide and Leash, the paper's, the library's later rules, and last the slow ones."""
PAPER = (
    *("Leash", "TriMean", "CooMed", "DRSA", "IOS", "FABA", "CC", "SCC", "GeoMed", "Reprieve"),
    *("WeiMean", "Krum", "SimRew"),
)
NINTH = (
    *PAPER,
    *(row for row in ROWS if row not in PAPER and MOMENTUM not in row),
    *("WeightedGeoMed", "WeightedKrum", "WeightedNNM", "NoComm"),
)
"""In the ninth: our rules Leash and Reprieve, the paper's, and then all others."""
TENTH = ("Leash", "DRSA", "TriMean", "CooMed", "MeaMed", "WeightedTriMean", "UBAR", "IOS", "Reprieve", "CC")
LIGHT = ("TriMean, momentum 0.9",)
"""In the extension of the tenth, on its columns and on those of the ninth."""
ELEVENTH = (
    *("Leash", *LIGHT, LIGHT[0] + ", f max"),
    *("TriMean", "DRSA", "CooMed", "IOS", "FABA", "CC", "SCC", "GeoMed", "Reprieve", "WeiMean"),
)
ROWS_OF: dict[str, Sequence[str]] = {
    "8": ROWS,
    "9": (*NINTH, *LIGHT),
    "10": (*TENTH, *LIGHT),
    "11": ELEVENTH,
    "12": ELEVENTH,
    "before": LIGHT,
}
"""By protocol."""


def starts_of(column: str) -> tuple[str, ...]:
    """The starts of a column's protocol; none: all."""
    return next((starts for protocol, starts in STARTS.items() if column in COLUMNS[protocol]), ())


def lies_of(column: str) -> tuple[tuple[tuple[str, float | None, str], ...], ...]:
    """The fixed lies of a column's protocol, by part."""
    starts = starts_of(column)
    return tuple(tuple((*lie, start) for lie in part for start in starts) for part in SHORTER) if starts else PARTS


def config_of(column: str, row: str) -> tuple[dict[str, Any], Any]:
    """The column's config with the row's momentum, and the row's rule."""
    written = read_config(HERE / f"{column}.yaml")
    written["rounds"] = ROUNDS
    row, _, f = row.partition(", f ")
    if f:
        written["f"] = f
    rule, _, beta = row.partition(", momentum ")
    if beta:
        written["local"] = {"momentum": "exponential", "beta": float(beta)}
    return written, AROUND.get(rule, rule)


def fixed_lies(written: dict[str, Any], row: str, rule: Any, store: Path, lies: Sequence[Any]) -> list[Trial]:
    """Fixed lies with fresh seeds, evaluated at their end."""
    search = Search(
        written=written,
        rules={row: rule},
        starts=("zero", "common", "normal"),
        own_start="zero",
        rounds=ROUNDS,
        liars=len(written["network"]["byzantine"]),
        store=store,
        budget=Budget(runs=1),
        compute={"workers": 0, "dask": None},
    )
    asked = [
        search.trial(row, FAMILIES[family].at(family, strength), start, seed, ROUNDS, LAST)
        for family, strength, start in lies
        for seed in range(FRESH, FRESH + SEEDS)
    ]
    found = search.run([trial for trial in asked if trial is not None])
    if len(found) < len(asked):  # failed, or ended from outside
        failed = search.failures.get(row, ())
        raise RuntimeError(
            "; ".join(failed) or f"{len(found)} of {len(asked)} runs: the rule does not go with the column"
        )
    return found


def audited(written: dict[str, Any], rule: Any, store: Path, starts: Sequence[str]) -> Sequence[Trial]:
    """An audit with its defaults, of some starts or all."""
    return audit(written, rules=[rule], starts=starts, rounds=ROUNDS, store=store, workers=0).verdicts[0].trials


def run(folder: Path, column: str, row: str, part: int) -> None:
    """One part of a row's search in a column, written to a file of its own."""
    written, rule = config_of(column, row)
    name, store = f"{column} {row}", folder / f"{column} {row}.db"
    try:
        if part == AUDIT:
            found = audited(written, rule, store, starts_of(column))
        else:
            found = fixed_lies(written, row, rule, store, lies_of(column)[part])
    except Exception as error:  # a rule that cannot run here: said, and the next one
        (folder / f"{name}.failed").write_text(f"{type(error).__name__}: {error}\n")
        return
    lines = [[column, row, t.stage, t.lie.name, t.start, t.seed, t.rounds, round(t.value, 4)] for t in found]
    with (folder / f"{name} {part}.part").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(lines)
    os.replace(folder / f"{name} {part}.part", folder / f"{name} {part}.csv")


def worst(folder: Path, column: str, row: str) -> float:
    """The lowest mean over the seeds of the lies of full length so far."""
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    for part in range(AUDIT + 1):
        path = folder / f"{column} {row} {part}.csv"
        if path.exists():
            for _, _, stage, lie, start, _, _, value in csv.reader(path.open(encoding="utf-8")):
                if int(stage) == LAST and lie != QUIET.name:
                    values[lie, start].append(float(value))
    return min(sum(seeds) / len(seeds) for seeds in values.values())


def taken(folder: Path, column: str, row: str, part: int) -> bool:
    """Whether this process is the first to ask."""
    try:
        (folder / f"{column} {row} {part}.taken").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def part_of(run: dict[str, str], audited: bool) -> int:
    """Which part of its row's search a committed run is of; the last runs of an audit may repeat a fixed lie."""
    name = f"{run['lie']} {run['start']}"
    for number, lies in enumerate(lies_of(run["column"])):
        if int(run["stage"]) == LAST and name in [
            f"{FAMILIES[lie].at(lie, value).name} {at}" for lie, value, at in lies
        ]:
            return number
    return AUDIT if audited else sys.exit(f"a run of no part: {run}")


def begin(folder: Path, columns: Sequence[str], rows: Sequence[str]) -> None:
    """Make the folder, with the parts of these columns and rows that are committed."""
    folder.mkdir(parents=True)
    parts: dict[str, list[list[str]]] = defaultdict(list)
    with (HERE / "worst-cases.csv").open(encoding="utf-8") as file:
        runs = [run for run in csv.DictReader(file) if run["column"] in columns and run["row"] in rows]
    audited = {(run["column"], run["row"]) for run in runs if int(run["stage"]) != LAST}
    for run in runs:
        where = run["column"], run["row"]
        parts[f"{' '.join(where)} {part_of(run, where in audited)}"].append(list(run.values()))
    for name, lines in parts.items():
        part = int(name.rpartition(" ")[2])
        if part != AUDIT and len(lines) < SEEDS * len(lies_of(lines[0][0])[part]):
            continue  # begun: it is run again
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(lines)
        (folder / f"{name}.taken").touch()


def main() -> None:
    """Take the next part that nobody has taken: the first part of every row, then always that of the highest row."""
    folder, protocol, *asked = Path(sys.argv[1]), *sys.argv[2:]
    rows = ROWS_OF[protocol]
    if not folder.exists():
        begin(folder, COLUMNS[protocol], rows)
    both = [(column, row) for row in asked or rows for column in COLUMNS[protocol]]
    for column, row in both:
        if taken(folder, column, row, 0):
            run(folder, column, row, 0)
    while True:
        done = {
            (column, row): sum((folder / f"{column} {row} {part}.csv").exists() for part in range(AUDIT + 1))
            for column, row in both
        }
        able = [one for one, parts in done.items() if 0 < parts <= AUDIT]
        waits = {one: protocol != "8" and done[one] == AUDIT for one in able}
        for column, row in sorted(able, key=lambda one: (waits[one], -worst(folder, *one))):
            part = done[column, row]
            if taken(folder, column, row, part):
                run(folder, column, row, part)
                break
        else:
            return


if __name__ == "__main__":
    main()
