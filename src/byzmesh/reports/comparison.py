"""Runs in memory, compared in one figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from byzmesh.curves import Chart, figure_of, spans_decades
from byzmesh.errors import UnknownName, nearest
from byzmesh.files import save_figure
from byzmesh.reports.charts import BAND, seeds_curve
from byzmesh.training.metrics import metric_of


def plot(runs: Mapping[str, Any], metric: str = "accuracy", *, path: str | Path | None = None) -> Any:
    """Compare runs: a curve per name, as a matplotlib figure; with `path` it is written there instead.

    runs    name -> a `Run`, or a list of runs that differ in their seed: the curve is then their mean, and a band shows
            its 95% interval (Student's t)
    metric  what to draw; values that span decades are drawn on a logarithmic axis

    >>> import byzmesh as bm
    >>> job = {"problem": "noisy-quadratic", "network": {"name": "ring", "n": 5}, "rounds": 4, "evaluate_every": 2}
    >>> seeds = [bm.simulate(**job, rule="weimean", seed=seed) for seed in range(2)]
    >>> len(bm.plot({"mean": seeds, "alone": bm.simulate(**job, rule="nocomm")}, "loss").axes)
    1
    """
    groups = {name: list(each) if isinstance(each, Sequence) else [each] for name, each in runs.items()}
    for name, group in groups.items():
        for run in group:
            if metric not in run.metrics:
                raise UnknownName(f"run {name} has no metric {metric!r}: {nearest(metric, run.metrics)}")
    curves = tuple(seeds_curve(name, [run.metrics for run in group], metric) for name, group in groups.items() if group)
    if not curves:
        raise UnknownName("plot needs at least one run, got none; give a mapping from names to runs")
    shown = metric_of(metric)
    chart = Chart(
        title=shown.words,
        x_label="round",
        y_label=shown.label,
        facets={"": curves},
        logarithmic=shown.scale == "log"
        or (shown.unit != "percent" and spans_decades(value for curve in curves for value in curve.y)),
        band=BAND,
    )
    figure = figure_of([chart])
    return figure if path is None else save_figure(figure, path, option="path")
