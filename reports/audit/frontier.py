"""The tables of README.md, searches.md and candidates.md, and worst cases beside what is learned of workers apart.

python reports/audit/frontier.py        # writes the tables into these pages, and frontier.png
"""

from __future__ import annotations

import csv
import math
import textwrap
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
FIFTH = {
    "scale-free-shards": "scale-free, four shards of classes",
    "dumbbell-dirichlet": "dumbbell, Dirichlet(0.7)",
}
SIXTH = {
    "regular-dirichlet": "7-regular graph, Dirichlet(0.4)",
    "small-world-shards": "small world, five shards of classes",
}
SEVENTH = {
    "circulant-dirichlet": "ring of 16, six neighbours, Dirichlet(0.6)",
    "hypercube-shards": "hypercube of 16, seven shards of classes",
}
EIGHTH = {
    "erdos-dirichlet": "random graph of 16, Dirichlet(0.35)",
    "tripartite-shards": "three groups of five, eight shards of classes",
}
NINTH = {
    "king-dirichlet": "king's moves on a board of 16, Dirichlet(0.25)",
    "bipartite-dirichlet": "two groups of eight, Dirichlet(1)",
}
TENTH = {
    "clebsch-dirichlet": "Clebsch graph, Dirichlet(0.15)",
    "paley-shards": "Paley graph of 17, nine shards of classes",
}
ELEVENTH = {
    "shrikhande-dirichlet": "Shrikhande graph, Dirichlet(0.18)",
    "icosahedron-shards": "icosahedron, six shards of classes",
}
TWELFTH = {
    "rook-dirichlet": "rook's moves on a board of 4 x 5, Dirichlet(0.12)",
    "coring-dirichlet": "twelve workers, all but two linked, Dirichlet(0.8)",
}
BEFORE = {
    "torus-three-classes": "torus, three shards of classes",
    "geometric-dirichlet": "random geometric graph, Dirichlet(0.5)",
    "two-worlds-shards": "two worlds, six shards of classes",
    "complete-dirichlet": "complete graph, Dirichlet(2)",
}
"""The second and third protocols, in which only IOS was run."""
COLUMNS = BEFORE | FIFTH | SIXTH | SEVENTH | EIGHTH | NINTH | TENTH | ELEVENTH | TWELFTH
SHOWN = ("IOS", "Leash", "DRSA", "TriMean", "TriMean, momentum 0.9", "CooMed", "MeaMed")
"""The columns of the overview: the two profiles, and the rules that are next to them."""
PAPER = {"color": "white", "alpha": 0.8, "pad": 0.5}
"""Behind a label, so that lines do not cross it."""
T = 2.7764451051977987
"""Student's t at 97.5% with four degrees of freedom."""
LATER = EIGHTH | NINTH | TENTH | ELEVENTH | TWELFTH
FIXED = ("target 500", "box 1", "pull-back, start")
MOVING = ("riding, ascent 1", "ascent 10")
"""Fixed lies since the seventh protocol."""
FAR = ("far ascent 10000",)
"""Fixed lies since the eighth protocol."""
PLANNED = {FIXED: 6, FIXED + MOVING: 10, FIXED + MOVING + FAR: 12}
"""Of how many starts and lies these are; the twelfth protocol has one start."""
OF_25 = {
    "Reprieve": "25",
    "IOS": "21",
    "FABA": "19",
    "CC": "17",
    "SCC": "17",
    "Krum": "10 of 20",
    "GeoMed": "7 of 20",
    "SimRew": "0 of 20",
    "Leash": "8",
    **dict.fromkeys(("WeiMean", "TriMean", "CooMed", "DRSA"), "8 of 20"),
    "TriMean, momentum 0.99": "at most 19",
    "CooMed, momentum 0.99": "at most 22",
    "TriMean, momentum 0.9": "8 of 20",
}
"""In how many of the paper's columns it is within a point of the best rule (docs/recommendation.md)."""


