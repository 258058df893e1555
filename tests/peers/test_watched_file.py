"""What others may give to a running peer: any bytes on its disk, and files as often as they like from a neighbour."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from byzmesh.peers.epochs import order
from byzmesh.peers.identity import Keyring, load_keys
from byzmesh.peers.membership import HEARD_AT_ONCE, Membership
from byzmesh.peers.node import Node
from byzmesh.peers.signing import LARGEST_FILE
from byzmesh.peers.virtual import VirtualWorld
from byzmesh.peers.wire import HEADER, WireError, encode_file
from tests.peers.members import Members, next_file, signed_network, start_all

NONSENSE = {
    "nothing": b"",
    "bytes": bytes(range(256)),
    "text": b"hello",
    "deep": b"a: " + b"[" * 20_000,
    "no date": b"operator: 2020-99-99\n",
    "a long number": b"rounds: " + b"9" * 6000 + b"\npeers: []\n",
    "itself": b"&a\npeers: *a\n",
}


def test_whatever_is_in_the_watched_file_is_refused_and_training_goes_on(tmp_path: Path) -> None:
    file = signed_network(tmp_path, 4, rounds=1000, evaluate_every=1000)
    with VirtualWorld(1, lambda random, *_: random.uniform(0.05, 0.1)) as world:
        members = start_all(world, file, tmp_path)
        members.reach(5)
        for count, (name, text) in enumerate(NONSENSE.items()):
            members.give(0, text)
            world.run(world.time + 1.5)
            assert len(members.said("refused", 0)) == count + 1, name
        members.give(0, next_file(tmp_path, file, 0, f=0).text)
        world.run(world.time + 3.0)
        assert members.epochs() == dict.fromkeys(range(4), 1)


def test_a_file_copied_while_a_peer_starts_is_read(tmp_path: Path) -> None:
    """Between reading its file and watching it, a peer loads data and compiles. A known file changes nothing."""
    file = signed_network(tmp_path, 4, rounds=1000, evaluate_every=1000)
    later = next_file(tmp_path, file, 0, f=0)

    class Slow(Members):
        def make(self, me: int, **options: Any) -> Node:
            if me == 0:
                self.give(me, later.text)
            ring = Keyring(self.keys / f"peer{me}.key")
            return Node(self.file, me, ring, out=self.out, path=self.path(me), world=self.world, **options)

    with VirtualWorld(1, lambda random, *_: random.uniform(0.05, 0.1)) as world:
        members = Slow(world, file, tmp_path, tmp_path / "out")
        for me in file.ids:
            if me != 0:
                members.give(me, file.text)
            members.start(me)
        world.run(5.0)
        assert members.epochs() == dict.fromkeys(range(4), 1)
        assert len(members.said("epoch known")) == 4 and not members.said("refused") and not members.said("conflict")


def test_a_file_that_cannot_be_opened_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gone between two reads, say: no error that only a file system has ends the peer."""
    file = signed_network(tmp_path, 4, rounds=1000, evaluate_every=1000)

    def gone(*_: object) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    with VirtualWorld(1, lambda random, *_: random.uniform(0.05, 0.1)) as world:
        members = start_all(world, file, tmp_path)
        members.reach(5)
        monkeypatch.setattr("byzmesh.peers.membership.load_network", gone)
        members.give(0, b"anything")
        world.run(world.time + 2.0)
        assert "No such file" in members.said("refused", 0)[0]["text"]


@pytest.mark.parametrize("what", ["a pipe", "a folder", "too long"])
def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path, what: str) -> None:
    file = signed_network(tmp_path, 4, rounds=1000, evaluate_every=1000)
    with VirtualWorld(1, lambda random, *_: random.uniform(0.05, 0.1)) as world:
        members = start_all(world, file, tmp_path)
        members.reach(5)
        path = members.path(0)
        path.unlink()
        if what == "a pipe":
            os.mkfifo(path)
        elif what == "a folder":
            path.mkdir()
        else:
            path.write_bytes(file.text + b"#" * LARGEST_FILE)
        members.reach(40)
        assert "no regular file" in members.said("refused", 0)[0]["text"]


def test_a_file_costs_what_as_many_bytes_of_messages_cost(tmp_path: Path) -> None:
    """Of small messages thousands may come at once; so many of the longest files would be gigabytes."""
    file = signed_network(tmp_path, 5, rounds=1000, evaluate_every=1000)
    with VirtualWorld() as world:
        members = start_all(world, file, tmp_path, range(4))
        members.reach(5)
        peer = members.latest[0].peer
        frame = encode_file(bytes(LARGEST_FILE), file.run, 4, 0)
        taken = 0
        while 4 not in peer.cut_off:
            peer._take(4, frame, world.now())
            taken += len(frame)
        assert 8 * len(frame) < taken < 64 << 20


@pytest.mark.parametrize("winner_first", [False, True])
def test_whoever_gets_two_files_of_one_epoch_logs_it_once(tmp_path: Path, winner_first: bool) -> None:
    """Whichever it had, and however often a liar or the disk repeats either."""
    file = signed_network(tmp_path, 4)
    rivals = [next_file(tmp_path, file, 30, f"{f}.yaml", f=f) for f in (0, 1)]
    rivals.sort(key=order, reverse=winner_first)
    said: list[str] = []
    ring = Keyring(tmp_path / "peer0.key")
    membership = Membership(file, 0, ring, lambda: 0.0, lambda event, **_: said.append(event), out=tmp_path)
    for number in range(20):
        membership.offer(rivals[number % 2])
        assert said.count("conflict") == min(number, 1)
    assert membership.epochs.files[-1] is max(rivals, key=order)


def test_a_neighbour_may_send_one_file_per_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four per second for five seconds: eight at once and no more than one per second are read, the others only
    charged to the sender. Then one per second: all are read."""
    file = signed_network(tmp_path, 5, rounds=1000, evaluate_every=1000)
    read: list[int] = []
    refused: list[int] = []
    receive = Membership.receive

    def watched(member: Membership, text: bytes, neighbour: int) -> None:
        if member.me == 0 and neighbour == 4:
            try:
                receive(member, text, neighbour)
            except WireError as error:
                (refused if "more network files than" in str(error) else read).append(neighbour)
                raise
        else:
            receive(member, text, neighbour)

    monkeypatch.setattr(Membership, "receive", watched)
    with VirtualWorld(1, lambda random, *_: random.uniform(0.05, 0.1)) as world:
        members = start_all(world, file, tmp_path, range(4))

        def flood() -> None:
            keys, size = load_keys(tmp_path / "peer4.key"), len(file.text) + HEADER.size
            transport = world.open(4, "", keys, file.remotes(4), size, lambda *_, **__: None)
            world.sleep(1.0)
            transport.receive(0.0)  # who joined is known now
            for number in range(25):
                world.sleep(0.25 if number < 20 else 1.1)
                transport.send(encode_file(b"forged %d" % number, file.run, 4, 0))

        world.start(flood)
        world.run(6.3)
        assert len(read) + len(refused) == 20 and HEARD_AT_ONCE <= len(read) <= HEARD_AT_ONCE + 6
        before = len(read)
        world.run(13.0)
        assert len(read) == before + 5
        assert members.latest[0].peer.tally.refused[4]["file"] == 25
        assert len({node.peer.round for node in members.latest.values()}) <= 2
