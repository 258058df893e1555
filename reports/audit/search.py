"""The searches of the sixth protocol: for each row and column the six fixed lies and an audit at its full size.

    python reports/audit/search.py FOLDER [ROW ...]

Several of these may run at once: each takes the next row and column that nobody has taken. Results are CSV files in the
folder, one per row and column, with the columns of worst-cases.csv; `frontier.py` reads what is committed of them.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from byzmesh.config.overrides import read_config
from byzmesh.studies.audit import audit
from byzmesh.studies.audit.audit import FRESH, LAST, SEEDS
from byzmesh.studies.audit.halving import Budget, Search, Trial
from byzmesh.studies.audit.lies import FAMILIES

HERE = Path(__file__).parent
COLUMNS = ("regular-dirichlet", "small-world-shards")
ROUNDS = 400
FIXED = (
    ("target", 500, "common"),
    ("box", 1.0, "common"),
    ("pull-back, start", None, "common"),
    ("target", 500, "zero"),
    ("target", 500, "normal"),
    ("box", 1.0, "zero"),
)
MOMENTUM = ", momentum 0.99"
AROUND = {name: {"name": name, "inner": "CooMed"} for name in ("NNM", "ARC", "bucketing")}
BY_COORDINATE = ["TriMean", "CooMed", "MeaMed"]
OF_THE_PAPER = ["IOS", "FABA", "CC", "SCC", "GeoMed", "Krum", "WeiMean"]
LATER = [
    "Leash",
    "Reprieve",
    "Tether",
    "SMEA",
    "CAF",
    "MDA",
    "MultiKrum",
    "NNA",
    "LazyIOS",
    "CS+",
    "GTS",
    "ClippedGossip",
    "RTC",
]
MORE = ["BALANCE", "ARC", "bucketing", "WeightedTriMean", "WeightedCooMed", "ByRDiE", "UBAR", "Bulyan"]
SLOW = ["DRSA", "Phocas", "NNM", "Zeno", "SimRew"]
ROWS = [
    *(name + MOMENTUM for name in BY_COORDINATE),
    *BY_COORDINATE,
    *OF_THE_PAPER,
    *LATER,
    *(name + MOMENTUM for name in ("IOS", "Reprieve", "Leash", "GeoMed", "CC")),
    *MORE,
    *SLOW,
]


def config_of(column: str, row: str) -> tuple[dict[str, Any], Any]:
    """The column's config with the row's momentum, and the row's rule."""
    written, rule = read_config(HERE / f"{column}.yaml"), row.removesuffix(MOMENTUM)
    written["rounds"] = ROUNDS
    if row.endswith(MOMENTUM):
        written["local"] = {"momentum": "exponential", "beta": 0.99}
    return written, AROUND.get(rule, rule)


def fixed_lies(written: dict[str, Any], row: str, rule: Any, store: Path) -> list[Trial]:
    """The six fixed lies with fresh seeds, evaluated at their end."""
    search = Search(
        written=written,
        rules={row: rule},
        starts=("zero", "common", "normal"),
        rounds=ROUNDS,
        store=store,
        budget=Budget(1),
        compute={"workers": 0, "dask": None},
    )
    asked = [
        search.trial(row, FAMILIES[family].at(family, strength), start, seed, ROUNDS, LAST)
        for family, strength, start in FIXED
        for seed in range(FRESH, FRESH + SEEDS)
    ]
    return search.run([trial for trial in asked if trial is not None], 1e9)


def searched(column: str, row: str, store: Path) -> Iterator[Trial]:
    """Every run of a row in a column."""
    written, rule = config_of(column, row)
    yield from fixed_lies(written, row, rule, store)
    found = audit(written, rules=[rule], rounds=ROUNDS, store=store, workers=0)
    yield from found.verdicts[0].trials


def main() -> None:
    """Take what nobody has taken, until nothing is left."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for row in sys.argv[2:] or ROWS:
        for column in COLUMNS:
            name = folder / f"{column} {row}"
            try:
                name.with_name(f"{name.name}.taken").touch(exist_ok=False)
            except FileExistsError:
                continue
            try:
                found = list(searched(column, row, name.with_name(f"{name.name}.db")))
            except Exception as error:  # a rule that cannot run here: said, and the next one
                name.with_name(f"{name.name}.failed").write_text(f"{type(error).__name__}: {error}\n")
                continue
            with name.with_name(f"{name.name}.csv").open("w", encoding="utf-8", newline="") as file:
                write = csv.writer(file)
                for t in found:
                    write.writerow([column, row, t.stage, t.lie.name, t.start, t.seed, t.rounds, round(t.value, 4)])


if __name__ == "__main__":
    main()
