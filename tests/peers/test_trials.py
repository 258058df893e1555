"""Peers that hear too few while a later file is known: they look for the others by it, and take it up in its round.

In virtual time; the timeout is 2 seconds, and a file that is pending is so for the whole test.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzmesh.errors import Isolated
from byzmesh.peers import membership
from byzmesh.peers.identity import load_keys, one_more_key
from byzmesh.peers.network_file import NetworkFile, load_network
from byzmesh.peers.trials import Trials
from byzmesh.peers.virtual import VirtualWorld
from byzmesh.peers.wire import EVERYONE, Format
from tests.peers.members import Members, next_file, signed_network, start_all

FAR = 50_000
LONG = {"rounds": 100_000, "evaluate_every": 100_000}


class Split:
    """Links that work within each of two sides."""

    def __init__(self) -> None:
        self.apart: set[int] = set()

    def __call__(self, random: random.Random, sender: int, receiver: int, now: float) -> float | None:
        return None if (sender in self.apart) != (receiver in self.apart) else random.uniform(0.05, 0.1)


def on_disk(members: Members, me: int) -> int:
    """The epoch in force by a peer's folder."""
    return load_network(members.out / f"peer{me}.network.yaml").epoch


def assert_together(members: Members, epoch: int = 0) -> None:
    rounds = [node.peer.round for node in members.latest.values()]
    assert max(rounds) - min(rounds) <= 2, rounds
    assert set(members.epochs().values()) == {epoch} == {on_disk(members, me) for me in members.latest}
    assert all(node.peer.rounds.all_lively(members.world.time) for node in members.latest.values()), "not all are heard"


def changed_keys(folder: Path, file: NetworkFile, whom: list[int], from_round: int = FAR, **more: Any) -> NetworkFile:
    return next_file(folder, file, from_round, keys={me: one_more_key(folder, me)[1] for me in whom}, **more)


@pytest.mark.parametrize("change", ["its key", "most keys", "all keys", "removed", "its key, which is not there"])
def test_a_short_isolation_does_not_lose_a_peer(tmp_path: Path, change: str) -> None:
    """Peer 3 hears nobody for three timeouts, far before the round of a file that all know."""
    file = signed_network(tmp_path, 5, **LONG)
    if change == "removed":
        later = next_file(tmp_path, file, FAR, remove=[3])
    else:
        whom = {"most keys": [0, 1, 2], "all keys": [0, 1, 2, 3, 4]}.get(change, [3])
        later = changed_keys(tmp_path, file, whom)
    if change.endswith("not there"):
        (tmp_path / "peer3.2.key").unlink()
    split = Split()
    with VirtualWorld(1, split) as world:
        members = start_all(world, file, tmp_path)
        members.reach(10)
        members.give(0, later.text)
        world.run(world.time + 2.0)
        split.apart = {3}
        world.run(world.time + 6.0)
        split.apart = set()
        world.run(world.time + 4.0)
        assert_together(members)
        tried = {facts["epoch"] for facts in members.said("epoch tried", 3)}
        assert len(members.said("epoch tried")) == len(members.said("epoch tried", 3))  # nobody else had a reason
        assert tried == ({1} if change in ("its key", "most keys", "all keys") else set())


@pytest.mark.parametrize("talks", [False, True])
def test_who_was_down_finds_the_others_though_a_liar_answers_by_the_old_file(tmp_path: Path, talks: bool) -> None:
    """The key of peer 3 was replaced while it was down; its disk has the file, its round is of before."""
    file = signed_network(tmp_path, 6, **LONG)
    later = changed_keys(tmp_path, file, [3], from_round=60)
    form = Format(file.run, 5, file.dtype)
    with VirtualWorld(1, Split()) as world:
        members = start_all(world, file, tmp_path, range(5))

        def lie() -> None:
            transport = world.open(5, "", load_keys(tmp_path / "peer5.key"), file.remotes(5), 1 << 19, print)
            while True:
                for sender, data in transport.receive(1.0)[0]:
                    if len(data) == form.size and (talks or sender != 3):
                        transport.send(form.encode(np.full(5, 3.0), 5, form.decode(data, sender).round, sender))

        world.start(lie)
        members.reach(10)
        members.give(0, later.text)
        members.reach(40)
        members.kill(3)
        members.reach(80, peers=[0, 1, 2, 4])
        members.start(3)
        world.run(world.time + 8.0)  # the first round, a trial, and some rounds
        assert set(members.epochs().values()) == {1} and on_disk(members, 3) == 1
        assert members.latest[3].peer.round > members.latest[0].peer.round - 3
        (taken,) = members.said("epoch in force", 3)
        assert taken["round"] >= 60


def test_who_is_back_before_the_others_waits_for_them(tmp_path: Path) -> None:
    """All are killed, and peer 3 is up half a minute before the others; it tries, and trains with them."""
    file = signed_network(tmp_path, 5, **LONG, timeouts={"round": 2.0, "start": 4.0, "start_grace": 0.5, "alone": 60.0})
    later = changed_keys(tmp_path, file, [3])
    with VirtualWorld(1, Split()) as world:
        members = start_all(world, file, tmp_path)
        members.reach(10)
        members.give(0, later.text)
        world.run(world.time + 3.0)
        for me in range(5):
            members.kill(me)
        members.start(3)
        for me in (0, 1, 2, 4):
            members.start(me, at=world.time + 30.0)
        world.run(world.time + 40.0)
        assert_together(members)
        assert 2 <= len(members.said("epoch tried", 3)) <= 4


