"""The 292 published cells of Tables II to VI, and cells from outside of the paper, as package data.

accuracy          percent, two decimals
consensus error   the column "CE" / "DM": one digit, or a bound (`<1e-07`, `>1e-01`)

From outside: IOS on two-castle graphs with 20 honest workers and 2 to 10 liars, from the records that were published
with the official code of the paper.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from byzmesh.errors import DataError

FILES = {
    "table-2": "two-castle_iid.csv",
    "table-3": "two-castle_non-iid.csv",
    "table-4": "octopus_non-iid.csv",
    "table-5": "er_iid.csv",
    "table-6": "er_non-iid.csv",
}
CAPTIONS = {
    "table-2": "Table II: two-castle graph, iid",
    "table-3": "Table III: two-castle graph, non-iid",
    "table-4": "Table IV: octopus graph, non-iid",
    "table-5": "Table V: Erdos-Renyi graph, iid",
    "table-6": "Table VI: Erdos-Renyi graph, non-iid",
}
NON_IID = ("table-3", "table-4", "table-6")
ROUNDS = {table: 150_000 if table == "table-4" else 50_000 for table in FILES}
FACTOR = 5.0
"""Two consensus errors agree within this factor: the published one has a single digit and comes from one seed."""


@dataclass(frozen=True)
class ConsensusError:
    """A published consensus error: `side` is `<` or `>` if only a bound was printed, else empty.

    >>> ConsensusError.parse("<1e-07"), str(ConsensusError.parse("4e-06"))
    (ConsensusError(value=1e-07, side='<'), '4e-06')
    """

    value: float
    side: str = ""

    @classmethod
    def parse(cls, text: str) -> ConsensusError:
        """Read the text of a cell."""
        side = text[:1] if text[:1] in ("<", ">") else ""
        try:
            return cls(float(text[len(side) :]), side)
        except ValueError:
            raise DataError(f"consensus error {text!r} is not a number, optionally after < or >") from None

    def __str__(self) -> str:
        return f"{self.side}{self.value:.0e}"

    def agrees(self, ours: float) -> bool:
        """Whether ours is within a factor of 5, or on the right side of the bound.

        >>> ConsensusError(4e-06).agrees(9e-07), ConsensusError(1e-07, "<").agrees(9e-07)
        (True, False)
        """
        if self.side == "<":
            return ours < self.value
        if self.side == ">":
            return ours > self.value
        return self.value / FACTOR <= ours <= self.value * FACTOR


@dataclass(frozen=True)
class Published:
    """One published cell; `accuracy` in percent."""

    accuracy: float
    consensus_error: ConsensusError


@cache
def published() -> dict[tuple[str, str, str], Published]:
    """All published cells by (table, rule, attack).

    >>> len(published()), published()["table-3", "IOS", "alie"].accuracy
    (292, 82.78)
    """
    cells: dict[tuple[str, str, str], Published] = {}
    for table, name in FILES.items():
        text = files("byzmesh.studies.paper").joinpath("cells_published", name).read_text("utf-8")
        for row in csv.DictReader(text.splitlines()):
            error = ConsensusError.parse(row["consensus_error"])
            cells[table, row["rule"], row["attack"]] = Published(float(row["accuracy_percent"]), error)
    return cells


@dataclass(frozen=True, kw_only=True)
class Outside:
    """A cell from outside of the paper's tables: its graph and liars, and what was published for it."""

    k: int
    byzantine: tuple[int, ...]
    rounds: int
    cell: Published


@cache
def outside() -> dict[tuple[str, str], Outside]:
    """Cells from outside of the paper's tables by (variant, attack).

    >>> len(outside()), outside()["2 liars", "alie"].byzantine
    (25, (14, 18))
    """
    text = files("byzmesh.studies.paper").joinpath("cells_published", "two-castle-20.csv").read_text("utf-8")
    cells: dict[tuple[str, str], Outside] = {}
    for row in csv.DictReader(text.splitlines()):
        told = Published(float(row["accuracy"]), ConsensusError.parse(row["consensus_error"]))
        liars = tuple(int(node) for node in row["byzantine"].split())
        cells[f"{row['liars']} liars", row["attack"]] = Outside(
            k=int(row["k"]), byzantine=liars, rounds=int(row["rounds"]), cell=told
        )
    return cells


def beside(target: str, rule: str, attack: str, variant: str = "") -> Published | None:
    """The published cell with these labels, if there is one.

    >>> beside("table-3", "IOS", "alie").accuracy, beside("outside", "IOS", "alie", "2 liars").accuracy
    (82.78, 89.09)
    """
    if target == "outside":
        known = outside().get((variant, attack))
        return None if known is None else known.cell
    return published().get((target, rule, attack))
