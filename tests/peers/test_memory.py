"""Row 4 of issue 18: the messages of a round are gone when it is over, without the help of the cyclic collector.

Once in a peer with large messages, in virtual time; once in the sockets that carry them.
"""

from __future__ import annotations

import gc
import os
import struct
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack

import numpy as np
import pytest

from byzmesh.peers.identity import new_keys
from byzmesh.peers.peer import Peer, no_log
from byzmesh.peers.sockets import Sockets
from byzmesh.peers.transport import Remote
from byzmesh.peers.virtual import VirtualWorld
from byzmesh.peers.wire import EVERYONE, HEADER, Format
from tests.peers.hostile import resident
from tests.peers.networks import LONG, free_ports

LARGE = 1_000_000
ROUNDS = 500
KEYS = new_keys()


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_memory_is_flat_over_rounds_of_a_million_numbers(no_collector: None) -> None:
    """Messages that live until they are collected would add 4 MB in every round."""
    held: list[int] = []
    form, lie = Format(0, LARGE), np.ones(LARGE, np.float32)
    with VirtualWorld() as world:

        def train() -> None:
            vector = np.zeros(LARGE, np.float32)
            peer = Peer(vector, {1: ("", KEYS.public)}, "ios", me=0, address="", keys=KEYS, f=0, world=world)
            for _ in range(ROUNDS):
                peer.exchange(vector)
                held.append(resident(os.getpid()))
                assert held[-1] - held[min(50, len(held) - 1)] < 40 << 20

        def answer() -> None:
            transport = world.open(1, "", KEYS, {0: Remote("", KEYS.public)}, form.size, no_log)
            while True:
                for _, data in transport.receive(1.0)[0]:
                    transport.send(form.encode(lie, 1, HEADER.unpack_from(data)[5]))

        world.start(answer)
        training = world.start(train)
        world.run(done=lambda: training.ended)
    assert len(held) == ROUNDS


@pytest.mark.real
def test_sockets_keep_no_message(no_collector: None) -> None:
    """Four peers, 100 rounds of 20 kB: sockets that kept the messages of one neighbour, or what they sent, would hold
    2 MB more."""
    size, ids = 20_000, range(4)
    keys, where = [new_keys() for _ in ids], [f"127.0.0.1:{port}" for port in free_ports(len(ids))]
    remotes = {i: Remote(where[i], keys[i].public) for i in ids}
    limit = time.monotonic() + LONG

    def exchange() -> None:
        """Everybody hears everybody once."""
        for transport in made:
            transport.send(struct.pack("<H", EVERYONE) + os.urandom(size - 2))
        for transport in made:
            heard: set[int] = set()
            while len(heard) < len(ids) - 1:
                assert time.monotonic() < limit
                heard |= {sender for sender, _ in transport.receive(0.01)[0]}

    with ExitStack() as stack:
        made: list[Sockets] = []
        for me in ids:
            made.append(Sockets(me, where[me], keys[me], {i: remotes[i] for i in ids if i != me}, size))
            stack.callback(made[-1].close, 0.0)
        for transport in made:
            joined: set[int] = set()
            while len(joined) < len(ids) - 1:
                assert time.monotonic() < limit
                joined |= set(transport.receive(0.01)[1])
        tracemalloc.start()
        stack.callback(tracemalloc.stop)
        for _ in range(10):
            exchange()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(100):
            exchange()
        assert tracemalloc.get_traced_memory()[0] - before < 10 * size
