"""Channels between peers: the simulator's models bit by bit, restarts, hostile payloads, and peers that differ."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byzmesh.channels.pairs import Pairs
from byzmesh.config.schema import resolve
from byzmesh.networks import Network
from byzmesh.peers import peer as peer_module
from byzmesh.peers.identity import keygen, load_public, new_keys
from byzmesh.peers.network_file import NetworkFile, load_network, network_file, save_network
from byzmesh.peers.plan import addresses, plan_network
from byzmesh.peers.virtual import VirtualWorld
from byzmesh.peers.wire import HEADER, Format, WireError
from byzmesh.sweeps.build import build
from tests.peers.worlds import PATIENT, Nodes, drill, train
from tests.simulation.test_carrying import SPECS

PEERS, ROUNDS = 5, 8


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    keygen(folder, PEERS)
    return folder


@pytest.fixture(autouse=True)
def _no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Peers whose noise is the simulator's."""
    monkeypatch.setattr(peer_module, "new_secret", lambda: 0)
    monkeypatch.setattr(peer_module, "shared_numbers", lambda me, keys, public, run: everybodys(me, public))


def everybodys(me: int, neighbours: Iterable[int]) -> Pairs:
    """What simulated workers share."""
    return Pairs.of_links(np.full(len(list(neighbours)), me), np.array(sorted(neighbours)))


def config(samples: Path, channel: Any, **more: Any) -> dict[str, Any]:
    return resolve(
        {
            "problem": {"name": "softmax", "dataset": str(samples), "batch": 4, "partition": "one-class"},
            "network": {"name": "complete", "n": PEERS},
            "rule": "tm",
            "f": 1,
            "rounds": ROUNDS,
            "dtype": "float64",
            "channel": channel,
            "measure": ["bytes_sent"],
            **more,
        }
    )


def planned(run: dict[str, Any], keys: Path, folder: Path, **more: Any) -> NetworkFile:
    where = addresses("127.0.0.1:7000", PEERS)
    file = plan_network(
        run,
        Network.from_spec(run["network"]),
        where,
        load_public(keys),
        folder,
        timeouts=PATIENT | {"linger": 0.1},
        **more,
    )
    return load_network(save_network(file, folder / "network.yaml"))


@pytest.mark.parametrize("name", SPECS)
def test_peers_train_as_the_simulator_does(samples: Path, keys: Path, tmp_path: Path, name: str) -> None:
    run = config(samples, SPECS[name])
    sent: list[int] = []
    models = train(
        planned(run, keys, tmp_path),
        keys,
        tmp_path / "out",
        lambda nodes: nodes.world.checks.append(lambda: sent.extend(n.peer.sent_bytes for n in nodes.latest.values())),
    )
    simulated = build(run).run()
    np.testing.assert_array_equal(models, simulated.models)
    assert max(sent) == simulated.workers["bytes_sent"][-1].max()
    assert np.abs(models - build(config(samples, None)).run().models).max() > 1e-9, "the channel matters"


@pytest.mark.parametrize("name", ["top-k", "own mask", "three"])
def test_restarted_peers_end_where_uninterrupted_ones_do(samples: Path, keys: Path, tmp_path: Path, name: str) -> None:
    straight = train(planned(config(samples, SPECS[name]), keys, tmp_path), keys, tmp_path / "straight")
    train(planned(config(samples, SPECS[name], rounds=3), keys, tmp_path), keys, tmp_path / "out")
    resumed = train(planned(config(samples, SPECS[name]), keys, tmp_path), keys, tmp_path / "out")
    np.testing.assert_array_equal(resumed, straight)


