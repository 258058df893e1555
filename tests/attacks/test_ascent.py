"""Ascent: the corner of the honest box that is up the honest loss, with a gradient that is taken anew."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.attacks import View, attack
from byzmesh.attacks.ascent import uphill
from byzmesh.errors import ConfigError
from byzmesh.round import Round
from byzmesh.sweeps.build import prepare
from tests.attacks.test_adaptive import against

NETWORK = bm.network("paper/er-12")


def seen(round: int, shift: float = 0.0) -> View:
    """A round in which the loss is |model - shift|^2 / 2, so that the gradient tells who asked."""
    models = np.random.default_rng(3).normal(size=(len(NETWORK.honest), 6))
    view = against("TriMean", NETWORK, models)
    scene = replace(view.scene, gradient=lambda model: model - shift)
    return replace(view, scene=scene, round=Round(number=round))


def test_every_coordinate_is_the_honest_value_farthest_up() -> None:
    view = seen(0)
    made = attack("ascent")
    forged, slope = made.forge(view, made.init(view.scene))
    average = [sum(float(model[j]) for model in view.models) / len(view.models) for j in range(6)]
    assert slope == pytest.approx(average)
    for lie, victim, inbox in zip(forged.dense(), view.scene.victims, view.scene.neighbour, strict=True):
        for j in range(6):
            values = [view.models[row, j] for row in (victim, *inbox[inbox >= 0])]
            assert lie[j] == pytest.approx(max(values) if average[j] > 0 else min(values))


def test_with_a_length_every_victim_is_told_its_own_model_and_a_way_up() -> None:
    view = seen(0, shift=2.0)
    made = attack("ascent", length=50.0)
    forged, _ = made.forge(view, made.init(view.scene))
    slope = [sum(float(model[j]) for model in view.models) / len(view.models) - 2.0 for j in range(6)]
    norm = sum(value**2 for value in slope) ** 0.5
    for lie, victim in zip(forged.dense(), view.scene.victims, strict=True):
        assert lie == pytest.approx([view.models[victim, j] + 50.0 * slope[j] / norm for j in range(6)])
    with pytest.raises(ConfigError, match=r"attack ascent: length must be a positive number, got -1"):
        attack("ascent", length=-1.0)
    with pytest.raises(ConfigError, match=r"attack ascent: length must be at most 1e38, got 1e\+39"):
        attack("ascent", length=1e39)


@pytest.mark.parametrize("made", [attack("ascent", period=3), uphill(period=3)])
def test_the_gradient_is_taken_anew_every_period(made: Any) -> None:
    state, slopes = made.init(seen(0).scene), []
    for number in range(1, 8):  # the first round that liars see need not be the first of all
        _, state = made.forge(seen(number, shift=float(number)), state)
        slopes.append(float(state[0]))
    asked = [1, 1, 3, 3, 3, 6, 6]
    base = slopes[0] + 1.0
    assert slopes == pytest.approx([base - number for number in asked])


def test_uphill_points_along_the_gradient_from_everywhere() -> None:
    view = seen(0, shift=5.0)
    point = uphill().forge(view, np.zeros(0))[0].dense()[0]
    slope = view.models.mean(axis=0) - 5.0
    for model in view.models:
        way = point - model
        assert way @ slope > 0.999 * np.linalg.norm(way) * np.linalg.norm(slope)


@pytest.mark.parametrize(
    "spec", ["ascent", {"name": "ascent", "length": 9.0}, {"name": "threshold-riding", "direction": "ascent"}]
)
def test_it_needs_data(spec: Any) -> None:
    assert attack(spec).needs_data
    view = against("TriMean", NETWORK, np.zeros((len(NETWORK.honest), 3)))
    with pytest.raises(ConfigError, match="an ascent takes the gradient of the honest workers' loss"):
        attack(spec).forge(view, np.zeros(0))


def test_momentum_does_not_save_a_trimmed_mean() -> None:
    """What `box`, with a goal that stays, does not show: 400 rounds of this take it to 27% where `box` leaves 70."""
    common: dict[str, Any] = {
        "problem": {"name": "softmax", "partition": {"name": "dirichlet", "alpha": 0.4}},
        "network": {"name": "k-regular", "n": 16, "k": 7, "seed": 3, "byzantine": [3, 10, 12]},
        "rule": "TriMean",
        "local": {"momentum": "exponential", "beta": 0.99},
        "rounds": 150,
        "evaluate_every": 150,
        "dtype": "float32",
    }
    accuracy = {name: prepare(**common, attack=name).run().final("accuracy") for name in ("box", "ascent")}
    assert accuracy["ascent"] < 0.5 < 0.7 < accuracy["box"]
