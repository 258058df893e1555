"""Leaderboards: rules ranked over all attacks, graphs and partitions they ran against.

    column        a graph, a partition, an attack and the f given to rules; a value is a mean over seeds and evaluations
    worst case    a rule's lowest accuracy over the columns
    regret        in a column, the best rule's accuracy minus the rule's; rules are ranked by their worst regret

A run that diverged counts as accuracy 0; if a run is missing or failed, its rule has no value in that column.

Rules of a reproduction (`results.csv`) are in the same tables, in the columns that were run. One rule has no regret.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from byzmesh.errors import ConfigError
from byzmesh.files import folder
from byzmesh.reports.charts import run_chart
from byzmesh.reports.html import Report, Section
from byzmesh.reports.provenance import describe
from byzmesh.reports.text_table import EMPTY, Grid, GridCell
from byzmesh.reports.writing import write_csv, write_grids, write_report
from byzmesh.store import Store
from byzmesh.studies.readings import Reading, write_readings
from byzmesh.training.final import words_of_last

COLUMNS = ("table", "attack", "best_rule", "best_accuracy", "our_accuracy", "regret")
WITHIN = 0.5
"""Up to this regret in points a rule counts as as good as the best."""

Values = Mapping[tuple[str, str], float]
"""(rule, column) -> accuracy in percent."""


@dataclass(frozen=True, kw_only=True)
class Score:
    """A rule over its columns: the worst accuracy and the worst regret, and where each of them is."""

    rule: str
    worst: float
    worst_column: str
    regret: float
    regret_column: str
    columns: int


def column_of(reading: Reading) -> str:
    """The column that a reading belongs to.

    >>> column_of(Reading(target="two-castle, iid", rule="IOS", attack="alie", variant="f + 1", seed=0, rounds=10))
    'two-castle, iid, alie, f + 1'
    """
    return ", ".join(part for part in (reading.target, reading.attack, reading.variant) if part)


def values_of(readings: Iterable[Reading]) -> dict[tuple[str, str], float]:
    """Accuracies by rule and column, the mean over the seeds."""
    values_of: dict[tuple[str, str], list[float]] = {}
    for reading in readings:
        value = 0.0 if reading.status == "diverged" else reading.accuracy
        if not math.isnan(value):
            values_of.setdefault((reading.rule, column_of(reading)), []).append(value)
    return {cell: sum(values) / len(values) for cell, values in values_of.items()}


def best_of(values: Values) -> dict[str, tuple[str, float]]:
    """Column -> the best rule in it and its accuracy."""
    best: dict[str, tuple[str, float]] = {}
    for (rule, column), value in values.items():
        if column not in best or value > best[column][1]:
            best[column] = (rule, value)
    return best


def in_columns(readings: Sequence[Reading], reproduction: Iterable[Reading]) -> list[Reading]:
    """The readings, and those of a reproduction in the same columns with as many rounds, of other rules."""
    asked = {(column_of(reading), reading.rounds) for reading in readings}
    mine = {reading.rule for reading in readings}
    beside = [one for one in reproduction if (column_of(one), one.rounds) in asked and one.rule not in mine]
    return [*readings, *beside]


def leaderboard(values: Values) -> list[Score]:
    """The rules by their worst regret, smallest first.

    >>> board = leaderboard({("A", "x"): 90.0, ("A", "y"): 80.0, ("B", "x"): 85.0, ("B", "y"): 84.0})
    >>> [(score.rule, score.worst, score.regret, score.regret_column) for score in board]
    [('A', 80.0, 4.0, 'y'), ('B', 84.0, 5.0, 'x')]
    """
    best = best_of(values)
    scores = []
    for rule in dict.fromkeys(rule for rule, _ in values):
        mine = {column: value for (name, column), value in values.items() if name == rule}
        worst = min(mine, key=lambda column: mine[column])
        regret = max(mine, key=lambda column: best[column][1] - mine[column])
        scores.append(
            Score(
                rule=rule,
                worst=mine[worst],
                worst_column=worst,
                regret=best[regret][1] - mine[regret],
                regret_column=regret,
                columns=len(mine),
            )
        )
    return sorted(scores, key=lambda score: (score.regret, -score.worst))


def leaderboard_grid(scores: Sequence[Score]) -> Grid:
    """The leaderboard as a table."""
    alone = len(scores) < 2
    rows = tuple(
        (
            score.rule,
            (
                EMPTY if alone else GridCell(f"{score.regret:.2f}", score.regret_column, value=score.regret),
                GridCell(f"{score.worst:.2f}", score.worst_column, value=score.worst),
                GridCell(str(score.columns), value=score.columns),
            ),
        )
        for score in scores
    )
    note = (
        "One rule alone has no regret: give --against results.csv of a reproduction, or more rules."
        if alone
        else "Points of accuracy. Regret is against the best rule of each column; in brackets the column of the worst."
    )
    return Grid(
        name="leaderboard",
        title="Leaderboard",
        corner="rule",
        columns=("worst regret", "worst case", "columns"),
        rows=rows,
        note=note,
    )


def accuracy_grid(values: Values) -> Grid:
    """Every column with every rule; the best of a column, and those as good, in green."""
    best = best_of(values)
    rules = tuple(dict.fromkeys(rule for rule, _ in values))

    def cell(rule: str, column: str) -> GridCell:
        if (rule, column) not in values:
            return EMPTY
        value = values[rule, column]
        return GridCell(f"{value:.2f}", value=value, tone="same" if best[column][1] - value <= WITHIN else "")

    rows = tuple((column, tuple(cell(rule, column) for rule in rules)) for column in best)
    legend = {"same": f"within {WITHIN} points of the best of its column"}
    return Grid(
        name="arena", title="Accuracy (%) by column", corner="column", columns=rules, rows=rows, note="", legend=legend
    )


def disagreement_grid(readings: Sequence[Reading]) -> Grid:
    """The disagreement H of every rule in every column, the mean over the seeds."""
    values_of: dict[tuple[str, str], list[float]] = {}
    for reading in readings:
        if not math.isnan(reading.disagreement):
            values_of.setdefault((reading.rule, column_of(reading)), []).append(reading.disagreement)
    rules = tuple(dict.fromkeys(rule for rule, _ in values_of))

    def cell(group: Sequence[float] | None) -> GridCell:
        return EMPTY if group is None else GridCell(f"{sum(group) / len(group):.1e}", value=sum(group) / len(group))

    columns = dict.fromkeys(column for _, column in values_of)
    rows = tuple((column, tuple(cell(values_of.get((rule, column))) for rule in rules)) for column in columns)
    return Grid(name="disagreement", title="Disagreement H by column", corner="column", columns=rules, rows=rows)


def compare_columns(ours: Iterable[Reading], reproduction: Iterable[Reading]) -> list[tuple[str, ...]]:
    """Rows of `columns.csv`: our rule in each column of a table against the reproduction's best rule there."""
    mine = values_of(ours)
    best = best_of(values_of(reproduction))
    tables = {column_of(reading): (reading.target, reading.attack) for reading in ours}
    lines: list[tuple[str, ...]] = []
    for (_, column), value in mine.items():
        if column not in best:
            raise ConfigError(f"the reproduction has no column {column!r}; reproduce that table first")
        rule, accuracy = best[column]
        numbers = (f"{accuracy:.2f}", f"{value:.2f}", f"{accuracy - value:.2f}")
        lines.append((*tables[column], rule, *numbers))
    return lines


