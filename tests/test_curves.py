"""Figures: bands, shared axes, logarithmic axes where values span decades, legends that stay readable."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import t

import byzmesh as bm
from byzmesh.curves import MOST_NAMED, OTHERS, Chart, Curve, draw_charts, figure_of, spans_decades
from byzmesh.errors import ConfigError, UnknownName
from byzmesh.reports.charts import seeds_curve


def chart(facets: Mapping[str, tuple[Curve, ...]], logarithmic: bool = False) -> Chart:
    return Chart(title="t", x_label="round", y_label="loss", facets=facets, logarithmic=logarithmic, band="band: x")


def curve(name: str, *y: float) -> Curve:
    return Curve(name=name, x=tuple(range(len(y))), y=y)


def test_facets_share_their_axes_and_label_them_once() -> None:
    facets = {word: (curve("a", 1.0, height), curve("b", 2.0, 3.0)) for word, height in (("x", 2.0), ("y", 50.0))}
    left, right = figure_of([chart(facets)]).axes
    assert left.get_ylim() == right.get_ylim() and left.get_ylim()[1] > 50
    assert (left.get_ylabel(), right.get_ylabel()) == ("loss", "")
    assert (left.get_xlabel(), right.get_xlabel()) == ("round", "round")


def test_charts_of_different_metrics_do_not_share_axes() -> None:
    other = Chart(title="u", x_label="round", y_label="accuracy (%)", facets={"": (curve("a", 90.0, 91.0),)})
    left, right = figure_of([chart({"": (curve("a", 1.0, 2.0),)}), other]).axes
    assert left.get_ylim() != right.get_ylim() and right.get_ylabel() == "accuracy (%)"


def test_the_band_is_students_interval_of_the_mean() -> None:
    values = np.random.default_rng(0).normal(size=(4, 3))
    drawn = seeds_curve("a", [{"loss": row, "round": np.arange(3)} for row in values], "loss")
    for place in range(3):
        column = [float(value) for value in values[:, place]]
        mean = sum(column) / 4
        half = t.ppf(0.975, 3) * math.sqrt(sum((value - mean) ** 2 for value in column) / 3) / 2
        assert drawn.y[place] == pytest.approx(mean)
        assert (drawn.low[place], drawn.high[place]) == pytest.approx((mean - half, mean + half))
    assert seeds_curve("a", [{"loss": values[0]}], "loss").low == ()


def test_a_band_is_drawn_and_explained() -> None:
    banded = Curve(name="a", x=(0.0, 1.0), y=(1.0, 2.0), low=(0.5, 1.5), high=(1.5, 2.5))
    figure = figure_of([chart({"": (banded, curve("b", 1.0, 1.0))})])
    assert len(figure.axes[0].collections) == 1
    assert figure.legends[0].get_title().get_text() == "band: x"


@pytest.mark.parametrize(
    ("values", "wide"),
    [
        ([1.0, 99.0], False),
        ([1.0, 101.0], True),
        ([0.0, 1e9], False),
        ([-1.0, 1e9], False),
        ([math.nan, 1.0, 1e3], True),
    ],
)
def test_decades(values: list[float], wide: bool) -> None:
    assert spans_decades(values) is wide


def test_many_curves_have_a_legend_of_one_page() -> None:
    """As many names as there are styles; the rest is grey and counted."""
    figure = figure_of([chart({"": tuple(curve(f"rule {number}", 1.0, 2.0) for number in range(60))})])
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert len(names) == MOST_NAMED + 1 and names[-1] == f"{60 - MOST_NAMED} others"
    styles = {(line.get_color(), line.get_linestyle()) for line in figure.axes[0].lines}
    assert len(styles) == MOST_NAMED + 1 and (OTHERS, "-") in styles


def test_nothing_to_draw(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no curve to draw"):
        draw_charts([chart({})], tmp_path / "a.png")


JOB: dict[str, Any] = {"problem": "noisy-quadratic", "network": "paper/two-castle", "rounds": 4, "evaluate_every": 2}


def test_runs_compared(tmp_path: Path) -> None:
    runs = [bm.simulate(**JOB, rule="ios", attack="ipm", seed=seed) for seed in range(2)]
    axes = bm.plot({"IOS": runs, "one": runs[0]}, "loss").axes[0]
    mean = (runs[0].metrics["loss"] + runs[1].metrics["loss"]) / 2
    assert np.allclose(axes.lines[0].get_ydata(), mean) and len(axes.collections) == 1
    assert bm.plot({"IOS": runs}, "loss", path=tmp_path / "a.svg") == tmp_path / "a.svg"
    with pytest.raises(UnknownName, match="run IOS has no metric 'los': did you mean 'loss'"):
        bm.plot({"IOS": runs}, "los")
    with pytest.raises(UnknownName, match="at least one run"):
        bm.plot({})


def test_a_run_plots_itself(tmp_path: Path) -> None:
    run = bm.simulate(**JOB, rule="ios", attack="ipm")
    assert len(run.plot().axes) == 2 and len(run.plot("loss").axes) == 1
    assert run.plot("loss", path=tmp_path / "loss.pdf").read_bytes().startswith(b"%PDF")
    with pytest.raises(UnknownName, match="no metric 'acc'"):
        run.plot("acc")
    trust = run.plot_trust()
    assert [label.get_text() for label in trust.axes[0].get_xticklabels()][7] == "7*"
    with pytest.raises(ConfigError, match="rule CooMed records no cuts"):
        bm.simulate(**JOB, rule="coomed", attack="ipm").plot_trust()
    assert run.plot_trust()._repr_png_().startswith(b"\x89PNG")
