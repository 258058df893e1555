"""The adaptive attacker does at least as much damage as every fixed attack of its set, to every victim of any rule."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import byzmesh as bm
from byzmesh.attacks import View, adaptive, attack
from byzmesh.attacks.adaptive import CANDIDATES
from byzmesh.attacks.directions import FIXED
from byzmesh.attacks.search import LENGTHS, STEPS, best_of, honest_average
from byzmesh.errors import ConfigError
from byzmesh.simulation.exchange import scene_of
from byzmesh.sweeps.build import prepare
from tests.attacks.scenes import frozen_models, mean_of_inbox, random_world, view_of

ONE_ROUND = {"name": "adaptive", "horizon": 1}
SORTING = ["TriMean", "CooMed"]
RULES = ["IOS", "FABA", "Reprieve", "WeiMean", "SCC", "TriMean", "CS+", "CooMed"]


def against(rule: str, network: Any, models: np.ndarray) -> View:
    """A view whose respond is a rule on a network, written with the public functions only."""
    scene = scene_of(network)

    def respond(messages: np.ndarray) -> np.ndarray:
        row = scene.place if len(messages) == len(scene.victims) else np.arange(len(scene.liar))
        forged = bm.Forged(scene.liar, scene.victim, row, models, rows=messages)
        return np.asarray(bm.aggregate_all(rule, network, models, forged).models)

    return View(models=models, scene=scene, respond=respond)


def damage(view: View, forged: Any) -> np.ndarray:
    assert view.respond is not None
    centre, _ = honest_average(view)
    messages = forged.dense()[forged.row]
    return np.asarray(np.linalg.norm(view.respond(messages)[view.scene.victims] - centre, axis=1))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("topology", ["paper/two-castle", "paper/er-12"])
def test_no_fixed_attack_of_the_set_does_more(rule: str, topology: str) -> None:
    network = bm.network(topology)
    random = np.random.default_rng(3)
    for near in (1.0, 0.01):
        models = random.normal(size=8) + near * random.normal(size=(len(network.honest), 8)) * random.uniform(0.2, 3, 8)
        view = against(rule, network, models)
        made = attack(ONE_ROUND)
        worst = damage(view, made.forge(view, made.init(view.scene))[0])
        for make in FIXED:
            fixed = make()
            done = damage(view, fixed.forge(view, fixed.init(view.scene))[0])
            assert (worst >= done * (1.0 - 1e-9)).all(), fixed.name


@given(seed=st.integers(0, 10_000), dtype=st.sampled_from([np.float32, np.float64]))
@settings(max_examples=30, deadline=None)
def test_against_the_mean_it_goes_as_far_as_it_may(seed: int, dtype: type) -> None:
    """A mean follows the longest lie, so the search must choose the longest one it tries."""
    world = random_world(seed, nodes=8, liars=2, probability=0.8)
    view = view_of(world, frozen_models(world, 9, seed, dtype))
    made = attack(ONE_ROUND)
    forged, _ = made.forge(view, made.init(view.scene))
    if not len(forged):
        return
    centre, spread = honest_average(view)
    far = np.linalg.norm(forged.dense() - centre, axis=1)
    assert (far >= max(LENGTHS) * STEPS[0] * spread * (1.0 - 1e-4)).all()


def test_honest_average_by_loops() -> None:
    world = random_world(5)
    models = frozen_models(world, 7)
    centre, spread = honest_average(view_of(world, models))
    x = {n: models[row] for row, n in enumerate(world.honest)}
    for v, n in enumerate(n for n in world.honest if world.lying_neighbours(n)):
        lost = sum(world.weights[n, b] for b in world.lying_neighbours(n))
        near = world.honest_neighbours(n)
        average = sum((world.weights[n, m] * x[m] for m in near), start=(world.weights[n, n] + lost) * x[n])
        np.testing.assert_allclose(centre[v], average, rtol=1e-12)
        assert spread[v] == pytest.approx(max(np.linalg.norm(x[m] - average) for m in [n, *near]))


def test_the_chosen_lies_do_the_damage_that_was_measured() -> None:
    """Answers per pair and per victim agree, and the messages sent are the best ones tried."""
    world = random_world(7)
    models = frozen_models(world, 11)
    respond = mean_of_inbox(world, models)
    view = view_of(world, models)
    made = attack(ONE_ROUND)
    forged, _ = made.forge(view, made.init(view.scene))
    np.testing.assert_allclose(respond(forged.dense()), respond(forged.dense()[forged.row]), rtol=1e-12)


def test_without_the_rule_in_use_the_attack_says_what_it_needs() -> None:
    world = random_world(1)
    view = view_of(world, frozen_models(world, 3))
    with pytest.raises(ConfigError, match="adaptive tries its messages on the rule in use"):
        attack(ONE_ROUND).forge(View(models=view.models, scene=view.scene), attack(ONE_ROUND).init(view.scene))


@pytest.mark.parametrize("rule", ["IOS", "Reprieve"])
def test_in_every_round_of_a_run_it_harms_most(rule: str) -> None:
    made, fixed = attack(ONE_ROUND), [make() for make in FIXED]
    rounds = []

    def forge(view: View, states: Any) -> Any:
        forged, _ = made.forge(view, states[0])
        worst = damage(view, forged)
        for other, state in zip(fixed, states[1:], strict=True):
            assert (worst >= damage(view, other.forge(view, state)[0]) * (1.0 - 1e-5)).all(), (other.name, view.round)
        rounds.append(worst.min())
        return forged, states

    watching = replace(made, forge=forge, init=lambda scene: [one.init(scene) for one in (made, *fixed)])
    problem = {"name": "quadratic", "dimension": 6, "targets": "normal"}
    run = prepare(problem=problem, network="paper/two-castle", rule=rule, attack=ONE_ROUND, rounds=25, step=0.2)
    assert replace(run, attack=watching).run().status == "finished"
    assert len(rounds) == 25 and min(rounds) > 0.0


def searches(rule: Any, topology: str, dtype: str, watch: Any, **more: Any) -> None:
    """Runs a few rounds of the adaptive attacker and calls watch(view, what the attack would tell)."""
    problem = {"name": "quadratic", "dimension": 40, "targets": "normal"}
    run = prepare(
        problem=problem, network=topology, rule=rule, attack=ONE_ROUND, rounds=6, step=0.2, dtype=dtype, seed=2, **more
    )
    made = run.attack

    def forge(view: View, states: Any) -> Any:
        forged, states = made.forge(view, states)
        watch(view, forged)
        return forged, states

    assert replace(run, attack=replace(made, forge=forge)).run().status == "finished"


@pytest.mark.parametrize("topology", ["paper/two-castle", "paper/er-12", "paper/octopus"])
@pytest.mark.parametrize("rule", ["IOS", "FABA", "Reprieve", "SCC", "CS+", "RTC", "GTS", "GeoMed", "CC", *SORTING])
def test_a_search_among_inner_products_or_ranks_measures_what_a_search_with_models_measures(
    rule: str, topology: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every trial, not only what is found: if a clipped lie is as bad at any length, the last bit decides."""
    search, trials, found, compared = best_of, [], [], []

    def noting(natural: Any, spread: Any, damage: Any) -> Any:
        def noted(which: Any, far: Any) -> Any:
            trials.append((which, far, damage(which, far)))
            return trials[-1][2]

        found.append((natural, spread, search(natural, spread, noted)))
        return found[-1][2]

    def again(natural: Any, spread: Any, damage: Any) -> Any:
        np.testing.assert_allclose(natural, found[-1][0], rtol=1e-9)
        np.testing.assert_allclose(spread, found[-1][1], rtol=1e-9)
        for which, far, done in trials:
            np.testing.assert_allclose(damage(which, far), done, rtol=1e-6, atol=1e-7)
            compared.append(done.max())
        trials.clear()
        return found[-1][2]

    def watch(view: View, forged: Any) -> None:
        assert (view.ranks if rule in SORTING else view.weigh) is not None
        monkeypatch.setattr(adaptive, "best_of", again)
        slow, _ = attack(ONE_ROUND).forge(replace(view, weigh=None, ranks=None), attack(ONE_ROUND).init(view.scene))
        monkeypatch.setattr(adaptive, "best_of", noting)
        np.testing.assert_allclose(forged.dense(), slow.dense(), rtol=1e-6, atol=1e-9)

    monkeypatch.setattr(adaptive, "best_of", noting)
    searches(rule, topology, "float64", watch)
    assert len(compared) == 6 * (1 + len(STEPS)) and min(compared) > 0.0


