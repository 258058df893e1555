"""The round loop equals Algorithm 1 written as plain loops, and a run is a function of its config."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.attacks.base import attacks
from byzmesh.errors import DataError, InfeasibleBound
from byzmesh.rules.base import rules
from tests.rules.cases import VARIANTS
from tests.simulation.loops import plain_loops
from tests.simulation.small import config, equal_when_resumed, write_data

FAULTS = {"nan", "infinity", "silent"}
ATTACKS = [
    name
    for name in attacks.names()
    if name not in {"none", "huge", "feigned-sleep"} | FAULTS
    and not (attacks.build(name).needs_response or attacks.build(name).poisons_data)
]
"""Attacks that answer to the rule in use are tested with the attack itself; `huge` overflows the plain loops,
which have no message where `feigned-sleep` is silent."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("data"))


def spread_out(data: Path) -> dict[str, Any]:
    """The problem with different initial models, so that rules have something to decide."""
    return {"name": "softmax", "dataset": str(data), "batch": 8, "init": "normal"}


@pytest.mark.parametrize(("name", "options"), VARIANTS, ids=str)
def test_rounds_equal_the_loops_for_every_rule(data: Path, name: str, options: dict[str, Any]) -> None:
    raw = config(data, rule={"name": name, **options}, rounds=3, problem=spread_out(data))
    np.testing.assert_allclose(bm.simulate(**raw).models, plain_loops(raw, 3), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("rule", ["IOS", "TriMean"])
def test_rounds_equal_the_loops_for_every_attack(data: Path, rule: str, attack: str) -> None:
    raw = config(data, rule=rule, attack=attack, rounds=2, problem=spread_out(data))
    got, want = bm.simulate(**raw).models, plain_loops(raw, 2)
    np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-7 * max(1.0, np.abs(want).max()))


@pytest.mark.parametrize("attack", sorted(FAULTS))
def test_broken_messages_are_survived(data: Path, attack: str) -> None:
    run = bm.simulate(**config(data, attack=attack, rounds=30))
    assert run.status == "finished" and run.final() > 0.6
    silent = bm.simulate(**config(data, attack="silent", rounds=30))
    np.testing.assert_allclose(run.models, silent.models, rtol=1e-9, atol=1e-12)


def test_no_attack_is_the_graph_of_the_honest(data: Path) -> None:
    run = bm.prepare(**config(data, attack="none"))
    assert run.network.n == 10 and len(run.network.byzantine) == 0
    assert run.bound.tolist() == [0] * 10


def test_label_flippers_follow_the_protocol_on_wrong_labels(data: Path) -> None:
    simulation = bm.prepare(**config(data, attack="label-flipping", rule="weimean", rounds=1))
    task, network = simulation.task, simulation.network
    first = task.initial()
    simulation.run()
    order = np.concatenate([network.honest, network.byzantine])  # rows of the task
    half = np.empty_like(first)
    for row in range(12):
        gradient = task.gradients(first[row][None], 0, rows=np.array([row]))[0]
        half[order[row]] = 0.999 * first[row] - 0.1 * gradient
    np.testing.assert_allclose(simulation.models, network.mixing @ half, rtol=1e-9, atol=1e-12)
    assert simulation.result().models.shape[0] == 10


def test_same_seed_same_bytes_and_other_seed_other_bytes(data: Path) -> None:
    one, two, other = (bm.simulate(**config(data, seed=seed)).models for seed in (3, 3, 4))
    assert one.tobytes() == two.tobytes() != other.tobytes()


def test_evaluating_more_often_changes_nothing(data: Path) -> None:
    rare = bm.simulate(**config(data, evaluate_every=12))
    often = bm.simulate(**config(data, evaluate_every=1, measure=["gradient"]))
    assert rare.models.tobytes() == often.models.tobytes()
    assert len(often.metrics["round"]) == 13 and len(rare.metrics["round"]) == 2
    assert (often.metrics["gradient"] >= 0).all()


STATEFUL = [
    {"rule": {"name": "CC", "centre": "memory"}},
    {"local": {"momentum": "heavy-ball"}},
    {"attack": "mimic"},
    {"attack": "gaussian", "dtype": "float32"},
    {"rule": {"name": "bucketing", "inner": "ios"}},
    {"attack": "label-flipping"},
    {"rule": "trimean", "attack": "sample-duplicating"},
]


