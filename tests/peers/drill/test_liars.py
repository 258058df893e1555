"""Ten honest and two lying peers: every attack does to peers what it does to simulated workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from byzmesh.attacks import attacks
from byzmesh.errors import PeerError
from byzmesh.networks import Network
from byzmesh.peers.drill import fork_server
from byzmesh.peers.drill.drill import Drill, Nursery
from byzmesh.peers.drill.launch import collect
from byzmesh.peers.drill.liars import Coalition, heard_scene
from byzmesh.peers.identity import load_keys
from byzmesh.peers.network_file import NetworkFile
from byzmesh.peers.node import Node
from byzmesh.peers.virtual import Process, VirtualWorld
from byzmesh.peers.wire import Format
from byzmesh.simulation.exchange import scene_of
from tests.peers.drill.simulated import final_models, simulation_of
from tests.peers.networks import LONG, make_network, real_six, two_castle
from tests.peers.worlds import PATIENT
from tests.peers.worlds import drill as virtual_drill

LIARS = [7, 9]
ROUNDS = 12
BUILT = [attacks.build(name) for name in attacks.names() if name != "none"]
FORGING = [attack.name for attack in BUILT if not attack.poisons_data and not attack.needs_data]
"""Without those that need the honest workers' data, which only a simulation gives to liars."""


def made(folder: Path, problem: dict[str, Any]) -> NetworkFile:
    """A step small enough that two runs which differ by rounding stay together, whatever the attack."""
    return two_castle(
        folder,
        problem=problem,
        rounds=ROUNDS,
        evaluate_every=ROUNDS,
        step={"name": "inverse-sqrt", "a": 0.1},
        f={peer: 1 if peer in LIARS else 2 for peer in range(12)},
        dtype="float64",
        timeouts={"grace": 3.0, "linger": 1.0},
    )


@pytest.mark.parametrize("name", FORGING)
def test_peers_end_where_simulated_workers_do(tmp_path: Path, samples: Path, name: str) -> None:
    file = made(tmp_path, {"name": "softmax", "dataset": str(samples), "batch": 8})
    # only a simulation can look ahead: in a drill adaptive is the search of one round
    more = {"horizon": 1} if name == "adaptive" else {}
    simulated = simulation_of(file, LIARS, {"name": name, **more}).run()
    nodes = virtual_drill(file, tmp_path, tmp_path / "out", LIARS, name)
    assert all(node.peer.round == ROUNDS for node in nodes.values())
    models = np.concatenate([nodes[peer].model for peer in sorted(nodes)])
    # nobody waits for who has slept for three rounds: its first lie counts a round later, or the next a round early
    np.testing.assert_allclose(models, simulated.models, rtol=0.0, atol=5e-3 if name == "feigned-sleep" else 1e-10)
    accuracy = np.mean([node.latest["accuracy"] for node in nodes.values()])
    assert accuracy == pytest.approx(simulated.metrics["accuracy"][-1], abs=0.05 if name == "feigned-sleep" else 1e-9)


class VirtualNursery(Nursery):
    """Does the jobs of a drill in a virtual world."""

    def __init__(self, world: VirtualWorld, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world, self.jobs, self.pids, self.codes = world, dict[str, Process](), {}, {}
        monkeypatch.setattr(fork_server, "Node", partial(Node, world=world))
        for name in ("signal", "gc"):  # of processes of their own
            monkeypatch.setattr(fork_server, name, Mock())

    def warm(self, path: Path, plugins: Sequence[str] = ()) -> None:
        pass

    def start(self, name: str, job: Mapping[str, Any], log: Path) -> None:
        self.jobs[name] = self.world.start(lambda: fork_server.run_job(dict(job)))

    def poll(self) -> None:
        pass


@pytest.mark.parametrize("name", ["backdoor", "label-flipping"])
def test_peers_with_poisoned_data_end_where_simulated_workers_do(
    tmp_path: Path, samples: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem: dict[str, Any] = {"name": "softmax", "dataset": str(samples), "batch": 8}
    if name == "backdoor":  # in images
        problem = {"name": "torch", "module": "linear", "batch": 8, "test_samples": 100}
    file = made(tmp_path, problem)
    simulated = simulation_of(file, LIARS, {"name": name}).run()
    with VirtualWorld() as world:
        drill = Drill(
            tmp_path / "network.yaml",
            tmp_path / "out",
            byzantine=LIARS,
            attack={"name": name},
            nursery=VirtualNursery(world, monkeypatch),
        )
        drill.start()
        world.run()
    np.testing.assert_allclose(final_models(tmp_path / "out", drill.honest), simulated.models, rtol=0.0, atol=1e-10)
    honest = simulation_of(file, LIARS, {"name": "silent"}).run()
    assert np.abs(honest.models - simulated.models).max() > 1e-4, "the poison matters"


@pytest.mark.real
@pytest.mark.parametrize("name", ["isolation", "label-flipping"])
def test_real_processes_do_the_same(tmp_path: Path, nursery: Nursery, samples: Path, name: str) -> None:
    """One attack that forges, and one that trains on poisoned data."""
    file = real_six(tmp_path, samples, rounds=ROUNDS, dtype="float64", timeouts={**PATIENT, "linger": 2.0})
    simulated = simulation_of(file, [5], {"name": name}).run()
    out = tmp_path / "out"
    with Drill(tmp_path / "network.yaml", out, byzantine=[5], attack={"name": name}, nursery=nursery) as running:
        running.start()
        assert running.wait(LONG)
        metrics = collect(running)["metrics"]
    assert metrics["round"][-1] == ROUNDS
    assert metrics["accuracy"][-1] == pytest.approx(simulated.metrics["accuracy"][-1], abs=1e-4)
    assert np.allclose(final_models(out, range(5)), simulated.models, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(("grace", "seconds"), [(0.01, 1.0), (15.0, 7.5)])
def test_liars_wait_for_half_the_time_that_is_waited_for_them(tmp_path: Path, grace: float, seconds: float) -> None:
    world = VirtualWorld()
    world.time = 100.0
    file = make_network(
        tmp_path,
        4,
        topology={"name": "complete", "n": 4},
        rule="weimean",
        problem="quadratic",
        timeouts={"grace": grace},
    )
    form = Format(file.run, 5, file.dtype)
    coalition = Coalition(file, {3: load_keys(tmp_path / "peer3.key")}, attacks.build("sign-flipping"), 5, world=world)
    try:
        for peer in range(3):
            coalition._hear(3, peer, form.encode(np.ones(5), peer, 0))
        coalition.lie()
        assert coalition.forged == 0
        for peer in range(2):
            coalition._hear(3, peer, form.encode(np.ones(5), peer, 1))
        world.time += 0.99 * seconds
        coalition.lie()
        assert coalition.forged == 0
        world.time += 0.02 * seconds
        coalition.lie()
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
