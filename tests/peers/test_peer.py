"""The library door, and the pages."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzmesh.errors import ConfigError, InfeasibleBound, MissingExtra, PeerError
from byzmesh.peers import Keys, Patience, Peer, load_keys, new_keys
from byzmesh.peers.node import Node
from byzmesh.peers.share import bind_share
from byzmesh.peers.virtual import VirtualWorld
from byzmesh.rules.aggregate import aggregate
from tests.peers.networks import LONG, free_ports, make_network

TOGETHER = Patience(start=LONG, start_grace=LONG)
"""Nobody begins without the others."""


def circle(vectors: list[Any], rule: str = "weimean", **options: Any) -> list[tuple[Any, Any, int]]:
    """Two exchanges of all with all, in virtual time."""
    keys = new_keys()
    answers: dict[int, tuple[Any, Any, int]] = {}
    with VirtualWorld() as world:

        def act(me: int) -> None:
            others = {i: ("", keys.public) for i in range(len(vectors)) if i != me}
            with Peer(vectors[me], others, rule, me=me, address="", keys=keys, world=world, **options) as peer:
                first = peer.exchange(vectors[me])
                answers[me] = first, peer.exchange(first), peer.round

        for me in range(len(vectors)):
            world.start(lambda me=me: act(me))  # type: ignore[misc]
        world.run()
    return [answers[me] for me in range(len(vectors))]


def real_circle(vectors: list[Any], rule: str = "weimean", **options: Any) -> list[tuple[Any, Any, int]]:
    """The same with sockets, in threads."""
    count = len(vectors)
    keys = [new_keys() for _ in range(count)]
    where = [f"127.0.0.1:{port}" for port in free_ports(count)]

    def act(me: int) -> tuple[Any, Any, int]:
        others = {i: (where[i], keys[i].public) for i in range(count) if i != me}
        own: dict[str, Any] = {"me": me, "address": where[me], "keys": keys[me], "run": 4, "patience": TOGETHER}
        with Peer(vectors[me], others, rule, **own, **options) as peer:
            first = peer.exchange(vectors[me])
            return first, peer.exchange(first), peer.round

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(act, range(count)))


def agree(vectors: Any, answers: list[tuple[Any, Any, int]]) -> None:
    """Whether answers are what `aggregate` makes of the vectors, in their type."""
    for me, (first, second, number) in enumerate(answers):
        assert type(first) is type(vectors[me]) and first.dtype == vectors[me].dtype
        expected = aggregate("ios", vectors[me], [vectors[i] for i in range(4) if i != me], f=1)
        assert np.allclose(np.asarray(first), np.asarray(expected), atol=1e-6)
        assert np.isfinite(np.asarray(second)).all() and number == 2


@pytest.mark.parametrize("kind", ["float32", "float64", "torch"])
def test_exchange_returns_what_aggregate_does_in_the_callers_type(kind: str) -> None:
    vectors: Any = np.random.default_rng(0).normal(size=(4, 30))
    if kind == "torch":
        import torch

        vectors = torch.tensor(vectors, dtype=torch.float32)
    else:
        vectors = vectors.astype(kind)
    agree(vectors, circle(list(vectors), "ios", f=1))


@pytest.mark.real
def test_real_peers_exchange_as_virtual_ones_do() -> None:
    vectors = np.random.default_rng(0).normal(size=(4, 30)).astype(np.float32)
    agree(vectors, real_circle(list(vectors), "ios", f=1))


def test_rounded_vectors_come_close() -> None:
    made = np.random.default_rng(0).normal(size=(3, 300)).astype(np.float32)
    for channel, worst in (("float16", 1e-3), ("int8", 0.04)):
        answers = circle(list(made), channel=channel)
        assert max(np.abs(first - made.mean(axis=0)).max() for first, *_ in answers) < worst


@pytest.mark.real
def test_a_peer_that_does_not_come_is_silence() -> None:
    keys, where = new_keys(), [f"127.0.0.1:{port}" for port in free_ports(2)]
    patience = Patience(timeout=0.1, start=0.1)
    other = {1: (where[1], new_keys().public)}
    peer = Peer(np.ones(3), other, "weimean", me=0, address=where[0], keys=keys, patience=patience)
    try:
        assert peer.exchange(np.full(3, 2.0)).tolist() == [2.0, 2.0, 2.0]
        assert peer.rounds.verdicts[1]["silent"] == 1
    finally:
        peer.close()


def lonely(**options: Any) -> Peer:
    usual: dict[str, Any] = {"neighbours": {}, "rule": "weimean", "me": 0, "address": "127.0.0.1:*", "keys": new_keys()}
    return Peer(np.ones(3), **{**usual, **options})


@pytest.mark.real
def test_mistakes_are_named() -> None:
    other = {1: ("127.0.0.1:1", new_keys().public)}
    with pytest.raises(ConfigError, match="own id"):
        lonely(neighbours={0: other[1]})
    with pytest.raises(ConfigError, match="exactly the neighbours"):
        lonely(neighbours=other, weights={2: 0.5})
    with pytest.raises(ConfigError, match="sum to at most 1"):
        lonely(neighbours=other, weights={1: 1.5})
    with pytest.raises(InfeasibleBound):
        lonely(neighbours=other, rule="trimean", f=1)
    with lonely() as peer:
        with pytest.raises(ConfigError, match="3 coordinates"):
            peer.exchange(np.ones(4))
        with pytest.raises(PeerError, match="not finite"):
            peer.exchange(np.array([1.0, np.nan, 0.0]))
    with lonely(rule={"name": "drsa", "at": "start"}) as peer, pytest.raises(ConfigError, match="previous"):
        peer.exchange(np.ones(3))


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.ed25519", None)
    with pytest.raises(MissingExtra, match=r"byzmesh\[peers\]"):
        new_keys()


@pytest.mark.real
@pytest.mark.parametrize(("seconds", "saved"), [(1e-9, [1, 2, 3, 3]), (1e6, [3])])
def test_checkpoints_are_seconds_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, saved: list[int]
) -> None:
    """And one is written at the end, whatever the time."""
    spec: dict[str, Any] = {"edges": [], "rule": "nocomm", "problem": "quadratic", "checkpoint_seconds": seconds}
    file = make_network(tmp_path, 1, real=True, rounds=3, **spec)
    node = Node(file, 0, load_keys(tmp_path / "peer0.key"), out=tmp_path / "out")
    rounds: list[int] = []
    former = node.save

    def save() -> None:
        rounds.append(node.peer.round)
        former()

    monkeypatch.setattr(node, "save", save)
    node.run()
    assert rounds == saved


def test_own_data_of_a_peer(tmp_path: Path) -> None:
    file = make_network(tmp_path, 3, edges=[[0, 1], [1, 2]], rule="weimean", problem="softmax")
    labels = np.arange(60) % 3
    np.savez(tmp_path / "mine.npz", features=np.eye(3)[labels], labels=labels)
    task, row = bind_share(file, 2, tmp_path / "mine.npz")
    assert row == 0 and task.workers == 1 and task.dimension == 12
    quadratic = make_network(tmp_path / "other", 2, edges=[[0, 1]], rule="weimean", problem="quadratic")
    with pytest.raises(PeerError, match="--data"):
        bind_share(quadratic, 0, tmp_path / "mine.npz")


def test_keys_hide_their_secret_in_logs() -> None:
    assert "s3cret" not in f"{Keys('p', 's3cret')}"