@pytest.mark.parametrize("change", STATEFUL, ids=str)
def test_a_resumed_run_equals_an_uninterrupted_one(data: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    raw = config(data, **change)
    equal_when_resumed(raw, tmp_path / "run", evaluated=4, more=3)


def test_a_checkpoint_of_another_config_is_refused(data: Path, tmp_path: Path) -> None:
    bm.prepare(**config(data)).save(tmp_path / "run")
    with pytest.raises(DataError, match="another config"):
        bm.prepare(**config(data, seed=1)).restore(tmp_path / "run")


def test_divergence_ends_the_run_without_nan_metrics(data: Path) -> None:
    run = bm.simulate(
        **config(data, rule="weimean", attack="huge", step=1e30, rounds=50, evaluate_every=1, dtype="float32")
    )
    assert run.status == "diverged" and run.rounds < 50
    assert all(np.isfinite(values).all() for values in run.metrics.values())


def test_edges_tell_who_was_cut(data: Path) -> None:
    run = bm.simulate(**config(data, attack="gaussian", rounds=20))
    assert run.edges is not None
    assert (run.edges.cut[run.edges.lying] == 20).all()
    assert run.edges.mistakes == 0.0
    assert run.edges.rounds.tolist() == [20] * len(run.edges.rounds)
    assert len(run.edges.sender) == int(bm.network("paper/two-castle").layout.degree.sum())


def test_a_simulation_can_be_stepped_by_hand(data: Path) -> None:
    seen = [record["round"] for record in bm.prepare(**config(data, rounds=10))]
    assert seen == [0.0, 4.0, 8.0, 10.0]


def test_infeasible_bounds_are_refused_before_the_first_round(data: Path) -> None:
    with pytest.raises(InfeasibleBound):
        bm.prepare(**config(data, rule="trimean", f=5))


@pytest.mark.parametrize(("rule", "low", "high"), [("IOS", 0.80, 0.87), ("WeiMean", 0.0, 0.72)])
def test_reproduction_smoke(rule: str, low: float, high: float) -> None:
    """2,000 rounds under sign-flipping, paper profile: the official code has 84.1% with IOS at that round."""
    run = bm.simulate(
        problem={"name": "softmax", "partition": "one-class"},
        network="paper/two-castle",
        rule=rule,
        attack="sign-flipping",
        rounds=2000,
        evaluate_every=1000,
        profile="paper",
    )
    assert low <= run.metrics["accuracy"][-1] <= high


def test_every_rule_trains(data: Path) -> None:
    """Without an attack every rule but DRSA's and SimRew's slow ones learns the small problem."""
    for name in rules.names():
        if rules.entry(name).factory.__module__.startswith("byzmesh."):
            run = bm.simulate(**config(data, rule=name, attack="none", rounds=60, evaluate_every=60, f=0))
            assert run.final() > 0.6, name


def large(threads: int) -> Any:
    """A sparse network that aggregates in blocks, with receivers enough for two threads."""
    network = {"name": "k-regular", "n": 140, "k": 4, "byzantine": 7}
    problem = {"name": "quadratic", "targets": "normal", "dimension": 37, "init": "normal"}
    return bm.prepare(network=network, problem=problem, rule="ios", attack="sign-flipping", rounds=9, threads=threads)


def test_models_that_somebody_holds_are_not_overwritten() -> None:
    """The engine uses the memory of former models again, but not while somebody holds them or a part of them."""
    run = large(1)
    held, copies = [], []
    for k in range(6):
        assert run.step()
        if k % 2:
            held.append(run.models[3:5])
            copies.append(held[-1].copy())
    for view, copy in zip(held, copies, strict=True):
        np.testing.assert_array_equal(view, copy)
    free = large(1)
    places = [free.step() and free.models.ctypes.data for _ in range(6)]
    assert places[2:4] == places[4:6]  # two arrays in turns


def test_threads_give_the_same_bits_on_a_large_network() -> None:
    one, two = large(1).run(), large(2).run()
    assert one.models.tobytes() == two.models.tobytes()
