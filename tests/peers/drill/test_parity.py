"""Peers compute what the simulator computes: batch by batch, and after 200 rounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzmesh.peers.drill.drill import Drill, Nursery
from byzmesh.peers.share import bind_share
from byzmesh.problems.linear.task import LinearTask
from tests.peers.drill.simulated import final_models, simulation_of
from tests.peers.networks import LONG, make_network, two_castle
from tests.peers.worlds import PATIENT, train

ALL: dict[str, Any] = {"shares": 12, "share": {}, "dtype": "float64", "timeouts": PATIENT}


def little(samples: Path) -> dict[str, Any]:
    """A problem that takes no time."""
    return {"name": "softmax", "dataset": str(samples), "batch": 8}


@pytest.mark.real
def test_processes_equal_the_simulator(tmp_path: Path, nursery: Nursery, samples: Path) -> None:
    """Two castles of three: most of what processes take is their handshakes, and twelve have five times as many."""
    castles: dict[str, Any] = {"topology": {"name": "two-castle", "k": 3}, "rule": "ios", "f": 1}
    file = make_network(
        tmp_path, 6, real=True, rounds=10, evaluate_every=5, problem=little(samples), **castles, **{**ALL, "shares": 6}
    )
    with Drill(tmp_path / "network.yaml", tmp_path / "out", nursery=nursery) as drill:
        drill.start()
        assert drill.wait(LONG)
        status = drill.status()
    assert all(said["silent"] == 0 and said["moved_up"] == 0 and said["round"] == 10 for said in status.values())
    simulated = simulation_of(file).run()
    models = final_models(tmp_path / "out", range(6))
    assert np.allclose(models, simulated.models, rtol=1e-9, atol=1e-10)
    accuracy = [said["accuracy"] for said in status.values()]
    assert np.mean(accuracy) == pytest.approx(simulated.metrics["accuracy"][-1], abs=1e-4)


@pytest.mark.parametrize("rule", ["drsa", "simrew", "ubar", "cc", "bucketing"])
def test_rules_with_memory_looks_back_losses_and_draws(tmp_path: Path, samples: Path, rule: str) -> None:
    known: dict[str, dict[str, Any]] = {"drsa": {"at": "start"}, "bucketing": {"inner": {"name": "ios"}}}
    options = {**known, "cc": {"centre": "memory"}}.get(rule, {})
    file = two_castle(
        tmp_path,
        rounds=12,
        rule={"name": rule, **options},
        f=1,
        problem=little(samples),
        local={"decay": 0.01, "momentum": "heavy-ball"},
        **ALL,
    )
    simulated = simulation_of(file).run().models
    assert np.allclose(train(file, tmp_path, tmp_path / "out"), simulated, rtol=1e-8, atol=1e-9)


def test_twelve_peers_equal_the_simulator_after_200_rounds(tmp_path: Path, samples: Path) -> None:
    file = two_castle(tmp_path, rounds=200, evaluate_every=100, problem=little(samples), **ALL)
    models = train(file, tmp_path, tmp_path / "out")
    assert np.allclose(models, simulation_of(file).run().models, rtol=1e-9, atol=1e-10)


def test_peers_train_a_convolutional_network(tmp_path: Path) -> None:
    module = {"name": "cnn", "channels": [3, 4]}
    problem = {"name": "torch", "module": module, "partition": "one-class", "batch": 4, "test_samples": 200}
    file = two_castle(
        tmp_path,
        rounds=6,
        evaluate_every=3,
        problem=problem,
        step=0.05,
        local={"decay": 0.001, "steps": 2, "clip": 5.0},
        **ALL,
    )
    models = train(file, tmp_path, tmp_path / "out")
    assert np.allclose(models, simulation_of(file).run().models, rtol=1e-7, atol=1e-8)


def test_a_peer_draws_the_batches_that_the_simulator_draws_for_it(tmp_path: Path) -> None:
    file = two_castle(tmp_path)
    whole = simulation_of(file, [7, 9], {"name": "silent"}).task
    assert isinstance(whole, LinearTask)
    for peer in (0, 8, 11):
        task, row = bind_share(file, peer)
        assert isinstance(task, LinearTask)
        place = [p for p in range(12) if p not in (7, 9)].index(peer)
        for number in (0, 1, 77):
            mine = task.batches(number, np.array([row]))
            theirs = whole.batches(number, np.array([place]))
            assert all(np.array_equal(a, b) for a, b in zip(mine, theirs))
