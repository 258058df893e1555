"""Curves of stored runs, for the HTML report and for figures.

A sweep's curve is the mean over its seeds; with several of them, a band shows where the mean is (95%, Student's t). A
curve ends where the shortest of its runs ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from byzmesh.curves import DARK_PALETTE, PALETTE, SMALLEST, Chart, Curve, draw_charts, spans_decades
from byzmesh.reports.aggregation import half_widths
from byzmesh.store import Store
from byzmesh.training.metrics import metric_of

__all__ = ["DARK_PALETTE", "PALETTE", "SMALLEST", "Chart", "Curve", "draw_charts", "run_chart", "seeds_curve"]
ROUND = "round"
BAND = "band: 95% interval of the mean over the seeds"


def run_chart(
    store: Store,
    groups: Mapping[str, Mapping[str, Sequence[str]]],
    metric: str = "accuracy",
    title: str = "",
    over: str = ROUND,
) -> Chart:
    """Curves over the rounds, or over another metric: facet -> name -> keys of the runs whose mean is the curve.

    Runs without the metrics (not yet computed) are left out; runs of one curve are cut to the shortest.
    """
    shown = metric_of(metric)
    facets = {}
    for facet, named in groups.items():
        curves = []
        for name, keys in named.items():
            series = [store.series(key) for key in keys]
            series = [recorded for recorded in series if metric in recorded and (over == ROUND or over in recorded)]
            if series:
                curves.append(seeds_curve(name, series, metric, over))
        if curves:
            facets[facet] = tuple(curves)
    drawn = (value for curves in facets.values() for curve in curves for value in curve.y)
    logarithmic = shown.scale == "log" or (shown.unit != "percent" and spans_decades(drawn))
    along = (place for curves in facets.values() for curve in curves for place in curve.x if place > 0)
    return Chart(
        title=title,
        x_label=ROUND if over == ROUND else metric_of(over).label,
        y_label=shown.label,
        facets=facets,
        logarithmic=logarithmic,
        logarithmic_x=over != ROUND and spans_decades(along),
        band=BAND,
    )


def seeds_curve(name: str, series: Sequence[Mapping[str, Any]], metric: str, over: str = ROUND) -> Curve:
    """The mean of a metric over runs that differ in their seeds, with its band if there are several.

    over  the metric along the horizontal axis: its mean over the runs, without what is not positive, if not the rounds
    """
    factor = metric_of(metric).factor
    length = min(len(recorded[metric]) for recorded in series)
    values = np.array([recorded[metric][:length] for recorded in series], np.float64) * factor
    if over == ROUND:
        along = np.asarray(series[0].get(ROUND, np.arange(length)))[:length]
    else:
        along = np.mean([recorded[over][:length] for recorded in series], axis=0) * metric_of(over).factor
        values, along = values[:, along > 0], along[along > 0]
    mean = values.mean(axis=0)
    band: dict[str, tuple[float, ...]] = {}
    if len(series) > 1:
        half = half_widths(values)
        band = {"low": tuple((mean - half).tolist()), "high": tuple((mean + half).tolist())}
    return Curve(name=name, x=tuple(along.tolist()), y=tuple(mean.tolist()), **band)
