"""Strangers and hostile neighbours: refused, dropped, counted, cut off; honest peers hardly notice."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from byzmesh.errors import PeerError
from byzmesh.peers import budget, dials, doorkeeper
from byzmesh.peers import sockets as socket_module
from byzmesh.peers.drill.drill import Drill, Nursery
from byzmesh.peers.frames import LENGTH
from byzmesh.peers.handshake import Refused
from byzmesh.peers.identity import Keys, new_keys
from byzmesh.peers.patience import Patience
from byzmesh.peers.peer import Peer
from byzmesh.peers.sockets import Sockets
from byzmesh.peers.transport import QUEUE, Remote
from byzmesh.peers.wire import Format
from tests.peers.hostile import TOPIC, Siege, behaviours, dial, flooding, resident, siege, slow_lorises
from tests.peers.networks import LONG, free_ports

pytestmark = pytest.mark.real

FORM = Format(1, 100)
LIMIT = 50 << 20


def pair(size: int = FORM.size) -> tuple[list[Sockets], list[Keys], list[str]]:
    """Two transports that are neighbours."""
    keys = [new_keys(), new_keys()]
    where = [f"127.0.0.1:{port}" for port in free_ports(2)]
    made = []
    for me in (0, 1):
        made.append(Sockets(me, where[me], keys[me], {1 - me: Remote(where[1 - me], keys[1 - me].public)}, size))
    return made, keys, where


def receive(transport: Sockets, seconds: float = LONG) -> list[tuple[int, bytes]]:
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        messages, _ = transport.receive(0.05)
        if messages:
            return messages
    return []


def until_joined(sender: Sockets, receiver: Sockets) -> None:
    """Wait until whatever is sent will be heard."""
    limit = time.monotonic() + LONG
    while receiver.me not in sender.receive(0.05)[1]:
        assert time.monotonic() < limit


def say_until_heard(sender: Sockets, receiver: Sockets, data: bytes | bytearray) -> list[tuple[int, bytes]]:
    limit = time.monotonic() + LONG
    while time.monotonic() < limit:
        sender.receive(0.0)
        sender.send(data)
        messages = receive(receiver, 0.1)
        if messages:
            return messages
    return []


def test_neighbours_hear_each_other_and_joins_are_announced() -> None:
    made, *_ = pair()
    try:
        until_joined(made[0], made[1])
        made[0].send(FORM.encode(np.ones(100), 0, 3))
        sender, data = receive(made[1])[0]
        assert sender == 0 and FORM.decode(data, 0).round == 3
        assert made[1].linked == [0]
        made[0].close(0)
        limit = time.monotonic() + LONG
        while made[1].linked:
            made[1].receive(0.05)
            assert time.monotonic() < limit
        assert made[1].connected == [0]  # listened to, but nobody is there
    finally:
        for transport in made:
            transport.close(0)


def test_messages_and_then_garbage_while_a_peer_computes_do_not_end_it() -> None:
    """As many messages as may wait, and what is no frame, found by the doorkeeper in one look."""
    made, *_ = pair()
    liar, busy = made
    try:
        until_joined(liar, busy)
        receive(busy, 0.05)
        with busy._lock:
            for _ in range(QUEUE):
                liar.send(FORM.encode(np.ones(100), 0, 3))
            liar._voices[1].link.sendall(LENGTH.pack(0xFFFFFFFF) + bytes(40))
        limit = time.monotonic() + LONG
        while 0 in busy._ears:  # it reads nothing itself
            assert time.monotonic() < limit
            time.sleep(0.01)
        assert len(receive(busy)) == QUEUE and busy.guarding
    finally:
        for transport in made:
            transport.close(0)


@pytest.mark.parametrize("kind", ["wrong key", "wrong server key", "no TLS"])
def test_strangers_are_refused_at_the_handshake(kind: str) -> None:
    made, keys, where = pair()
    try:
        assert say_until_heard(made[0], made[1], FORM.encode(np.ones(100), 0, 0))
        if kind == "no TLS":
            with socket.create_connection(("127.0.0.1", int(where[0].rpartition(":")[2])), timeout=LONG) as link:
                link.sendall(b"GET / HTTP/1.1\r\n\r\n")
                said = b""
                while data := link.recv(1000):  # it hangs up, after saying why
                    said += data
            assert len(said) < 20
        else:
            stranger, server = (new_keys(), keys[0].public) if kind == "wrong key" else (keys[1], new_keys().public)
            with pytest.raises((Refused, OSError)):
                dial(where[0], server, stranger)
        limit = time.monotonic() + LONG
        while made[0].strangers == 0:
            assert time.monotonic() < limit
            made[0].receive(0.01)
        assert made[0].guarding
        assert say_until_heard(made[0], made[1], FORM.encode(np.ones(100), 0, 0))
    finally:
        for transport in made:
            transport.close(0)


@pytest.mark.parametrize("whose", ["a stranger's", "another neighbour's"])
def test_an_impostor_at_a_neighbours_address_is_not_heard(whose: str) -> None:
    """A neighbour at another one's address is not taken for it either. Three times somebody comes to listen."""
    keys = [new_keys() for _ in range(3)]
    where = [f"127.0.0.1:{port}" for port in free_ports(2)]
    remotes = {1: Remote(where[1], keys[1].public), 2: Remote("127.0.0.1:1", keys[2].public)}
    mine = new_keys() if whose == "a stranger's" else keys[2]
    impostor = Sockets(1, where[1], mine, {0: Remote(where[0], keys[0].public)}, FORM.size)
    made = Sockets(0, where[0], keys[0], remotes, FORM.size)
    try:
        limit, came = time.monotonic() + LONG, 0
        while came + impostor.strangers < 3:
            assert time.monotonic() < limit
            came += len(impostor.receive(0.01)[1])
            impostor.send(FORM.encode(np.ones(100), 1, 0))
            assert made.receive(0.01)[0] == []
    finally:
        made.close(0)
        impostor.close(0)