def test_noise_of_real_peers_is_their_own(samples: Path, keys: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.undo()
    file = planned(config(samples, SPECS["noise"], rounds=1), keys, tmp_path)
    models = [train(file, keys, tmp_path / name) for name in ("one", "two")]
    assert np.abs(models[0] - models[1]).max() > 1e-4


def test_pair_noise_of_real_peers_cancels_and_is_nobody_elses(
    samples: Path, keys: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(peer_module, "new_secret", lambda: 0)
    loud, mean = {"name": "pair-noise", "sigma": 1.0}, {"rule": "weimean", "rounds": 3, "f": 0}
    noisy = train(planned(config(samples, loud, **mean), keys, tmp_path), keys, tmp_path / "loud")
    plain = build(config(samples, None, **mean)).run().models
    assert np.abs(noisy - plain).max() < 1e-12, "on a complete graph every peer has the mean after each round"
    once = planned(config(samples, loud, rule="tm", rounds=3, f=1), keys, tmp_path)
    simulated = build(config(samples, loud, rule="tm", rounds=3, f=1)).run().models
    assert np.abs(train(once, keys, tmp_path / "once") - simulated).max() > 1e-3, "other noise than simulated"


def test_a_peer_with_another_channel_is_refused_at_its_first_message(samples: Path, keys: Path, tmp_path: Path) -> None:
    file = planned(config(samples, "int8", rounds=3), keys, tmp_path)
    other = network_file({**file.model_dump(mode="json", exclude_unset=True), "channel": ["float16"]}, tmp_path)
    with VirtualWorld() as world:
        nodes, stranger = (Nodes(world, which, keys, tmp_path / "out") for which in (file, other))
        for peer in range(4):
            nodes.start(peer)
        stranger.start(4)
        world.run(until=30.0)
        for peer in range(4):
            refused = nodes.latest[peer].peer.tally.refused[4]
            assert refused["channel"] >= 1 and set(refused) == {"channel"}
            assert nodes.latest[peer].peer.rounds.seen[4] == -1
            (told,) = nodes.said("refused", peer)
            assert (told["neighbour"], told["reason"]) == (4, "channel")
            assert "the channels of the network files differ" in told["text"]


@pytest.mark.parametrize("name", SPECS)
@given(seed=st.integers(0, 2**63), kind=st.sampled_from(["noise", "ones", "extremes"]))
@settings(max_examples=40, deadline=None)
def test_hostile_payloads_are_refused_or_finite(name: str, seed: int, kind: str) -> None:
    """Bytes that a liar chose: refused as such, or a finite vector, and nothing else."""
    form = Format(5, 37, "float32", SPECS[name], pairs=Pairs({}))
    random = np.random.default_rng(seed)
    data = form.encode(np.zeros(37, np.float32), 3, int(random.integers(1 << 20)))
    payload = np.frombuffer(data, np.uint8)[HEADER.size : HEADER.size + form.payload]
    if kind == "noise":
        payload[:] = np.frombuffer(random.bytes(form.payload), np.uint8)
    elif kind == "ones":
        payload[:] = 255
    else:
        worst = np.array([np.nan, np.inf, 3.4e38, -3.4e38, 1e38], np.float32)
        whole = form.payload // 4 * 4
        payload[:whole] = random.choice(worst, whole // 4).view(np.uint8)
    message, why = None, ""
    try:
        message = form.decode(bytes(data), 3, largest=1e6)
    except WireError as error:
        why = error.reason
    if message is None:
        assert why in ("payload", "finite")
    else:
        assert message.vector.shape == (37,) and np.abs(message.vector).max() <= 1e6 * 1.001


def hostile(form: Format, payload: np.ndarray) -> bytes:
    """A message with this payload."""
    data = form.encode(np.zeros(form.dimension), 3, 0)
    np.frombuffer(data, np.uint8)[HEADER.size : HEADER.size + form.payload] = payload
    return bytes(data)


def test_a_refused_message_leaves_the_copy_as_it_was(samples: Path, keys: Path, tmp_path: Path) -> None:
    file = planned(config(samples, "top-k"), keys, tmp_path)
    with VirtualWorld() as world:
        with_one = peer_module.Peer(
            np.zeros(40),
            {3: ("", load_public(keys)[3])},
            "mean",
            me=0,
            address="",
            keys=new_keys(),
            channel=file.channel,
            f=0,
            world=world,
        )
        form = with_one.form
        before = with_one.heard[3][1][0]
        bad = np.zeros(form.payload, np.uint8)  # indices 0, 0, 0
        nan = np.frombuffer(bytes(form.encode(np.arange(40.0), 3, 0)), np.uint8)[HEADER.size :][: form.payload].copy()
        nan[-8:] = np.array([np.nan]).view(np.uint8)
        for payload, reason in ((bad, "payload"), (nan, "finite")):
            with_one._take(3, hostile(form, payload), with_one.world.now())
            assert with_one.tally.refused[3][reason] == 1
            assert with_one.heard[3][1][0] is before
        with_one._take(3, bytes(form.encode(np.arange(40.0), 3, 0)), with_one.world.now())
        assert with_one.heard[3][0] == 0 and with_one.heard[3][1][0] is not before


def test_lies_arrive_as_in_the_simulator(samples: Path, keys: Path, tmp_path: Path) -> None:
    run = config(samples, "int8", attack="sign-flipping", network={"name": "complete", "n": PEERS, "byzantine": [1]})
    nodes = drill(planned(run, keys, tmp_path), keys, tmp_path / "out", [1], "sign-flipping")
    simulated = build(run).run().models
    np.testing.assert_allclose(np.concatenate([nodes[peer].model for peer in sorted(nodes)]), simulated, rtol=1e-9)
