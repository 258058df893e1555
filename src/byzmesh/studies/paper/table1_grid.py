"""Table I as a grid: searched rho per fraction of liars, verdicts, and their reasons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from byzmesh.reports.text_table import Grid, GridCell


def table_1_grid(rows: Sequence[Any]) -> Grid:
    """Table I from the rows of `byzmesh.studies.paper.table1.table_1`: searched rho per fraction of liars, verdicts."""
    columns = ("published rho", *(f"mu = {share:.3f}" for share in rows[0].share), "RCA", "RDSA")
    body = tuple(
        (
            row.rule,
            (
                GridCell(row.published.order),
                *(_rho(*values) for values in zip(row.rho, row.rho_star, row.order)),
                _decided(row.rca, row.published.rca),
                _decided(row.rdsa, row.published.rdsa),
            ),
        )
        for row in rows
    )
    note = (
        "rho: the largest ratio found by search on a complete graph with a share mu of liars, a lower bound. RCA and "
    )
    note += "RDSA: decided here, with the paper's mark below."
    legend = {"same": "as published", "far-below": "refuted although the paper says yes", "near": "not decided"}
    return Grid(
        name="table-1",
        title="Table I: contraction constants",
        corner="rule",
        columns=columns,
        rows=body,
        note=note,
        legend=legend,
    )


def table_1_reasons(rows: Sequence[Any]) -> Grid:
    """The reason for each verdict of Table I."""
    body = tuple((row.rule, (GridCell(row.rca.reason), GridCell(row.rdsa.reason))) for row in rows)
    return Grid(name="table-1-reasons", title="Table I: reasons", corner="rule", columns=("RCA", "RDSA"), rows=body)


def _rho(rho: float, star: float, order: float) -> GridCell:
    text = "unbounded" if math.isinf(rho) else f"{rho:.3f}"
    tip = f"searched rho {text}\nrho* = lambda / (8 sqrt N) = {star:.4f}\npublished order at this share: {order:.3f}"
    return GridCell(text, tip=tip, value=rho if math.isfinite(rho) else math.nan)


def _decided(verdict: Any, theirs: bool) -> GridCell:
    ours = {"proved": True, "refuted": False}.get(verdict.status)
    tone_word = "near" if ours is None else "same" if ours == theirs else "far-below"
    return GridCell(verdict.status, f"pub. {'yes' if theirs else 'no'}", tip=verdict.reason, tone=tone_word)