def test_messages_are_capped_at_their_exact_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever says more is heard again after a while."""
    monkeypatch.setattr(socket_module, "AFTER_GARBAGE", 0.1)
    size, said = Format(1, 5000).size, list[str]()
    made, _, _ = pair(size)
    made[1]._log = lambda event, **facts: said.append(event)
    try:
        assert say_until_heard(made[0], made[1], TOPIC + bytes(size - 2))
        made[0].send(TOPIC + bytes(size - 1))
        made[0].send(TOPIC + bytes(size - 2))
        limit = time.monotonic() + LONG
        while not said:
            assert time.monotonic() < limit
            assert made[1].receive(0.01)[0] == []
        assert said == ["shut down"]
        assert say_until_heard(made[0], made[1], TOPIC + bytes(size - 2))
    finally:
        for transport in made:
            transport.close(0)


@pytest.mark.parametrize("change", ["changed", "repeated", "left out", "longer"])
def test_whoever_sits_on_the_wire_changes_nothing(monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    """The link ends, nothing but what was sent is delivered, and the next link carries on."""
    monkeypatch.setattr(socket_module, "AFTER_GARBAGE", 0.1)
    made, _, _ = pair(1000)
    heard: list[bytes] = []
    frames: list[bytes] = []

    class Wire:
        """The connection, on which somebody changes the second frame."""

        def __init__(self, link: Any) -> None:
            self.link, self.fileno, self.close, self.recv = link, link.fileno, link.close, link.recv

        def send(self, frame: Any) -> int:
            frames.append(bytes(frame))
            data = frames[-1]
            if len(frames) == 2:
                middle = bytes([data[10] ^ 1])
                data = {
                    "changed": data[:10] + middle + data[11:],
                    "repeated": frames[0],
                    "left out": b"",
                    "longer": LENGTH.pack(len(data)) + data[4:] + b"?",
                }[change]
            self.link.sendall(data)
            return len(frame)

    try:
        until_joined(made[0], made[1])
        voice = made[0]._voices[1]
        voice.link = Wire(voice.link)  # type: ignore[assignment]
        for word in (b"one", b"two", b"three"):
            made[0].send(TOPIC + word)
        limit = time.monotonic() + LONG
        while b"hello again" not in heard:
            assert time.monotonic() < limit
            heard += [bytes(data[2:]) for _, data in made[1].receive(0.02)[0]]
            made[0].receive(0.0)
            made[0].send(TOPIC + b"hello again")
        assert heard[0] == b"one" and set(heard[1:]) == {b"hello again"}
    finally:
        for transport in made:
            transport.close(0)


def test_links_are_served_while_their_peer_computes() -> None:
    """Nobody calls `receive` at one end: it is joined, reads ahead as far as its queue, and no further."""
    made, _, _ = pair()
    try:
        until_joined(made[0], made[1])
        limit = time.monotonic() + LONG
        data = FORM.encode(np.ones(100), 0, 0)
        while len(made[1]._messages) < QUEUE:
            made[0].send(data)
            made[0].receive(0.01)
            assert time.monotonic() < limit
        while len(made[0]._voices[1].waiting) < QUEUE:  # the buffers of both kernels are full: nobody reads any more
            for _ in range(100):
                made[0].send(data)
            made[0].receive(0.001)
            assert len(made[1]._messages) <= 2 * QUEUE + (1 << 14) // FORM.size
            assert time.monotonic() < limit
        assert receive(made[1]) and say_until_heard(made[0], made[1], data)
    finally:
        for transport in made:
            transport.close(0)


def test_a_reader_that_does_not_read_blocks_nobody() -> None:
    """Its queue fills, what is newest is lost, and memory does not grow."""
    keys, where = [new_keys() for _ in range(3)], [f"127.0.0.1:{port}" for port in free_ports(3)]
    remotes = {i: Remote(where[i], keys[i].public) for i in range(3)}
    size = 30_000
    made = [Sockets(i, where[i], keys[i], {j: remotes[j] for j in (0, 1) if j != i}, size) for i in (1,)]
    made.append(Sockets(0, where[0], keys[0], {1: remotes[1], 2: remotes[2]}, size))
    deaf = dial(where[0], keys[0].public, keys[2])
    try:
        joined = set[int]()
        limit = time.monotonic() + LONG
        while joined != {1, 2}:
            assert time.monotonic() < limit
            joined |= set(made[1].receive(0.01)[1])
        for _ in range(200):
            made[1].send(TOPIC + bytes(size - 2))
            made[1].receive(0.0)
            assert receive(made[0])
        assert len(made[1]._voices[2].waiting) == QUEUE
    finally:
        deaf.link.close()
        for transport in made:
            transport.close(0)


def test_nothing_is_sent_to_whoever_joined_before_its_join_is_told() -> None:
    """Neighbours may join while a peer computes: what they missed goes first, in its order."""
    made, *_ = pair()
    limit = time.monotonic() + LONG
    try:
        while not made[0]._joined:  # the doorkeeper took the link
            made[1].receive(0.05)
            assert time.monotonic() < limit
        made[0].send(TOPIC + b"of the round after")
        assert made[0].receive(0.0)[1] == [1]
        made[0].send(TOPIC + b"of the round before")
        assert [bytes(data[2:]) for _, data in receive(made[1])] == [b"of the round before"]
    finally:
        for transport in made:
            transport.close(0)


def test_a_link_that_was_idle_for_hours_is_still_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 11: what the system sends to keep it open is counted nowhere. The clock of the links jumps, a minute at a
    time."""
    late = [0.0]
    clock = SimpleNamespace(
        monotonic=lambda: time.monotonic() + late[0], thread_time=time.thread_time, sleep=time.sleep
    )
    for module in (socket_module, doorkeeper, dials):
        monkeypatch.setattr(module, "time", clock)
    made, *_ = pair()
    try:
        until_joined(made[0], made[1])
        until_joined(made[1], made[0])
        for sender, receiver in (made, made[::-1]):  # either end of a link may be ready before the other
            sender.send(FORM.encode(np.ones(100), sender.me, 0))
            assert receive(receiver)
        links = [(dict(one._ears), dict(one._voices), one.received) for one in made]
        for _ in range(12 * 60):
            late[0] += 60.0
            assert [one.receive(0.0) for one in made] == [([], []), ([], [])]
        assert [(one._ears, one._voices, one.received) for one in made] == links
        made[0].send(FORM.encode(np.ones(100), 0, 1))
        assert [sender for sender, _ in receive(made[1])] == [0]
    finally:
        for transport in made:
            transport.close(0)