@pytest.mark.parametrize("rule", ["Krum", "MultiKrum", "SMEA", "CAF"])
def test_a_victim_that_hears_too_little_for_its_rule_keeps_its_model_in_trials_too(rule: str) -> None:
    kept = []

    def watch(view: View, forged: Any) -> None:
        assert view.weigh is not None and view.respond is not None
        apart, victims = view.models - view.models[0], view.scene.victims
        share = np.random.default_rng(view.round.number).normal(size=(len(victims), len(apart)))
        tried = view.weigh(apart @ apart.T, share[None])[0]
        real = view.respond(share @ apart + view.models[0])[victims]
        np.testing.assert_allclose(tried @ apart + view.models[0], real, rtol=1e-9, atol=1e-9)
        kept.extend((real == view.models[victims]).all(axis=1))

    lossy = {"name": "link-loss", "p": 0.5}
    searches(rule, "paper/er-12", "float64", watch, process=lossy, f=2)
    assert 0 < sum(kept) < len(kept)


@pytest.mark.parametrize(
    ("rule", "whole"), [("TriMean", True), ({"name": "CC", "centre": "memory"}, True), ("IOS", False)]
)
def test_only_rules_of_inner_products_are_searched_that_way(rule: Any, whole: bool) -> None:
    seen = []
    searches(rule, "paper/two-castle", "float32", lambda view, forged: seen.append(view.weigh is None))
    assert seen == [whole] * 6


