"""Row 4 of issue 18: the messages of a round are gone when it is over, without the help of the cyclic collector."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import numpy as np
import pytest

from byzmesh.peers.identity import new_keys
from byzmesh.peers.peer import Peer, no_log
from byzmesh.peers.transport import Remote
from byzmesh.peers.virtual import VirtualWorld
from byzmesh.peers.wire import HEADER, Format
from tests.peers.hostile import resident

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