def read(name: str) -> list[dict[str, str]]:
    with (HERE / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def interval(values: list[float]) -> str:
    half = T * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return f"{np.mean(values):.1f} ± {half:.1f}"


@dataclass
class Row:
    """A rule in a column: its lies of 400 rounds, (lie, start) -> the values of five seeds, and its short runs."""

    lies: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    short: int = 0
    asked: tuple[str, ...] = FIXED
    planned: int = 6
    """How many fixed lies its protocol has."""

    @property
    def worst(self) -> tuple[tuple[str, str], list[float]]:
        return min(self.lies.items(), key=lambda case: float(np.mean(case[1])))

    @property
    def fixed(self) -> int:
        """How many of the fixed lies of its protocol it met."""
        return sum(lie in self.asked for lie, _ in self.lies)

    @property
    def mark(self) -> str:
        """† for all fixed lies since the eighth protocol and an audit at its defaults, ° if no lie moved."""
        moving = any(lie in MOVING + FAR for lie, _ in self.lies)
        searched = self.fixed == self.planned and self.short >= 160  # from one start an audit has 162
        return "†" if searched and self.asked == FIXED + MOVING + FAR else "" if moving else "°"

    @property
    def met(self) -> str:
        """The same in words, and those of later protocols."""
        later = [
            name
            for name, lies in (("ascent", MOVING), ("far ascent", FAR))
            if lies[0] not in self.asked and any(lie in lies for lie, _ in self.lies)
        ]
        return ", ".join([f"{self.fixed} of {self.planned}", *later])

    def __str__(self) -> str:
        (lie, start), values = self.worst
        short = lie.removeprefix("the config's ")
        for strength in (" 500", " 10000", " 10", " 1", ", start"):
            short = short.removesuffix(strength)
        audited = f", {self.short} short" if self.short else ""
        return f"{interval(values)} ({short}, {start}; {self.met}{audited})"


def searched() -> dict[tuple[str, str], Row]:
    found: dict[tuple[str, str], Row] = defaultdict(Row)
    for run in read("worst-cases.csv"):
        if run["lie"] != "nobody lies":
            row = found[run["column"], run["row"]]
            row.asked = FIXED + MOVING * (run["column"] in SEVENTH | LATER) + FAR * (run["column"] in LATER)
            row.planned = 6 if run["column"] in TWELFTH else PLANNED[row.asked]
            if run["stage"] == "4":
                row.lies[run["lie"], run["start"]].append(float(run["accuracy"]))
            else:
                row.short += 1
    return found


def tolerable() -> dict[str, str]:
    """Rule -> accuracy with f: tolerable if nobody lies, with one class per worker and with Dirichlet(0.3)."""
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for name, more in (("f.csv", ""), ("f-momentum.csv", ", momentum 0.99")):
        for run in read(name):
            rule = "NNM before CooMed" if run["rule"] == "NNM" else run["rule"]
            values[rule + more][run["data"]].append(float(run["accuracy"]))
    return {
        rule: f"{np.mean(data['one class']):.1f} / {np.mean(data['Dirichlet(0.3)']):.1f}"
        for rule, data in values.items()
    }


def honest() -> dict[tuple[str, str], str]:
    """(column, rule) -> accuracy if nobody lies, from zero / from the start that is the worst."""
    values: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in read("honest.csv"):
        values[run["column"], run["rule"]][run["start"]].append(float(run["accuracy"]))
    means = {name: {start: float(np.mean(seeds)) for start, seeds in starts.items()} for name, starts in values.items()}
    return {name: f"{starts['zero']:.1f} / {min(starts.values()):.1f}" for name, starts in means.items()}


def overview() -> list[str]:
    """A line per network: IOS if nobody lies, workers alone, and worst cases with their marks."""
    found, quiet = searched(), honest()
    lines = [f"| network and data | IOS, nobody lies | alone | {' | '.join(SHOWN)} |"]
    lines.append(f"| --- |{' ---: |' * (len(SHOWN) + 2)}")
    for column, title in COLUMNS.items():
        cells = [quiet[column, "IOS"], quiet[column, "NoComm"]]
        for rule in SHOWN:
            row = found.get((column, rule))
            cells.append(f"{interval(row.worst[1])}{row.mark}" if row else "")
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return lines


def table(columns: dict[str, str], *, prices: bool = False) -> list[str]:
    found, price = searched(), tolerable()
    apart = {run["rule"]: f"{float(run['accuracy']):.2f}" for run in read("caution.csv")}

    def key(row: str) -> tuple[float, str]:
        return -sum(float(np.mean(found[column, row].worst[1])) for column in columns if (column, row) in found), row

    heads = ["rule", *(f"worst case, {title}" for title in columns.values()), "of 25"]
    heads += ["f: tolerable", "apart"] * prices
    lines = [f"| {' | '.join(heads)} |", f"| --- |{' ---: |' * (len(heads) - 1)}"]
    for row in sorted({row for column, row in found if column in columns}, key=key):
        cells = [str(found[column, row]) if (column, row) in found else "" for column in columns]
        cells += [OF_25.get(row, ""), *([price.get(row, ""), apart.get(row, "")] if prices else [])]
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return lines


CANDIDATES = ("two-castle, one class", "ER-12, one class", "two-castle, Dirichlet(0.3)")


def candidates(seeds: set[str]) -> list[str]:
    """A line per candidate that met lies with all these seeds: its worst mean, the lie and how many it met."""
    values: dict[str, dict[tuple[str, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in read("candidates.csv"):
        if run["seed"] in seeds and run["lie"] != "nobody lies":
            values[run["row"]][run["column"], run["lie"]].append(float(run["accuracy"]))
    lines = [f"| worst case found, {'one seed' if len(seeds) == 1 else 'three seeds'} | {' | '.join(CANDIDATES)} |"]
    lines.append("| --- | ---: | ---: | ---: |")
    for row, met in values.items():
        cells = []
        for column in CANDIDATES:
            means = {lie: np.mean(runs) for (at, lie), runs in met.items() if at == column and len(runs) == len(seeds)}
            worst = min(means, key=means.__getitem__, default=None)
            cells.append(f"{means[worst]:.1f} ({worst}; {len(means)})" if worst else "")
        if any(cells):
            lines.append(f"| {row} | {' | '.join(cells)} |")
    return lines


def put(name: str, lines: list[str]) -> None:
    """Write a table in the place of the one on that page that has the same head."""
    before, _, rest = (HERE / name).read_text(encoding="utf-8").partition(lines[0])
    after = rest.partition("\n\n")[2]
    text = "\n".join(lines)
    (HERE / name).write_text(f"{before}{text}\n\n{after}", encoding="utf-8")


def figure() -> None:
    """Worst cases of the ninth protocol over what the same rule learns of workers that are apart."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    apart = {run["rule"]: float(run["accuracy"]) for run in read("caution.csv")}
    found = searched()
    panels, axes = plt.subplots(1, 2, figsize=(11, 4.8), sharey=True)
    for axis, (column, title) in zip(axes, NINTH.items(), strict=True):
        points: set[tuple[float, float]] = set()
        groups: dict[tuple[float, float], list[str]] = {}
        for (there, name), row in sorted(found.items()):
            if there == column and name in apart:
                x, values = apart[name], row.worst[1]
                y, half = float(np.mean(values)), T * float(np.std(values, ddof=1)) / math.sqrt(len(values))
                mark, colour = ("o", "#1f5fa8") if row.mark == "†" else ("v", "#9a9a9a")
                axis.errorbar(x, y, half, fmt=mark, color=colour, ms=5, lw=1)
                points.add((x, y))
                near = next((at for at in groups if abs(at[0] - x) < 2.5 and abs(at[1] - y) < 5.0), (x, y))
                groups.setdefault(near, []).append(name)
        for at, names in groups.items():
            axis.annotate(
                textwrap.fill(", ".join(names), 16),
                at,
                textcoords="offset points",
                xytext=(7, 4),
                fontsize=8,
                bbox=PAPER,
            )
        best = sorted(p for p in points if not any(q[0] >= p[0] and q[1] >= p[1] and q != p for q in points))
        axis.step([x for x, _ in best], [y for _, y in best], where="pre", color="#c0392b", lw=1, ls="--")
        axis.set(
            title=title, xlabel="accuracy if nobody lies, three workers alone have three digits (%)", xlim=(60, 97)
        )
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("worst case found (%)")
    axes[0].plot([], [], "o", color="#1f5fa8", label="twelve lies and an audit")
    axes[0].plot([], [], "v", color="#9a9a9a", label="fewer lies: could only fall")
    axes[0].legend(fontsize=8, loc="upper right")
    panels.tight_layout()
    panels.savefig(HERE / "frontier.png", dpi=110)


if __name__ == "__main__":
    put("README.md", overview())
    for columns in (TWELFTH, ELEVENTH, TENTH, NINTH, EIGHTH, SEVENTH, SIXTH, FIFTH):
        put("searches.md", table(columns, prices=columns is FIFTH))
    for seeds in ({"0"}, {"0", "1", "2"}):
        put("candidates.md", candidates(seeds))
    figure()
