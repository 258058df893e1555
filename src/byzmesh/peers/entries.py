"""The parts of a network file: its peers, and how long they wait."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from byzmesh.errors import ConfigError
from byzmesh.peers.identity import is_key


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PeerEntry(_Section):
    """One peer: its key, where it listens, and which part of the data it gets."""

    id: int = Field(ge=0, lt=65535)
    address: str
    public_key: str
    share: int | None = Field(None, ge=0)


class Timeouts(_Section):
    """Seconds; see `byzmesh.peers.rounds.Patience`.

    linger  how long a finished peer still serves slower ones
    alone   after how long without any neighbour a peer gives up
    """

    round: float = 5.0
    start: float = 30.0
    grace: float = 0.01
    start_grace: float = 3.0
    linger: float = 10.0
    alone: float = 300.0


def check_peers(peers: Sequence[PeerEntry]) -> None:
    """Raise `ConfigError` unless ids ascend, and each peer has a key and an address of its own."""
    ids = [entry.id for entry in peers]
    if ids != sorted(set(ids)):
        raise ConfigError(f"network file: peers must be in the order of their ids, each once, got {ids}")
    for entry in peers:
        if not is_key(entry.public_key):
            raise ConfigError(f"network file: public_key of peer {entry.id} is not a key; see byzmesh keygen")
        _check_address(entry)
    for what in ("address", "public_key"):
        values = [getattr(entry, what) for entry in peers]
        for value in {value for value in values if values.count(value) > 1}:
            raise ConfigError(f"network file: {what} {value} is given to two peers; each needs its own")


def _check_address(entry: PeerEntry) -> None:
    host, _, port = entry.address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ConfigError(f"network file: address of peer {entry.id} must be host:port, got {entry.address!r}")
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise ConfigError(
            f"network file: address of peer {entry.id} must have an IPv6 host in brackets, [{host}]:{port}, "
            f"got {entry.address!r}"
        )
