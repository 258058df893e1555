"""The result of a simulation, as numbers, as figures and for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from byzmesh.curves import Chart, Curve, figure_of, picture, spans_decades
from byzmesh.errors import ConfigError, UnknownName, nearest
from byzmesh.files import save_figure
from byzmesh.simulation.edges import Edges
from byzmesh.training.final import mean_of_last
from byzmesh.training.metrics import metric_of


@dataclass(frozen=True, kw_only=True)
class Run:
    """The result of a simulation.

    metrics  name -> (E,) array over the evaluations: `round`, `accuracy`, `loss`, `worst_accuracy`, `consensus_error`
             (the paper's CE), `disagreement` (H), and those that `measure` asked for
    workers  name -> (E, N) the same per honest worker, for metrics that have it
    models   (N, D) final models of the honest workers, in the order of `network.honest`
    edges    how often each neighbour was cut and how much it counted; None for coordinate-wise rules
    seconds  of computing: compiling kernels does not count
    status   finished, diverged (an honest model is beyond 1e20 or not finite) or running (stopped early)

    >>> import byzmesh as bm
    >>> bm.simulate(problem="quadratic", network={"name": "ring", "n": 5}, rounds=2, local={"decay": 0.0}).rounds
    2
    """

    config: Mapping[str, Any]
    metrics: dict[str, np.ndarray[Any, Any]]
    workers: dict[str, np.ndarray[Any, Any]]
    models: np.ndarray[Any, Any]
    edges: Edges | None
    status: str
    rounds: int
    seconds: float

    def final(self, name: str = "accuracy", last: int | None = None) -> float:
        """Mean of a metric over the last evaluations, as in every table: see `training.final.last_evaluations`.

        last  this many of them; default: those in the last tenth of the rounds, at most 10
        """
        return mean_of_last(self.metrics[self._known(name)], self.metrics["round"], last)

    def plot(self, *names: str, path: str | Path | None = None) -> Any:
        """Metrics over the rounds, a panel each, as a matplotlib figure; with `path` it is written there instead.

        Without names: accuracy, or loss for a problem without classes, and disagreement. Where a metric is known worker
        by worker, a band shows the worst and the best of them.

        >>> import byzmesh as bm
        >>> run = bm.simulate(problem="quadratic", network={"name": "ring", "n": 5}, rounds=4, evaluate_every=1)
        >>> len(run.plot("loss").axes)
        1
        """
        usual = ("accuracy" if "accuracy" in self.metrics else "loss", "disagreement")
        charts = [self._chart(self._known(name)) for name in names or usual]
        figure = figure_of(charts)
        return figure if path is None else save_figure(figure, path, option="path")

    def plot_trust(self, *, path: str | Path | None = None) -> Any:
        """Who trusted whom: for each receiver and sender, in which fraction of the rounds a message was not cut.

        A matplotlib figure; with `path` it is written there instead.
        """
        if self.edges is None:
            raise ConfigError(f"rule {self.config['rule']['name']} records no cuts; choose a rule that cuts or weighs")
        senders, receivers = np.unique(self.edges.sender), np.unique(self.edges.receiver)
        kept = np.full((len(receivers), len(senders)), np.nan)
        row, column = np.searchsorted(receivers, self.edges.receiver), np.searchsorted(senders, self.edges.sender)
        kept[row, column] = 1.0 - self.edges.cut / np.maximum(self.edges.rounds, 1)
        liars = set(self.edges.sender[self.edges.lying].tolist())
        figure = picture(1.6 + 0.3 * len(senders), 1.2 + 0.3 * len(receivers))
        figure.set_layout_engine("constrained")
        axes = figure.subplots()
        shown = axes.imshow(kept, cmap="RdYlBu", vmin=0.0, vmax=1.0, aspect="auto")
        axes.set_xticks(range(len(senders)), [f"{s}{'*' if s in liars else ''}" for s in senders.tolist()])
        axes.set_yticks(range(len(receivers)), receivers.tolist())
        axes.set_xlabel("sender (* lies)" if liars else "sender")
        axes.set_ylabel("receiver")
        figure.colorbar(shown, label="share of rounds not cut")
        return figure if path is None else save_figure(figure, path, option="path")

    def _known(self, name: str) -> str:
        if name not in self.metrics:
            raise UnknownName(f"the run has no metric {name!r}: {nearest(name, self.metrics)}")
        return name

    def _chart(self, name: str) -> Chart:
        metric = metric_of(name)
        values = self.metrics[name] * metric.factor
        band: dict[str, tuple[float, ...]] = {}
        if name in self.workers:
            each = self.workers[name] * metric.factor
            band = {"low": tuple(each.min(axis=1).tolist()), "high": tuple(each.max(axis=1).tolist())}
        curve = Curve(name=name, x=tuple(self.metrics["round"].tolist()), y=tuple(values.tolist()), **band)
        return Chart(
            title=metric.words,
            x_label="round",
            y_label=metric.label,
            facets={"": (curve,)},
            logarithmic=metric.scale == "log" or (metric.unit != "percent" and spans_decades(curve.y)),
            band="band: worst to best honest worker",
        )

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {self.metrics[name][-1]:.4g}" for name in self.metrics if name != "round")
        return f"Run({self.status} after {self.rounds} rounds: {shown})"

    def _repr_html_(self) -> str:
        from byzmesh.simulation.run_html import run_html

        return run_html(self)
