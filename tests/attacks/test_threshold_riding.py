"""The lies of riding, pull-back and target are the worst of their kind, on the rule itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.attacks import View, attack
from byzmesh.attacks.adaptive import CANDIDATES
from byzmesh.attacks.search import honest_average
from byzmesh.attacks.threshold_riding import LENGTHS
from byzmesh.errors import ConfigError
from byzmesh.simulation.exchange import scene_of
from byzmesh.sweeps.build import prepare
from tests.attacks.test_adaptive import against

WRONG = np.linspace(-3.0, 2.0, 8)


def scene_with_target(rule: str, spec: Any) -> tuple[View, Any, np.ndarray, np.ndarray]:
    """A view against a rule, the attack, its messages by victim, and what the rule makes of them, by victim."""
    random = np.random.default_rng(5)
    network = bm.network("paper/er-12")
    view = against(rule, network, random.normal(size=(len(network.honest), 8)))
    view = replace(view, scene=replace(view.scene, wrong_model=lambda rounds: WRONG, gradient=lambda model: WRONG))
    made = attack(spec)
    forged, _ = made.forge(view, made.init(view.scene))
    assert view.respond is not None
    return view, made, forged.dense(), view.respond(forged.dense())[view.scene.victims]


@pytest.mark.parametrize("rule", ["IOS", "TriMean", "SCC", "CS+"])
@pytest.mark.parametrize("direction", ["ALIE", "negative", "ascent"])
def test_no_other_length_moves_a_victim_farther(rule: str, direction: str) -> None:
    view, _, lies, after = scene_with_target(rule, {"name": "threshold-riding", "direction": direction})
    centre, spread = honest_average(view)
    push = lies - centre
    moving = np.linalg.norm(push, axis=1) > 0.0
    assert moving.any()
    unit = push / np.where(moving, np.linalg.norm(push, axis=1), 1.0)[:, None]
    assert view.respond is not None
    gain = np.einsum("vd,vd->v", after - centre, unit)
    for factor in LENGTHS:
        other = view.respond(centre + (factor * spread)[:, None] * unit)[view.scene.victims]
        assert (1.005 * gain >= np.einsum("vd,vd->v", other - centre, unit))[moving].all(), factor


def test_a_rule_that_cuts_is_ridden_to_its_threshold() -> None:
    """A fifth farther, and IOS cuts the lie for somebody: the length is the largest it takes."""
    view, _, lies, after = scene_with_target("IOS", {"name": "threshold-riding", "direction": "ALIE"})
    centre, _ = honest_average(view)
    push = lies - centre
    assert view.respond is not None
    beyond = view.respond(centre + 1.2 * push)[view.scene.victims]
    lost = np.einsum("vd,vd->v", beyond - centre, push) < np.einsum("vd,vd->v", after - centre, push)
    assert lost.any()


@pytest.mark.parametrize("rule", ["IOS", "TriMean"])
def test_target_pulls_towards_it_and_never_beyond(rule: str) -> None:
    view, _, lies, after = scene_with_target(rule, "target")
    centre, _ = honest_average(view)
    way = WRONG - centre
    far = np.linalg.norm(lies - centre, axis=1)
    assert (far <= np.linalg.norm(way, axis=1) * (1.0 + 1e-6)).all() and far.max() > 0.0
    assert np.einsum("vd,vd->v", after - centre, way).sum() > 0.0


@pytest.mark.parametrize("reach", [1.0, 0.5])
def test_box_is_as_near_to_the_wrong_model_as_honest_values_are(reach: float) -> None:
    view, _, lies, after = scene_with_target("TriMean", {"name": "box", "reach": reach})
    for lie, victim, inbox in zip(lies, view.scene.victims, view.scene.neighbour, strict=True):
        rows = view.models[[victim, *inbox[inbox >= 0]]]
        for j, wrong in enumerate(WRONG):
            low, high = min(rows[:, j]), max(rows[:, j])
            centre, half = (low + high) / 2, reach * (high - low) / 2
            told = wrong if centre - half <= wrong <= centre + half else centre + np.sign(wrong - centre) * half
            assert lie[j] == pytest.approx(told)
    centre, _ = honest_average(view)
    assert np.einsum("vd,vd->v", after - centre, WRONG - centre).sum() > 0.0


@pytest.mark.parametrize("reference", ["start", "round"])
def test_pull_back_does_at_least_what_repeating_the_former_models_does(reference: str) -> None:
    network = bm.network("paper/er-12")
    random = np.random.default_rng(6)
    start = random.normal(size=(len(network.honest), 8))
    first, now = against("IOS", network, start), replace(against("IOS", network, start + 1.0), before=start)
    made = attack("pull-back", reference=reference)
    state = made.init(first.scene)
    if reference == "start":
        _, state = made.forge(first, state)
    forged, _ = made.forge(now, state)
    assert now.respond is not None
    centre, _ = honest_average(now)
    back = start.mean(axis=0) - centre
    repeated = now.respond(np.broadcast_to(start.mean(axis=0), centre.shape).copy())[now.scene.victims]
    done = now.respond(forged.dense())[now.scene.victims]
    gain, plain = (np.einsum("vd,vd->v", moved - centre, back) for moved in (done, repeated))
    assert (gain >= plain - 1e-9).all() and (gain > plain + 1e-6).any()


def test_the_wrong_model_is_wrong_and_needs_data() -> None:
    with pytest.raises(ConfigError, match="attacks target and box train a wrong model"):
        bm.forge("target", bm.network("paper/two-castle"), np.zeros((10, 3)))
    run = prepare(problem={"name": "softmax"}, network="paper/two-castle", attack="target", rounds=1)
    parts = bm.attack("adaptive").init(scene_of(bm.network("paper/two-castle")))[1:]
    needing = [make().needs_data for make in CANDIDATES]
    assert [part is None for part in parts] == needing and sum(needing) == 6, "it can do without"
    wrong = run.attack_state
    assert run.task.evaluate(np.asarray(wrong)[None])["accuracy"][0] < 0.1
