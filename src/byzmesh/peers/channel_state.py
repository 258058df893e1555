"""What a peer's checkpoint keeps of its channel: what it said last, and what it made of others' messages."""

from __future__ import annotations

from collections.abc import Mapping

from byzmesh.channels.base import State
from byzmesh.peers.peer import Peer
from byzmesh.types import Array

_SAID, _HEARD = "channel/said", "channel/heard"


def channel_arrays(peer: Peer) -> dict[str, Array]:
    """The arrays of a checkpoint, by name; none for a channel that does not remember."""
    channel = peer.form.channel
    found = _named(_SAID, peer.said) if channel.remembers else {}
    if channel.remembers == "receiver":
        for neighbour, (_, state) in peer.heard.items():
            found |= _named(f"{_HEARD}/{neighbour}", state)
    return found


def resume_channel(peer: Peer, arrays: Mapping[str, Array], rounds: Mapping[int, int]) -> None:
    """Continue from a checkpoint; rounds is that of each neighbour's last message."""
    peer.said = _like(peer.said, _SAID, arrays)
    for neighbour, (_, state) in peer.heard.items():
        if neighbour in rounds:
            peer.heard[neighbour] = rounds[neighbour], _like(state, f"{_HEARD}/{neighbour}", arrays)


def _named(prefix: str, state: State) -> dict[str, Array]:
    return {f"{prefix}/{place}": part for place, part in enumerate(state) if part is not None}


def _like(state: State, prefix: str, arrays: Mapping[str, Array]) -> State:
    return tuple(part if part is None else arrays.get(f"{prefix}/{place}", part) for place, part in enumerate(state))