def test_a_rule_without_defence_diverges_quietly() -> None:
    problem = {"name": "quadratic", "dimension": 3, "targets": "normal"}
    run = prepare(problem=problem, network="paper/two-castle", rule="weimean", attack=ONE_ROUND, rounds=200, step=0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        while run.status == "running" and np.isfinite(run.models).all():
            run.step()
            if run.round >= 200:  # from round 100 on, squares of the models are about as large as float32 can be
                break
    assert np.abs(run.models).max() > 1e15 or run.status == "diverged"


def test_looking_ahead_at_workers_that_diverge_is_quiet() -> None:
    """Told that nobody lies, IOS takes everything: futures of 25 rounds overflow."""
    problem = {"name": "quadratic", "dimension": 2, "targets": "normal"}
    run = prepare(problem=problem, network="paper/two-castle", rule="ios", attack="adaptive", rounds=400, f=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert run.run().status in ("finished", "diverged")


def test_it_looks_ahead_and_chooses_what_will_have_harmed_most() -> None:
    """With one candidate swapped for silence it would choose another; here it plays what the twin said is worst."""
    problem = {"name": "softmax", "partition": "one-class", "init": "zero"}
    run = prepare(problem=problem, network="paper/two-castle", rule="ios", attack="adaptive", rounds=60, seed=1)
    seen: list[tuple[int, float]] = []
    foresee = run._foresee

    def noted(part: Any, state: Any, rounds: int) -> float:
        seen.append((run.round, foresee(part, state, rounds)))
        return seen[-1][1]

    object.__setattr__(run, "_foresee", noted)
    for look in (0, 25):
        for _ in range(25):
            run.step()
        reached = 1.0 - float(np.mean(run.task.evaluate(run.models)["accuracy"]))
        foreseen = [harm for number, harm in seen if number == look]
        assert len(foreseen) == len(CANDIDATES)
        assert reached == max(foreseen), "the future that was foreseen is the one that came"
    assert {number for number, _ in seen} == {0, 25}


def test_mixed_with_another_it_looks_no_more_often() -> None:
    """`foresee` is there in every round that any of the two may want it."""
    made = attack("mixed", inner={"name": "adaptive", "horizon": 2}, other={"name": "adaptive", "horizon": 3})
    world = random_world(3, nodes=10, liars=2, probability=0.7)
    looks: list[tuple[int, int]] = []
    state = None
    for number in range(7):
        models = frozen_models(world, 4, seed=number)

        def foresee(part: Any, state: Any, rounds: int, number: int = number) -> float:
            looks.append((number, rounds))
            return 0.0

        view = replace(view_of(world, models, number), before=models, foresee=foresee)
        _, state = made.forge(view, made.init(view.scene) if state is None else state)
    assert made.horizon == 1
    assert set(looks) == {(0, 2), (2, 2), (4, 2), (6, 2), (0, 3), (3, 3), (6, 3)}


@pytest.mark.parametrize("chosen", range(len(CANDIDATES)))
def test_it_plays_a_candidate_as_it_would_be_played_alone(chosen: int) -> None:
    """Chosen in the third round, after others were told: with what it remembers of the first two."""
    world = random_world(3, nodes=10, liars=2, probability=0.7)
    made, alone = attack("adaptive", horizon=2), CANDIDATES[chosen]()
    state = kept = None
    for number, worst in enumerate((0, None, chosen)):
        models = frozen_models(world, 4, seed=number) + number
        calls = itertools.count()
        view = replace(
            view_of(world, models, number),
            before=models - 1.0,
            foresee=None if worst is None else lambda part, state, rounds: float(next(calls) == worst),
        )
        if number == 0:
            state, kept = made.init(view.scene), alone.init(view.scene)
        forged, state = made.forge(view, state)
        if number < 2:
            kept = alone.observe(view, kept)
    told = alone.forge(view, kept)[0]
    np.testing.assert_array_equal(forged.dense()[forged.row], told.dense()[told.row])
    assert state is not None and state[0] == chosen
