"""A running peer whose address changes: it is heard wherever it can listen, and stays where it was if it cannot."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest

from byzmesh.peers.identity import new_keys
from byzmesh.peers.sockets import Sockets
from byzmesh.peers.transport import Remote
from tests.peers.hostile import TOPIC
from tests.peers.networks import LONG, free_ports

pytestmark = pytest.mark.real

HERE, WORD = "127.0.0.1", TOPIC + b"word"


def heard_at(speaker: Sockets, keys: Any, listener: Sockets, address: str) -> None:
    """A link that is opened now, at that address, carries messages."""
    listener.disconnect(0)
    listener.change(listener._address, listener._keys, {0: Remote(address, keys.public)})
    limit = time.monotonic() + LONG
    while True:
        assert time.monotonic() < limit, f"not heard at {address}"
        speaker.receive(0.01)
        speaker.send(WORD)
        if listener.receive(0.01)[0]:
            return


@pytest.mark.parametrize(
    ("move", "then", "log"),
    [
        ("localhost:{same}", "127.0.0.1:{same}", []),
        ("0.0.0.0:{same}", "127.0.0.1:{same}", []),
        ("127.0.0.1:{other}", "127.0.0.1:{other}", []),
        ("192.0.2.1:{same}", "127.0.0.1:{same}", ["not moved"]),  # an address of no machine here
        ("192.0.2.1:{other}", "127.0.0.1:{same}", ["not moved"]),
        ("127.0.0.1:{taken}", "127.0.0.1:{same}", ["not moved"]),
    ],
)
def test_a_peer_moves_or_stays_where_it_is_and_is_heard(move: str, then: str, log: list[str]) -> None:
    same, other, taken, its = free_ports(4)
    ports = {"same": same, "other": other, "taken": taken}
    said: list[tuple[str, dict[str, Any]]] = []
    keys = [new_keys(), new_keys()]
    remote = {1: Remote(f"{HERE}:{its}", keys[1].public)}
    with socket.create_server((HERE, taken)):
        speaker = Sockets(0, f"{HERE}:{same}", keys[0], remote, 100, lambda event, **facts: said.append((event, facts)))
        listener = Sockets(1, f"{HERE}:{its}", keys[1], {0: Remote(f"{HERE}:{same}", keys[0].public)}, 100)
        try:
            heard_at(speaker, keys[0], listener, f"{HERE}:{same}")
            speaker.change(move.format(**ports), keys[0], remote)
            heard_at(speaker, keys[0], listener, then.format(**ports))
            told = [(event, facts) for event, facts in said if event in ("not moved", "guard failed")]
            assert [event for event, _ in told] == log, told
            assert all(facts["stays"] == f"{HERE}:{same}" for _, facts in told)
        finally:
            speaker.close(0.0)
            listener.close(0.0)
