"""A sweep as a table: rows and columns by config keys, each cell a metric over the seeds.

    rows, columns    config keys as in the store (`rule.name`, `rule.tau`, `network.name`, `seed`); `rule` is short for
                     `rule.name`, and likewise for everything that has a name; several keys with commas
    cell             mean ± std over the runs that agree in both, which may differ in nothing but their seed

Runs that differ in anything else would be averaged over a difference that nobody sees: that is an error which names it.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from byzmesh.errors import ConfigError, UnknownOption, nearest
from byzmesh.reports.aggregation import LAST, PERCENT, Summary, number, summarise
from byzmesh.reports.text_table import EMPTY, Grid, GridCell
from byzmesh.store import RunRecord, Store
from byzmesh.store.keys import dump, flatten


@dataclass(frozen=True)
class Pivot:
    """Summaries by (row label, column label), in the order in which the labels first occur."""

    rows: str
    columns: str
    metric: str
    last: int
    row_labels: tuple[str, ...]
    column_labels: tuple[str, ...]
    cells: Mapping[tuple[str, str], Summary]


def pivot(
    store: Store,
    rows: str = "rule",
    columns: str = "attack",
    *,
    metric: str = "accuracy",
    last: int = LAST,
    where: Mapping[str, Any] | None = None,
) -> Pivot:
    """The runs of a store as a table."""
    runs = store.list(where, current=True)
    if not runs:
        raise ConfigError(f"store {store.path} has no runs to show; sweep into it first, or select less narrowly")
    leaves = {run.key: flatten(run.config) for run in runs}
    known = sorted({path for fields in leaves.values() for path in fields})
    row_keys, column_keys = (split_keys(side, text, known) for side, text in (("rows", rows), ("columns", columns)))
    groups: dict[tuple[str, str], list[RunRecord]] = {}
    for run in runs:
        fields = leaves[run.key]
        groups.setdefault((label(fields, row_keys), label(fields, column_keys)), []).append(run)
    for (row, column), group in groups.items():
        _check_alike(row, column, [leaves[run.key] for run in group], {"seed", *row_keys, *column_keys})
    return Pivot(
        ", ".join(row_keys),
        ", ".join(column_keys),
        metric,
        last,
        tuple(dict.fromkeys(row for row, _ in groups)),
        tuple(dict.fromkeys(column for _, column in groups)),
        {place: summarise(store, group, metric, last) for place, group in groups.items()},
    )


def split_keys(side: str, text: str, known: Sequence[str]) -> list[str]:
    """Config keys of a comma-separated list, spelled in full.

    >>> split_keys("rows", "rule,seed", ["rule.name", "rule.tau", "seed"])
    ['rule.name', 'seed']
    """
    found = []
    short = [path.removesuffix(".name") for path in known if path.endswith(".name")]
    for word in (part.strip() for part in text.split(",")):
        full = word if word in known else f"{word}.name"
        if full not in known:
            raise UnknownOption(f"{side} = {word!r} is no config key of these runs: {nearest(word, [*known, *short])}")
        found.append(full)
    return found


def label(fields: Mapping[str, Any], keys: Sequence[str]) -> str:
    """What a run is called along one side; `-` where it has no such key."""
    return ", ".join(_text(fields[key]) if key in fields else "-" for key in keys)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else dump(value)


def _check_alike(row: str, column: str, group: Sequence[Mapping[str, Any]], free: set[str]) -> None:
    for path in sorted({path for fields in group for path in fields} - free):
        values = {dump(fields[path]) if path in fields else "-" for fields in group}
        if len(values) > 1:
            shown = ", ".join(sorted(values)[:3])
            raise ConfigError(
                f"cell ({row}, {column}) would average runs that differ in {path} ({shown}): "
                f"add {path} to the rows or columns, or choose one by --where {path}=..."
            )


def pivot_grid(table: Pivot, title: str = "") -> Grid:
    """The table as text: mean ± std, and in small print n and what did not finish."""
    several = any(cell.total > 1 for cell in table.cells.values())
    unit = " (%)" if table.metric in PERCENT else ""
    rows = tuple(
        (row, tuple(_cell(table, table.cells.get((row, column)), several) for column in table.column_labels))
        for row in table.row_labels
    )
    note = f"Mean of the last {table.last} evaluations" + (
        "; ± is the standard deviation over n seeds." if several else "."
    )
    row_name, column_name = (side.replace(".name", "") for side in (table.rows, table.columns))
    heading = title or f"{table.metric.replace('_', ' ')}{unit} by {row_name} and {column_name}"
    return Grid("sweep", heading, row_name, table.column_labels, rows, note)


def _cell(table: Pivot, cell: Summary | None, several: bool) -> GridCell:
    if cell is None:
        return EMPTY
    if not cell.n:
        return GridCell(cell.troubles, tip=cell.failure or cell.troubles, tone="trouble")
    shown = number(cell.mean, table.metric)
    spread = f" ± {number(cell.std, table.metric)}" if cell.n > 1 else ""
    parts = [f"n = {cell.n}"] if several else []
    parts += [cell.troubles] if cell.troubles else []
    tip = f"{table.metric} {shown}{spread}, {cell.n} of {cell.total} runs finished"
    return GridCell(shown + spread, ", ".join(parts), tip, cell.mean, "trouble" if cell.troubles else "")


def pivot_csv(table: Pivot) -> str:
    """One line per cell: the two labels, metric, mean, std, n, diverged, failed, waiting."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow((table.rows, table.columns, "metric", "mean", "std", "n", "diverged", "failed", "waiting"))
    for (row, column), cell in table.cells.items():
        mean = "" if math.isnan(cell.mean) else f"{cell.mean:.10g}"
        std = f"{cell.std:.10g}" if cell.n > 1 else ""
        writer.writerow((row, column, table.metric, mean, std, cell.n, cell.diverged, cell.failed, cell.waiting))
    return out.getvalue()
