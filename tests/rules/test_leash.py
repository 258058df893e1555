"""Leash: however far apart the models are, lies move the honest mean by at most c b step sizes, and f plays no part."""

from __future__ import annotations

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.errors import ConfigError
from byzmesh.round import Round
from byzmesh.types import Floats

NETWORK = bm.network("paper/two-castle")
STEP, C = 0.1, 0.7


def after(rule: bm.Rule, models: Floats, lies: Floats, number: int) -> Floats:
    """The honest models after a round in which every liar tells every victim its row of `lies`."""
    weights, told = NETWORK.mixing, models.copy()
    told[list(NETWORK.byzantine)] = lies
    out = []
    for n in NETWORK.honest:
        near = [m for m in np.flatnonzero(weights[n]) if m != n]
        own_first = np.concatenate([[weights[n, n]], weights[n, near]])
        out.append(
            bm.aggregate(rule, models[n], told[near], own_first, round=Round(step_size=STEP, number=number, total=99))
        )
    return np.array(out)


def drift(rule: bm.Rule, scale: float, number: int) -> float:
    """How far a round moves the honest mean, in units of what the theorem allows."""
    random = np.random.default_rng(3)
    models = random.normal(size=(NETWORK.n, 5)) * random.uniform(0.01, scale, (NETWORK.n, 1))
    weights, liars, honest = NETWORK.mixing, list(NETWORK.byzantine), list(NETWORK.honest)
    weighed = weights[np.ix_(honest, liars)].sum() / len(honest)
    moved = after(rule, models, np.full((len(liars), 5), 1e6), number).mean(axis=0) - models[honest].mean(axis=0)
    return float(np.linalg.norm(moved) / (STEP * C * weighed))


@pytest.mark.parametrize("scale", [0.02, 1.0, 1e4])
def test_lies_move_the_mean_by_their_weight_times_c_steps(scale: float) -> None:
    assert 0.5 < drift(bm.rule("leash", c=C), scale, number=30) <= 1.0 + 1e-9


def test_the_theorem_needs_one_radius_for_all_and_begins_after_the_agreement() -> None:
    assert drift(bm.rule("leash", c=C), 1e4, number=29) > 10.0, "a radius by the inbox is another one for each worker"
    assert drift(bm.rule("leash", c=1.1 * C), 1.0, number=30) > 1.0, "the bound is sharp in c"


def test_different_first_models_come_together() -> None:
    random = np.random.default_rng(0)
    models = random.normal(size=(NETWORK.n, 5)) * 1e3
    honest, liars = list(NETWORK.honest), list(NETWORK.byzantine)
    apart = [float(np.ptp(models[honest], axis=0).max())]
    for number in range(30):
        models[honest] = after(bm.rule("leash", c=C), models, models[liars], number)
        apart.append(float(np.ptp(models[honest], axis=0).max()))
    assert apart[-1] < 0.1 * apart[0]
    alone = after(bm.rule("leash", c=C, agree=0), models, models[liars], 0)
    assert np.abs(alone - models[honest]).max() <= C * STEP


def test_options_are_checked() -> None:
    with pytest.raises(ConfigError, match="rule Leash: c must be"):
        bm.rule("leash", c=0.0)
    with pytest.raises(ConfigError, match="rule Leash: agree must be"):
        bm.rule("leash", agree=-1)