def test_a_garbled_handshake_is_tried_again() -> None:
    """Somebody else answers at a neighbour's address for a while."""
    keys, where = [new_keys(), new_keys()], [f"127.0.0.1:{port}" for port in free_ports(2)]
    patience = Patience(timeout=0.2, start=0.2, start_grace=0.1)

    def made(me: int) -> Peer:
        other = {1 - me: (where[1 - me], keys[1 - me].public)}
        return Peer(np.zeros(4), other, "weimean", me=me, address=where[me], keys=keys[me], patience=patience)

    with ExitStack() as stack:
        garbler = stack.enter_context(socket.create_server(("127.0.0.1", int(where[1].rpartition(":")[2]))))
        peer = made(0)
        stack.callback(peer.close)
        link, _ = garbler.accept()
        link.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 10)
        peer.exchange(np.zeros(4))
        link.close()
        garbler.close()
        other = made(1)
        stack.callback(other.close)
        heard = threading.Event()

        def speak() -> None:
            while not heard.is_set():
                other.exchange(np.ones(4))

        with ThreadPoolExecutor(1) as pool:
            theirs = pool.submit(speak)
            try:
                limit = time.monotonic() + LONG
                while np.max(peer.exchange(np.zeros(4))) == 0:
                    assert time.monotonic() < limit
            finally:
                heard.set()
            theirs.result()


