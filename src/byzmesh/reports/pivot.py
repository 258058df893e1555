"""A sweep as a table: rows and columns by config fields, each cell a metric over the seeds.

    rows, columns    config fields (`rule`, `rule.tau`, `network`, `case`: see `store.fields`), separated by commas
    cell             mean ± std over the runs that agree in both, which may differ only in their seeds

Averaging runs that differ in anything else would hide the difference: that is an error that names it. The seed of a
random network counts as a seed. Which workers lie may depend on the seeds; how many lie may not.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from byzmesh.errors import ConfigError
from byzmesh.naming import is_name
from byzmesh.reports.aggregation import Summary, summarise
from byzmesh.reports.text_table import EMPTY, Grid, GridCell
from byzmesh.store import RunRecord, Store
from byzmesh.store.fields import label, path_in, paths_of, possible_paths, short, text, words_of
from byzmesh.store.keys import dump, flatten
from byzmesh.training.final import words_of_last
from byzmesh.training.metrics import metric_of

SEEDS = {"seed", "network.seed"}
SHOWN = ("mean", "std")
"""Statistics that a cell shows as mean ± std; further ones are in its small print."""


@dataclass(frozen=True, kw_only=True)
class Pivot:
    """Summaries by (row label, column label), in the order in which the labels first occur."""

    rows: str
    columns: str
    metric: str
    last: int | None
    row_labels: tuple[str, ...]
    column_labels: tuple[str, ...]
    cells: Mapping[tuple[str, str], Summary]


def pivot(
    store: Store,
    rows: str = "rule",
    columns: str = "attack",
    *,
    metric: str = "accuracy",
    last: int | None = None,
    where: Mapping[str, Any] | None = None,
) -> Pivot:
    """The runs of a store as a table; a run's value is the mean of its `last` evaluations (default: as `Run.final`)."""
    runs = store.list(where, current=True)
    if not runs:
        raise ConfigError(f"store {store.path} has no runs to show; run a sweep into it first, or use fewer filters")
    leaves = {run.key: flatten(run.config) for run in runs}
    known = {path for fields in leaves.values() for path in fields}
    row_keys, column_keys = ({word: paths_of(word, known) for word in words_of(side)} for side in (rows, columns))
    groups: dict[tuple[str, str], list[RunRecord]] = {}
    for run in runs:
        fields = leaves[run.key]
        groups.setdefault((label(fields, row_keys.values()), label(fields, column_keys.values())), []).append(run)
    for (row, column), group in groups.items():
        used = [*row_keys.values(), *column_keys.values()]
        _check_alike(row, column, [leaves[run.key] for run in group], used)
    return Pivot(
        rows=heading(row_keys),
        columns=heading(column_keys),
        metric=metric,
        last=last,
        row_labels=tuple(dict.fromkeys(row for row, _ in groups)),
        column_labels=tuple(dict.fromkeys(column for _, column in groups)),
        cells={place: summarise(store, group, metric, last) for place, group in groups.items()},
    )


def heading(keys: Mapping[str, Sequence[str]]) -> str:
    """The heading of the rows or columns: each field's path, or the short word for several paths.

    >>> heading({"rule": ["rule.name"], "network": ["network.name", "network.label"]})
    'rule.name, network'
    """
    return ", ".join(paths[0] if len(paths) == 1 else word for word, paths in keys.items())


def _check_alike(row: str, column: str, group: Sequence[Mapping[str, Any]], used: Iterable[Sequence[str]]) -> None:
    """Raise if runs of a cell differ in anything but their seeds and the fields of their row and column."""
    free = {path for paths in used for fields in group if (path := path_in(fields, paths)) is not None}
    differing: dict[str, str] = {}
    for path in sorted({path for fields in group for path in fields if not is_name(path)} - free - SEEDS, key=_telling):
        values = {text(fields[path]) if path in fields else "-" for fields in group}
        if len(values) > 1 and not _follows_the_seeds(path, group):
            shown = {label(fields, [possible_paths(short(path))]) for fields in group}
            differing.setdefault(short(path), ", ".join(sorted(shown)[:3]))
    if differing:
        word, *others = differing
        others = [other for other in others if not other.startswith(f"{word}.")]
        more = f", and in {', '.join(others[:3])}" if others else ""
        raise ConfigError(
            f"cell ({row}, {column}) would average runs that differ in {word} ({differing[word]}){more}: "
            f"add {word} to the rows or columns, or choose one with --where {word}=..."
        )


def _telling(path: str) -> tuple[bool, int, str]:
    """Sort key of fields by importance: the names of rule, attack and network before their options."""
    return short(path) == path, path.count("."), path


def _follows_the_seeds(path: str, group: Sequence[Mapping[str, Any]]) -> bool:
    """Whether `path` is who lies, equally many in all runs and fixed by the seed."""
    if path != "network.byzantine":
        return False
    chosen: dict[tuple[Any, ...], str] = {}
    for fields in group:
        seeds = tuple(fields.get(seed) for seed in sorted(SEEDS))
        if chosen.setdefault(seeds, dump(fields.get(path))) != dump(fields.get(path)):
            return False
    return len({len(fields.get(path, ())) for fields in group}) == 1


