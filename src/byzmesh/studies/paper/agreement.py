"""How well a reproduction agrees with the published cells: the counts, and every cell that does not agree.

A cell's accuracies agree within 0.5 or 1.0 percentage points. What to expect depends on the published value:

    stable       above 80%: the same number
    collapsed    below 60%: the same verdict, that is, ours is below 60% too
    between      the rest: reported, nothing expected

Counted separately: SimRew (its published runs knew who lied) and non-iid DRSA (swings by two points within one run).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from byzmesh.reports.text_table import Grid, GridCell
from byzmesh.studies.paper.published import CAPTIONS, NON_IID, Published, beside
from byzmesh.studies.readings import Reading

STABLE, COLLAPSED = 80.0, 60.0
CLOSE, NEAR = 0.5, 1.0


def is_apart(table: str, rule: str) -> bool:
    """Whether a published cell cannot be compared number by number."""
    return rule == "SimRew" or (rule == "DRSA" and table in NON_IID)


def kind(published_accuracy: float) -> str:
    """`stable`, `collapsed` or `between`.

    >>> kind(91.7), kind(10.0), kind(74.55)
    ('stable', 'collapsed', 'between')
    """
    if published_accuracy > STABLE:
        return "stable"
    return "collapsed" if published_accuracy < COLLAPSED else "between"


def tone(published_accuracy: float, ours: float) -> str:
    """Colour of a cell: by the difference, unless both collapsed.

    >>> tone(91.7, 91.3), tone(91.7, 92.6), tone(91.7, 80.0), tone(15.0, 10.0)
    ('same', 'near', 'far-below', 'collapsed')
    """
    if published_accuracy < COLLAPSED and ours < COLLAPSED:
        return "collapsed"
    return gap_tone(ours - published_accuracy)


def gap_tone(points: float) -> str:
    """Colour of a difference in percentage points.

    >>> gap_tone(0.2), gap_tone(-48.0)
    ('same', 'far-below')
    """
    gap = round(points, 4)
    if abs(gap) <= CLOSE:
        return "same"
    if abs(gap) <= NEAR:
        return "near"
    side = "above" if gap > 0 else "below"
    return side if abs(gap) <= 5.0 else f"far-{side}"


@dataclass(frozen=True)
class Compared:
    """One cell beside the published one, with the values of other seeds."""

    reading: Reading
    theirs: Published
    other_seeds: tuple[Reading, ...] = ()

    @property
    def gap(self) -> float:
        """Ours minus published, in percentage points; NaN if ours did not finish."""
        return round(self.reading.accuracy - self.theirs.accuracy, 4)

    @property
    def same_verdict(self) -> bool:
        """Whether both collapsed or neither did; a run that diverged has."""
        collapsed = self.reading.status == "diverged" or self.reading.accuracy < COLLAPSED
        return (self.theirs.accuracy < COLLAPSED) == collapsed

    def within(self, points: float) -> bool:
        """Whether the accuracies agree within `points`; False if ours did not finish."""
        return abs(self.gap) <= points

    @property
    def same_error(self) -> bool:
        """Whether the consensus errors agree."""
        return self.theirs.consensus_error.agrees(self.reading.consensus_error)


def compare(readings: Iterable[Reading]) -> list[Compared]:
    """One comparison per published cell, of the paper's tables or from outside.

    The first seed is compared, as published; other seeds are kept beside it.
    """
    groups: dict[tuple[tuple[str, str, str], str], tuple[Published, list[Reading]]] = {}
    for reading in readings:
        theirs = beside(*reading.place, reading.variant)
        if theirs is not None:
            groups.setdefault((reading.place, reading.variant), (theirs, []))[1].append(reading)
    found = []
    for theirs, group in groups.values():
        first, *rest = sorted(group, key=lambda reading: reading.seed)
        found.append(Compared(first, theirs, tuple(rest)))
    return found


def is_outside(cell: Compared) -> bool:
    """Whether a cell is not one of the paper's tables."""
    return cell.reading.target == "outside"


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Agreement over some cells. `cells` leaves out those counted separately."""

    cells: int
    close: int
    near: int
    stable: int
    stable_close: int
    stable_near: int
    collapsed: int
    collapsed_same: int
    errors_same: int
    apart: int


def count(cells: Sequence[Compared]) -> Counts:
    """Count the agreeing cells."""
    counted = [cell for cell in cells if not is_apart(cell.reading.target, cell.reading.rule)]
    stable = [cell for cell in counted if kind(cell.theirs.accuracy) == "stable"]
    collapsed = [cell for cell in counted if kind(cell.theirs.accuracy) == "collapsed"]
    return Counts(
        cells=len(counted),
        close=sum(cell.within(CLOSE) for cell in counted),
        near=sum(cell.within(NEAR) for cell in counted),
        stable=len(stable),
        stable_close=sum(cell.within(CLOSE) for cell in stable),
        stable_near=sum(cell.within(NEAR) for cell in stable),
        collapsed=len(collapsed),
        collapsed_same=sum(cell.same_verdict for cell in collapsed),
        errors_same=sum(cell.same_error for cell in counted),
        apart=len(cells) - len(counted),
    )


def agreement_grid(cells: Sequence[Compared]) -> Grid:
    """Counts per table, all of them together, and those from outside."""
    groups = {CAPTIONS[table]: [cell for cell in cells if cell.reading.target == table] for table in CAPTIONS}
    groups["all tables"] = [cell for cell in cells if not is_outside(cell)]
    groups["from outside: two-castle graphs, 20 honest"] = [cell for cell in cells if is_outside(cell)]
    rows = tuple((name, _counts(group)) for name, group in groups.items() if group)
    columns = (
        *("cells", "≤ 0.5", "≤ 1.0", "stable", "stable ≤ 0.5", "stable ≤ 1.0"),
        *("collapsed", "same verdict", "CE agrees", "apart"),
    )
    note = (
        "≤ 0.5, ≤ 1.0: the accuracies differ by so many percentage points at most. Stable: published above 80%. "
        "Collapsed: published below 60%; the verdict is the same if ours is, too. CE agrees: within a factor of 5, or "
        "on the right side of a published bound. Apart, and in no other column: SimRew and non-iid DRSA."
    )
    return Grid(
        name="agreement",
        title="Cells that agree with the published ones",
        corner="table",
        columns=columns,
        rows=rows,
        note=note,
    )


def _counts(group: Sequence[Compared]) -> tuple[GridCell, ...]:
    c = count(group)
    numbers: tuple[tuple[int, int | None], ...] = (
        (c.cells, None),
        (c.close, c.cells),
        (c.near, c.cells),
        (c.stable, None),
        (c.stable_close, c.stable),
        (c.stable_near, c.stable),
        (c.collapsed, None),
        (c.collapsed_same, c.collapsed),
        (c.errors_same, c.cells),
        (c.apart, None),
    )
    return tuple(
        GridCell(str(part), f"{100 * part / whole:.0f}%" if whole else "", value=part) for part, whole in numbers
    )