def write_columns(path: Path, lines: Iterable[tuple[str, ...]]) -> Path:
    """`columns.csv`: table, attack, the best rule and its accuracy, ours, the regret; in percent."""
    return write_csv(path, COLUMNS, lines)


def columns_grid(lines: Sequence[tuple[str, ...]]) -> Grid:
    """The rows of `columns.csv` as a table."""
    rows = tuple(
        (
            f"{line[0]}, {line[1]}",
            (
                GridCell(line[3], line[2], value=float(line[3])),
                GridCell(line[4], value=float(line[4])),
                GridCell(line[5], value=float(line[5]), tone="same" if float(line[5]) <= WITHIN else "below"),
            ),
        )
        for line in lines
    )
    legend = {"same": f"within {WITHIN} points of the best rule", "below": "farther"}
    return Grid(
        name="columns",
        title="Our rule in the paper's columns",
        corner="column",
        columns=("best rule", "ours", "regret"),
        rows=rows,
        note="",
        legend=legend,
    )


def arena_report(
    store: Store,
    readings: Sequence[Reading],
    lines: Sequence[tuple[str, ...]] = (),
    last: int | None = None,
    reproduction: Iterable[Reading] = (),
) -> Report:
    """Leaderboard, all accuracies and disagreements, our rule's columns if given, curves by column, and every run."""
    everybody = in_columns(readings, reproduction)
    values = values_of(everybody)
    stored = {run.key: run for run in store.list()}
    names = {reading.key: f"{reading.rule}, {column_of(reading)}" for reading in readings if reading.key in stored}
    groups: dict[str, dict[str, list[str]]] = {}
    for reading in readings:
        if reading.status == "finished":
            groups.setdefault(column_of(reading), {}).setdefault(reading.rule, []).append(reading.key)
    sections = (
        [Section(name="leaderboard", title="Leaderboard", text=(), grids=(leaderboard_grid(leaderboard(values)),))]
        if values
        else []
    )
    if lines:
        sections.append(Section(name="columns", title="The paper's columns", text=(), grids=(columns_grid(lines),)))
    charts = (run_chart(store, groups, "accuracy", "Accuracy"),) if groups else ()
    sections.append(
        Section(
            name="arena",
            title="All columns",
            text=(),
            grids=(accuracy_grid(values), disagreement_grid(everybody)),
            charts=charts,
        )
    )
    done = sum(reading.status == "finished" for reading in readings)
    lead = f"{len(readings)} runs, {done} finished. A value is the mean over seeds and {words_of_last(last)}."
    return Report("byzmesh: arena", (lead,), tuple(sections), describe([stored[key] for key in names], names))


def write_arena(
    store: Store,
    readings: Sequence[Reading],
    out: Path,
    lines: Sequence[tuple[str, ...]] = (),
    last: int | None = None,
    reproduction: Sequence[Reading] = (),
) -> list[Path]:
    """Write `leaderboard` (Markdown, LaTeX), `arena.csv`, `columns.csv` if it has rows, and `report.html`.

    reproduction  readings of other rules, for the same tables
    """
    folder(out)
    everybody = in_columns(readings, reproduction)
    values = values_of(everybody)
    grids = [leaderboard_grid(leaderboard(values)), accuracy_grid(values), disagreement_grid(everybody)]
    written = write_grids(grids, out / "leaderboard")
    written.append(write_readings(out / "arena.csv", readings))
    if lines:
        written.append(write_columns(out / "columns.csv", lines))
    written.append(write_report(arena_report(store, readings, lines, last, reproduction), out / "report.html"))
    return written
