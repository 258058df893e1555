"""Strangers and hostile neighbours: refused, dropped, counted, cut off; honest peers hardly notice."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byzmesh.peers.renewal
from byzmesh.errors import PeerError
from byzmesh.peers.drill.drill import Drill, Nursery
from byzmesh.peers.identity import Keys, new_keys, zeromq
from byzmesh.peers.peer import Peer
from byzmesh.peers.rounds import Patience
from byzmesh.peers.sockets import OVERHEAD, Sockets
from byzmesh.peers.transport import Remote
from byzmesh.peers.wire import Format
from tests.peers.hostile import TOPIC, Siege, behaviours, flooding, resident, siege, slow_lorises, subscriber
from tests.peers.networks import LONG, free_ports

zmq: Any = zeromq()
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


def say_until_heard(sender: Sockets, receiver: Sockets, data: bytes | bytearray) -> list[tuple[int, bytes]]:
    limit = time.monotonic() + LONG
    while time.monotonic() < limit:
        sender.send(data)
        messages = receive(receiver, 0.1)
        if messages:
            return messages
    return []


def test_neighbours_hear_each_other_and_joins_are_announced() -> None:
    made, *_ = pair()
    try:
        limit, joined = time.monotonic() + LONG, []
        while 1 not in joined and time.monotonic() < limit:
            joined += made[0].receive(0.05)[1]
        assert joined == [1]
        made[0].send(FORM.encode(np.ones(100), 0, 3))
        sender, data = receive(made[1])[0]
        assert sender == 0 and FORM.decode(data, 0).round == 3
    finally:
        for transport in made:
            transport.close(0)


@pytest.mark.parametrize("kind", ["no key", "wrong key", "wrong server key"])
def test_strangers_are_refused_at_the_handshake(kind: str) -> None:
    made, keys, where = pair()
    context = zmq.Context()
    try:
        server = keys[0].public if kind == "wrong key" else new_keys().public
        ear = subscriber(context, where[0], server, None if kind == "no key" else new_keys())
        heard = say_until_heard(made[0], made[1], FORM.encode(np.ones(100), 0, 0))
        assert heard
        for _ in range(20):
            made[0].send(FORM.encode(np.ones(100), 0, 0))
        assert not ear.poll(300)
        if kind == "wrong key":
            assert made[0].strangers > 0
    finally:
        context.destroy(linger=0)
        for transport in made:
            transport.close(0)


def test_an_impostor_at_a_neighbours_address_is_not_heard() -> None:
    made, _, where = pair()
    made[1].close(0)
    context = zmq.Context()
    try:
        keys = new_keys()
        impostor = context.socket(zmq.XPUB)
        impostor.linger = 0
        impostor.curve_server = True
        impostor.curve_publickey, impostor.curve_secretkey = keys.public.encode(), keys.secret.encode()
        impostor.bind(f"tcp://{where[1]}")
        for _ in range(20):
            impostor.send(bytes(FORM.encode(np.ones(100), 1, 0)))
            assert made[0].receive(0.02)[0] == []
    finally:
        context.destroy(linger=0)
        made[0].close(0)


def test_messages_are_capped_at_their_exact_size() -> None:
    size = Format(1, 5000).size
    made, _, _ = pair(size)
    try:
        assert say_until_heard(made[0], made[1], TOPIC + bytes(size - 2))
        made[0].send(TOPIC + bytes(size - 1))
        assert receive(made[1], 0.3) == []
        made[0].send(TOPIC + bytes(size - 2))
        assert receive(made[1], 0.3) == []
        made[1].disconnect(0)
        made[1].connect(0)
        assert say_until_heard(made[0], made[1], TOPIC + bytes(size - 2))
    finally:
        for transport in made:
            transport.close(0)
    assert OVERHEAD == 33


def test_a_garbled_handshake_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else answers at a neighbour's address for a while."""
    monkeypatch.setattr(byzmesh.peers.renewal, "RENEW", 0.3)
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
    """The honest peers make another twenty rounds while the hostile one acts in each."""
    limit, goal = time.monotonic() + LONG, siege.hostile.round + 20
    before = siege.hostile.round
    while (now := siege.hostile.listen(0.01)) < goal:
        assert time.monotonic() < limit
        if act is not None and now > before:
            act()
        before = now


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
    assert {"version", "checksum", "size", "finite"} <= reasons
    assert hostile.round > 0


def test_a_flood_is_cut_off_and_logged(besieged: Siege) -> None:
    drill = besieged.drill
    before, flood = memory(drill), flooding(besieged)
    limit = time.monotonic() + LONG
    while not all(said(drill, peer, "cut off") for peer in drill.honest):
        assert time.monotonic() < limit
        go_on(besieged, flood)
    after = memory(drill)
    assert max(after[name] - before[name] for name in before) < LIMIT
    go_on(besieged)


def test_a_message_of_endless_parts_does_not_fill_the_memory(besieged: Siege) -> None:
    """ZeroMQ's queue limits count whole messages: the audit of bytes must find this one."""
    drill, hostile = besieged.drill, besieged.hostile
    before, peak = memory(drill), 0
    part = bytes(30_000)
    hostile.publisher.send(TOPIC, zmq.SNDMORE)
    for _ in range(8_000):
        hostile.publisher.send(part, zmq.SNDMORE)
    hostile.publisher.send(part)
    limit = time.monotonic() + LONG
    while not all(said(drill, peer, "cut off") for peer in drill.honest):
        assert time.monotonic() < limit
        hostile.listen(0.05)
        after = memory(drill)
        peak = max(peak, *(after[name] - before[name] for name in before))
    assert peak < 2 * LIMIT
    go_on(besieged)
