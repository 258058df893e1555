"""Ten honest and two lying peers: every attack does to peers what it does to simulated workers."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from byzmesh.attacks import attacks
from byzmesh.errors import PeerError
from byzmesh.networks import Network
from byzmesh.peers.drill.drill import Drill, Nursery
from byzmesh.peers.drill.launch import collect
from byzmesh.peers.drill.liars import Coalition, heard_scene
from byzmesh.peers.identity import load_keys
from byzmesh.peers.wire import Format
from byzmesh.simulation.exchange import scene_of
from tests.peers.drill.simulated import simulation_of
from tests.peers.networks import make_network, two_castle

LIARS = [7, 9]
ROUNDS = 12
ATTACKS = [name for name in attacks.names() if name != "none"]
UNHEARD = ("infinity", "nan", "silent")
"""Attacks whose messages never count: every peer waits for them as long as it may."""


@pytest.mark.parametrize("name", ATTACKS)
def test_accuracy_is_the_simulators(tmp_path: Path, nursery: Nursery, name: str) -> None:
    problem = {"name": "softmax", "partition": "one-class"}
    if name == "backdoor":  # in images
        problem = {"name": "torch", "module": "linear", "partition": "one-class"}
    # a busy machine may keep a peer waiting; what never comes is not worth it
    patience = {"grace": 3.0, "start_grace": 1.5} if name in UNHEARD else {"grace": 15.0, "start_grace": 15.0}
    # a step small enough that two runs which differ by rounding stay together, whatever the attack
    file = two_castle(
        tmp_path,
        problem=problem,
        rounds=ROUNDS,
        evaluate_every=ROUNDS,
        step={"name": "inverse-sqrt", "a": 0.1},
        f={peer: 1 if peer in LIARS else 2 for peer in range(12)},
        timeouts={**patience, "linger": 2.0},
    )
    simulated = simulation_of(file, LIARS, {"name": name}).run()
    # min-max lies exactly as far out as the farthest honest model: which of the two is cut is a matter of rounding
    near = 0.03 if name == "min-max" else 0.015
    out = tmp_path / "out"
    with Drill(tmp_path / "network.yaml", out, byzantine=LIARS, attack={"name": name}, nursery=nursery) as drill:
        drill.start()
        assert drill.wait(60)
        metrics = collect(drill)["metrics"]
    assert metrics["round"][-1] == ROUNDS
    assert metrics["accuracy"][-1] == pytest.approx(simulated.metrics["accuracy"][-1], abs=near)


@pytest.mark.parametrize(("grace", "seconds"), [(0.01, 1.0), (15.0, 7.5)])
def test_liars_wait_for_half_the_time_that_is_waited_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grace: float, seconds: float
) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    file = make_network(
        tmp_path,
        4,
        topology={"name": "complete", "n": 4},
        rule="weimean",
        problem="quadratic",
        timeouts={"grace": grace},
    )
    form = Format(file.run, 5, file.dtype, file.wire)
    coalition = Coalition(file, {3: load_keys(tmp_path / "peer3.key")}, attacks.build("sign-flipping"), 5)
    try:
        for peer in range(3):
            coalition._hear(peer, form.encode(np.ones(5), peer, 0))
        coalition._lie()
        assert coalition.forged == 0
        for peer in range(2):
            coalition._hear(peer, form.encode(np.ones(5), peer, 1))
        now += 0.99 * seconds
        coalition._lie()
        assert coalition.forged == 0
        now += 0.02 * seconds
        coalition._lie()
        assert coalition.forged == 1
    finally:
        coalition.close()


def test_liars_know_what_the_simulators_do_where_they_hear_everybody(tmp_path: Path) -> None:
    network = two_castle(tmp_path).network
    heard, whole = heard_scene(network, LIARS), scene_of(network.with_byzantine(LIARS))
    for name in ("honest", "liar", "victim", "place", "victims", "neighbour", "weight", "own_weight", "lie_weight"):
        assert np.array_equal(getattr(heard, name), getattr(whole, name)), name
    assert np.allclose(heard.fiedler(), whole.fiedler()) or np.allclose(heard.fiedler(), -whole.fiedler())


def test_liars_do_not_know_whom_they_do_not_hear() -> None:
    path = Network.from_edges([(0, 1), (1, 2), (2, 3), (3, 4)])
    scene = heard_scene(path, [0])
    assert scene.honest.tolist() == [1] and scene.neighbour.shape == (1, 0)
    assert scene.lie_weight[0] == path.mixing[1, 0] and scene.own_weight[0] == path.mixing[1, 1]


def test_attacks_that_do_not_forge_are_refused(tmp_path: Path) -> None:
    file = two_castle(tmp_path)
    with pytest.raises(PeerError, match="choose another"):
        Coalition(file, {}, attacks.build("label-flipping"), 5)
