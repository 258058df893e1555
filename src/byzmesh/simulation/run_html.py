"""A run in a notebook: what it was, how it went, who was trusted."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from byzmesh.errors import ByzmeshError
from byzmesh.networks import Network
from byzmesh.networks.drawing import HONEST
from byzmesh.networks.svg import facts_table, svg
from byzmesh.training.metrics import metric_of
from byzmesh.types import Floats

if TYPE_CHECKING:
    from byzmesh.simulation.run import Run

WIDTH, HEIGHT = 260.0, 90.0


def run_html(run: Run) -> str:
    """The run as HTML without scripts."""
    config = run.config
    named = [config[part]["name"] for part in ("rule", "attack") if part in config]
    title = " under ".join(named) or "run"
    facts = {"status": f"{run.status} after {run.rounds} rounds, {run.seconds:.2g} s of computing"}
    for name in run.metrics:
        if name != "round" and len(run.metrics[name]) > 1:
            facts[metric_of(name).words] = metric_of(name).text(run.final(name))
    curve = "accuracy" if "accuracy" in run.metrics else "loss"
    parts = [f"<b>{escape(title)}</b>", facts_table(facts)]
    pictures = [sparkline(run.metrics["round"], run.metrics[curve], curve)] if curve in run.metrics else []
    pictures += [_network(run)]
    shown = "".join(f'<div style="display:inline-block;margin-right:1em">{part}</div>' for part in pictures if part)
    return "".join([*parts, f"<div>{shown}</div>"])


def sparkline(rounds: Floats, values: Floats, name: str) -> str:
    """A metric over the rounds as a small SVG; percents on a fixed scale."""
    metric = metric_of(name)
    finite = np.asarray(values, float)
    finite = np.where(np.isfinite(finite), finite, np.nan)
    if np.isnan(finite).all():
        return ""
    low, high = (0.0, 1.0) if metric.unit == "percent" else (float(np.nanmin(finite)), float(np.nanmax(finite)))
    span = max(float(np.ptp(rounds)), 1e-9)
    x = 4.0 + (WIDTH - 8.0) * (np.asarray(rounds, float) - float(np.min(rounds))) / span
    y = 14.0 + (HEIGHT - 20.0) * (1.0 - (finite - low) / max(high - low, 1e-12))
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x.tolist(), y.tolist()) if b == b)
    last = metric.text(float(finite[~np.isnan(finite)][-1]))
    return (
        f'<svg role="img" aria-label="{escape(metric.words)} over the rounds" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" '
        f'width="{WIDTH:.0f}" height="{HEIGHT:.0f}"><text x="4" y="10" font-size="10" fill="currentColor">'
        f'{escape(metric.words)}: {last}</text><path d="M4 14V{HEIGHT - 6:.0f}H{WIDTH - 4:.0f}" fill="none" '
        f'stroke="currentColor" stroke-opacity=".4"/><polyline points="{points}" fill="none" stroke="{HONEST}" '
        'stroke-width="2"/></svg>'
    )


def _network(run: Run) -> str:
    """The network with links that fade as they are cut; empty if the config does not describe it."""
    if run.edges is None or "network" not in run.config:
        return ""
    try:
        net = Network.from_spec(run.config["network"])
    except ByzmeshError:  # a file that is gone
        return ""
    return svg(net, run.edges.cut_rates(net.n))