def pivot_grid(table: Pivot, title: str = "") -> Grid:
    """The table as text: mean ± std, the best of each column in bold, what did not finish in small print.

    If all cells have as many seeds, the note says how many; otherwise each cell does.
    """
    counts = {cell.n for cell in table.cells.values() if cell.n}
    several = any(cell.total > 1 for cell in table.cells.values())
    metric = metric_of(table.metric)
    best = best_cells(table)
    rows = tuple(
        (
            row,
            tuple(
                _cell(table, table.cells.get((row, column)), len(counts) > 1, (row, column) in best)
                for column in table.column_labels
            ),
        )
        for row in table.row_labels
    )
    seeds = f"{counts.pop()} seeds" if len(counts) == 1 else "n seeds"
    note = f"Mean of {words_of_last(table.last)}" + (f"; ± is the standard deviation over {seeds}." if several else ".")
    note += f" {BOLD}" if best and several else " Bold: the best of its column." if best else ""
    row_name, column_name = (", ".join(map(short, words_of(side))) for side in (table.rows, table.columns))
    caption = title or f"{metric.words}{metric.suffix} by {row_name} and {column_name}"
    return Grid(
        name="sweep",
        title=caption,
        corner=row_name,
        columns=table.column_labels,
        rows=rows,
        note=note,
        groups=_groups(table.column_labels, len(words_of(table.columns))),
    )


BOLD = "Bold: the best of its column, and what does not differ from it (Welch's t-test, 5%)."


def best_cells(table: Pivot) -> set[tuple[str, str]]:
    """In each column with several values, the best mean and those that do not differ from it beyond noise.

    Two means differ if Welch's t-test says so at 5%; for cells of a single run there is no noise to go by.
    """
    direction = metric_of(table.metric).direction
    if direction == "none":
        return set()
    best: set[tuple[str, str]] = set()
    for column in table.column_labels:
        known = {row: cell for row in table.row_labels if (cell := table.cells.get((row, column))) and cell.n}
        if len(known) > 1:
            top = (max if direction == "up" else min)(known.values(), key=lambda cell: cell.mean)
            best |= {(row, column) for row, cell in known.items() if not _differ(cell, top)}
    return best


def _differ(one: Summary, other: Summary) -> bool:
    """Whether two means differ, by Welch's t-test at 5%."""
    if one.mean == other.mean:
        return False
    if one.n < 2 or other.n < 2:
        return True
    from scipy.special import stdtrit

    a, b = one.std**2 / one.n, other.std**2 / other.n
    if a + b == 0.0:
        return True
    freedom = (a + b) ** 2 / (a**2 / (one.n - 1) + b**2 / (other.n - 1))
    return bool(abs(one.mean - other.mean) > float(stdtrit(freedom, 0.975)) * math.sqrt(a + b))


def _groups(labels: Sequence[str], fields: int) -> tuple[tuple[str, ...], ...]:
    """The parts of headings by several fields; empty if a value has a comma of its own.

    >>> _groups(["ring, alie", "ring, ipm"], 2)
    (('ring', 'alie'), ('ring', 'ipm'))
    """
    parts = tuple(tuple(label.split(", ")) for label in labels)
    return parts if fields > 1 and all(len(part) == fields for part in parts) else ()


def _cell(table: Pivot, cell: Summary | None, several: bool, best: bool) -> GridCell:
    if cell is None:
        return EMPTY
    if not cell.n:
        return GridCell(cell.troubles, tip=cell.failure or cell.troubles, tone="trouble")
    metric = metric_of(table.metric)
    shown = metric.number(cell.mean)
    spread = f" ± {metric.number(cell.std)}" if cell.n > 1 else ""
    parts = [f"n = {cell.n}"] if several else []
    parts += [f"{name} {metric.number(value)}" for name, value in cell.statistics.items() if name not in SHOWN]
    parts += [cell.troubles] if cell.troubles else []
    tip = f"{table.metric} {shown}{spread}, {cell.n} of {cell.total} runs finished"
    tone = "trouble" if cell.troubles else ""
    return GridCell(shown + spread, ", ".join(parts), tip=tip, value=cell.mean, tone=tone, best=best)


def pivot_csv(table: Pivot) -> str:
    """One line per cell: the two labels, the metric, the statistics, and how many runs finished or did not."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    cells = list(table.cells.items())
    writer.writerow((table.rows, table.columns, "metric", *cells[0][1].statistics, *cells[0][1].counts))
    for (row, column), cell in cells:
        known = {name: "" if math.isnan(value) else f"{value:.10g}" for name, value in cell.statistics.items()}
        if cell.n < 2:
            known["std"] = ""
        writer.writerow((row, column, table.metric, *known.values(), *cell.counts.values()))
    return out.getvalue()
