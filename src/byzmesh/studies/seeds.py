"""Means over seeds with their intervals, as the tables of the studies show them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from byzmesh.reports.aggregation import half_widths

Estimate = tuple[float, float]
"""A mean over seeds, and half the width of its 95% interval: NaN if seeds are missing."""


def estimate(values: Sequence[float], seeds: int = 2) -> Estimate:
    """Mean and half the width of its 95% interval (Student's t), NaN for fewer than `seeds` values.

    >>> [round(number, 4) for number in estimate([1.0, 3.0])], estimate([1.0])
    ([2.0, 12.7062], (1.0, nan))
    """
    if not len(values):
        return math.nan, math.nan
    held = np.asarray(values, np.float64)
    return float(held.mean()), float(half_widths(held)) if len(held) >= seeds else math.nan


def over_seeds(rows: Iterable[Mapping[str, Any]], fields: Sequence[str], seeds: int) -> dict[tuple[str, ...], Estimate]:
    """The accuracies of rows that agree in these fields, as estimates.

    >>> over_seeds([{"rule": "IOS", "accuracy": 90.0}], ["rule"], seeds=5)
    {('IOS',): (90.0, nan)}
    """
    cells: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        cells.setdefault(tuple(row[field] for field in fields), []).append(row["accuracy"])
    return {cell: estimate(values, seeds) for cell, values in cells.items()}


def shown(value: Estimate | None) -> str:
    """The text of a cell; in parentheses if it has no interval.

    >>> shown((91.234, 0.06)), shown((91.234, math.nan)), shown(None)
    ('91.2 ± 0.1', '(91.2)', '')
    """
    if value is None:
        return ""
    mean, half = value
    return f"({mean:.1f})" if math.isnan(half) else f"{mean:.1f} ± {half:.1f}"
