"""The frontiers of README.md: worst cases of the fifth to eighth protocols beside what is learned of workers apart.

python reports/audit/frontier.py        # prints the tables, writes frontier.png
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
FIFTH = {
    "scale-free-shards": "scale-free graph, four shards of classes",
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
T = 2.7764451051977987
"""Student's t at 97.5% with four degrees of freedom."""
FIXED = ("target 500", "box 1", "pull-back, start")
MOVING = ("riding, ascent 1", "ascent 10")
"""Fixed lies since the seventh protocol."""
FAR = ("far ascent 10000",)
"""Fixed lies since the eighth protocol."""
OF_25 = {
    "Reprieve": "25",
    "IOS": "21",
    "FABA": "19",
    "CC": "17",
    "SCC": "17",
    "Krum": "10 of 20",
    "GeoMed": "7 of 20",
    "SimRew": "0 of 20",
    **dict.fromkeys(("WeiMean", "TriMean", "CooMed", "DRSA"), "8 of 20"),
    "TriMean, momentum 0.99": "at most 19",
    "CooMed, momentum 0.99": "at most 22",
}
"""In how many of the paper's columns it is within a point of the best rule (docs/recommendation.md)."""
PLACES = {
    "IOS, momentum 0.99": (6, -7),
    "IOS": (6, 2),
    "FABA": (-28, 0),
    "Tether": (-34, 5),
    "Reprieve": (-42, -8),
    "Krum": (6, -9),
    "SCC": (6, -9),
    "CooMed, momentum 0.99": (-100, 0),
    "TriMean, momentum 0.99": (6, 1),
    "DRSA": (-28, -5),
    "TriMean": (6, -8),
}
"""Where names are, in points from their dots."""


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

    @property
    def worst(self) -> tuple[tuple[str, str], list[float]]:
        return min(self.lies.items(), key=lambda case: float(np.mean(case[1])))

    @property
    def fixed(self) -> int:
        """How many of the fixed lies of its protocol it met."""
        return sum(lie in self.asked for lie, _ in self.lies)

    @property
    def met(self) -> str:
        """The same in words, and those of later protocols."""
        later = [
            name
            for name, lies in (("ascent", MOVING), ("far ascent", FAR))
            if lies[0] not in self.asked and any(lie in lies for lie, _ in self.lies)
        ]
        asked = {FIXED: 6, FIXED + MOVING: 10, FIXED + MOVING + FAR: 12}[self.asked]
        return " and ".join([f"{self.fixed} of {asked}", *later])

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
        if run["column"] in FIFTH | SIXTH | SEVENTH | EIGHTH and run["lie"] != "nobody lies":
            row = found[run["column"], run["row"]]
            row.asked = FIXED + MOVING * (run["column"] in SEVENTH | EIGHTH) + FAR * (run["column"] in EIGHTH)
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


def table(columns: dict[str, str], *, prices: bool) -> None:
    found, price = searched(), tolerable()
    apart = {run["rule"]: f"{float(run['accuracy']):.2f}" for run in read("caution.csv")}

    def key(row: str) -> float:
        return -sum(float(np.mean(found[column, row].worst[1])) for column in columns if (column, row) in found)

    heads = ["rule", *(f"worst case, {title}" for title in columns.values()), "of 25"]
    print(f"\n| {' | '.join(heads + ['f: tolerable', 'apart'] * prices)} |")
    for row in sorted({row for column, row in found if column in columns}, key=key):
        cells = [str(found[column, row]) if (column, row) in found else "" for column in columns]
        cells += [OF_25.get(row, ""), *([price.get(row, ""), apart.get(row, "")] if prices else [])]
        print(f"| {row} | {' | '.join(cells)} |")


def figure() -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    apart = {run["rule"]: float(run["accuracy"]) for run in read("caution.csv")}
    found = searched()
    panels, axes = plt.subplots(1, 2, figsize=(11, 4.8), sharey=True)
    for axis, (column, title) in zip(axes, FIFTH.items(), strict=True):
        points = []
        for (there, name), row in found.items():
            if there == column and name in apart:
                (x, values), full = (apart[name], row.worst[1]), row.fixed == 6
                y, half = float(np.mean(values)), T * float(np.std(values, ddof=1)) / math.sqrt(len(values))
                points.append((x, y))
                mark, colour = ("o", "#1f5fa8") if full else ("v", "#9a9a9a")
                axis.errorbar(x, y, half, fmt=mark, color=colour, ms=5, lw=1)
                shift = PLACES.get(name, (6, 3))
                axis.annotate(name, (x, y), textcoords="offset points", xytext=shift, fontsize=7)
        best = sorted(p for p in points if not any(q[0] >= p[0] and q[1] >= p[1] and q != p for q in points))
        axis.step([x for x, _ in best], [y for _, y in best], where="pre", color="#c0392b", lw=1, ls="--")
        axis.set(title=title, xlabel="accuracy if nobody lies and three workers are apart (%)", xlim=(54, 97))
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("worst case found (%)")
    panels.tight_layout()
    panels.savefig(HERE / "frontier.png", dpi=110)


if __name__ == "__main__":
    table(EIGHTH, prices=False)
    table(SEVENTH, prices=False)
    table(SIXTH, prices=False)
    table(FIFTH, prices=True)
    figure()