def two_that_miss_each_other(folder: Path) -> None:
    """Two peers are cut off from each other, and whenever one tries, the other does not."""
    file = signed_network(folder, 2, **LONG, f=0, rule="weimean")
    later = changed_keys(folder, file, [0, 1])
    split = Split()
    with VirtualWorld(1, split) as world:
        members = start_all(world, file, folder)
        members.reach(10)
        members.give(0, later.text)
        world.run(world.time + 3.0)
        split.apart = {0}
        for me in (0, 1):
            members.kill(me)
            members.start(me, at=world.time + 2.0 * me)
        world.run(world.time + 6.1)
        split.apart = set()
        world.run(world.time + 7.0)
        assert_together(members)


def test_two_that_look_for_each_other_meet(tmp_path: Path) -> None:
    two_that_miss_each_other(tmp_path)


def test_two_that_try_every_other_round_would_miss_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: pauses that do not grow."""

    class Alternating(Trials):
        def due(self, *, deaf: bool, trying: bool) -> int | None:
            return 0 if deaf and not trying else None

    monkeypatch.setattr(membership, "Trials", Alternating)
    with pytest.raises(AssertionError, match="not all are heard"):
        two_that_miss_each_other(tmp_path)


def test_trials_do_not_pass_for_company(tmp_path: Path) -> None:
    """By the other file all neighbours are strangers; a peer that hears none of either kind still is alone."""
    file = signed_network(tmp_path, 4, **LONG)
    later = changed_keys(tmp_path, file, [0, 1, 2, 3])
    split = Split()
    with VirtualWorld(1, split) as world:
        members = start_all(world, file, tmp_path)
        members.reach(10)
        members.give(0, later.text)
        world.run(world.time + 3.0)
        split.apart = {3}
        since = world.time
        with pytest.raises(Isolated, match="heard none of its 3 neighbours"):
            world.run(world.time + 40.0)
        assert 19.0 < world.time - since < 24.0 and members.said("epoch tried", 3)


@pytest.mark.parametrize("f", [1, 0])
def test_a_liar_beside_trials_does_not_pass_for_company(tmp_path: Path, f: int) -> None:
    """Peer 0 hears peer 4 only, who may lie: by both files with the same key. The later file says that f lie."""
    file = signed_network(tmp_path, 5, **LONG)
    later = changed_keys(tmp_path, file, [1, 2, 3], f=f)
    cut: set[int] = set()

    def link(random: random.Random, sender: int, receiver: int, now: float) -> float | None:
        return None if 0 in (sender, receiver) and {sender, receiver} & cut else random.uniform(0.05, 0.1)

    with VirtualWorld(1, link) as world:
        members = start_all(world, file, tmp_path)
        members.reach(10)
        members.give(0, later.text)
        world.run(world.time + 3.0)
        cut |= {1, 2, 3}
        since = world.time
        world.run(since + 6.5)  # three timeouts and a little: what it trains from here on is not kept
        members.latest[0].folder.save = lambda *_: pytest.fail("kept")  # type: ignore[method-assign]
        with pytest.raises(Isolated, match="heard 1 of its 4 neighbours, which may lie, for 20 s"):
            world.run(since + 60.0)
        assert 19.0 < world.time - since < 24.0 and len(members.said("epoch tried", 0)) > 1


def test_on_trial_as_many_may_lie_as_before(tmp_path: Path) -> None:
    """From the later file's round on nobody lies, it says. The liar, by that file too, claims that its round has come;
    it is the only one whom peer 3 hears."""
    file = signed_network(tmp_path, 5, **LONG)
    later = changed_keys(tmp_path, file, [3], f=0)
    form = Format(file.run, 5, file.dtype)
    split = Split()
    with VirtualWorld(1, split) as world:
        members = start_all(world, file, tmp_path, range(4))

        def lie() -> None:
            transport = world.open(4, "", load_keys(tmp_path / "peer4.key"), file.remotes(4), 1 << 19, print)
            while True:
                transport.receive(0.3)
                if split.apart:
                    transport.change("", transport.keys, later.remotes(4))
                transport.send(form.encode(np.full(5, 3.0), 4, FAR + 100, EVERYONE))

        def cautious() -> None:
            assert all(node.peer.f == 1 == node.peer._bound[0] for node in members.latest.values())

        world.start(lie)
        world.checks.append(cautious)
        members.reach(10)
        members.give(0, later.text)
        world.run(world.time + 2.0)
        split.apart = {3, 4}
        world.run(world.time + 8.0)
        peer = members.latest[3].peer
        assert members.said("epoch tried", 3) and peer.rounds.seen[4] == FAR + 100
        assert members.epochs()[3] == 0 and peer.round < 1000