def test_an_address_in_use_is_an_error_that_says_so() -> None:
    made, keys, where = pair()
    try:
        with pytest.raises(PeerError, match="cannot listen"):
            Sockets(0, where[0], keys[0], {}, 100)
    finally:
        for transport in made:
            transport.close(0)


def test_bytes_that_never_become_messages_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half frames, of the size of a message and of the largest that is possible, on one connection after another."""
    monkeypatch.setattr(socket_module, "AFTER_GARBAGE", 0.0)
    made, _, _ = pair(1 << 20)
    said: list[str] = []
    made[1]._log = lambda event, **facts: said.append(event)
    before = resident(os.getpid())
    try:
        limit = time.monotonic() + LONG
        for turn in range(100):
            while made[1].me not in made[0].receive(0.01)[1]:
                assert time.monotonic() < limit
                assert made[1].receive(0.0)[0] == []
            link = made[0]._voices[1].link
            link.send(LENGTH.pack(1 << 20 if turn % 2 else 0xFFFFFFFF) + bytes(100_000))
            if turn % 2:
                with made[0]._lock:
                    made[0]._end_voice(1)
        assert said == 50 * ["shut down"]
        assert resident(os.getpid()) - before < LIMIT
    finally:
        for transport in made:
            transport.close(0)


@pytest.fixture
def besieged(tmp_path: Path, nursery: Nursery) -> Iterator[Siege]:
    with siege(tmp_path, nursery) as made:
        yield made


def memory(drill: Drill) -> dict[str, int]:
    return {name: resident(pid) for name, pid in drill.nursery.pids.items()}


def said(drill: Drill, peer: int, event: str) -> list[dict[str, Any]]:
    lines = (drill.out / f"{peer}.log").read_text().splitlines()
    return [line for line in map(json.loads, lines) if line["event"] == event]


def go_on(siege: Siege, act: Callable[[], object] | None = None) -> None:
    """The honest peers make at least three rounds more, and the hostile one acts before each."""
    limit = time.monotonic() + LONG
    for _ in range(3):
        if act is not None:
            act()
        before = siege.hostile.round
        while siege.hostile.listen(0.01) <= before:
            assert time.monotonic() < limit


def test_a_hostile_neighbour_stops_nobody_and_takes_little_memory(besieged: Siege) -> None:
    drill, hostile = besieged.drill, besieged.hostile
    before = memory(drill)
    for act in behaviours(besieged).values():
        go_on(besieged, act)
    lorises = slow_lorises(besieged)
    try:
        go_on(besieged)
    finally:
        for loris in lorises:
            loris.close()
    after = memory(drill)
    assert drill.running() == drill.honest
    assert max(after[name] - before[name] for name in before) < LIMIT
    reasons = {line["reason"] for peer in drill.honest for line in said(drill, peer, "refused") if "neighbour" in line}
    assert {"version", "header", "size", "finite"} <= reasons
    assert hostile.round > 0 and all(said(drill, peer, "shut down") for peer in drill.honest)


def test_a_flood_takes_little_memory_and_stops_nobody(besieged: Siege) -> None:
    drill = besieged.drill
    before, flood = memory(drill), flooding(besieged)
    for _ in range(10):
        go_on(besieged, flood)
    after = memory(drill)
    assert max(after[name] - before[name] for name in before) < LIMIT
    assert drill.running() == drill.honest


def test_a_flood_is_cut_off_and_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is: here a neighbour has 200 messages, and no more as time goes by."""
    monkeypatch.setattr(budget, "QUICKEST", 0.0)
    monkeypatch.setattr(budget, "SLOWEST", 0.0)
    keys, where = [new_keys(), new_keys()], [f"127.0.0.1:{port}" for port in free_ports(2)]
    log: list[str] = []
    peer = Peer(
        np.zeros(100),
        {1: Remote(where[1], keys[1].public)},
        "mean",
        me=0,
        address=where[0],
        keys=keys[0],
        f=0,
        run=1,
        log=lambda event, **_: log.append(event),
    )
    liar = Sockets(1, where[1], keys[1], {0: Remote(where[0], keys[0].public)}, FORM.size)
    try:
        limit = time.monotonic() + LONG
        while "cut off" not in log:
            assert time.monotonic() < limit
            liar.receive(0.0)
            liar.send(FORM.encode(np.ones(100), 1, 0))
            peer.pump(0.01)
        assert log.count("cut off") == 1 and 1 in peer.cut_off
    finally:
        peer.close()
        liar.close(0)
