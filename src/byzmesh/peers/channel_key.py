"""The key `channel` of a network file, and `wire`, as files of earlier releases call a channel of one stage."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from typing import Any

from byzmesh.channels import canonical_channel, channel_stages
from byzmesh.channels.pairs import Pairs
from byzmesh.checks import choice
from byzmesh.errors import ConfigError
from byzmesh.peers.identity import Keys

FORMER: dict[str, Any] = {"float16": ["float16"], "int8": [{"name": "int8", "rounding": "nearest"}]}
"""The channels that `wire` can ask for; their messages and the ids of their runs are still the same."""


def former_name(channel: Any) -> str | None:
    """What `wire` calls a channel; None if it has no name for it.

    >>> former_name("float16"), former_name("int8"), former_name([{"name": "int8", "rounding": "nearest"}])
    ('float16', None, 'int8')
    """
    wanted = canonical_channel(channel)
    return next((name for name, spec in FORMER.items() if canonical_channel(spec) == wanted), None)


def from_wire(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """The content of a network file with a channel instead of `wire`.

    >>> from_wire({"wire": "float16", "rounds": 3})
    {'rounds': 3, 'channel': ['float16']}
    """
    name = content.get("wire")
    if name is None:
        return content
    if content.get("channel"):
        raise ConfigError("network file: wire is the former name of a channel of one stage; leave it out")
    choice("network file wire", name, ("raw", *FORMER))
    return {**{key: value for key, value in content.items() if key != "wire"}, "channel": FORMER.get(name, [])}


def agreed_channel(agreed: Mapping[str, Any]) -> dict[str, Any]:
    """What peers agree on, as before there were channels if there was one already that does the same."""
    rest = {key: value for key, value in agreed.items() if key != "channel"}
    channel = agreed.get("channel")
    former = former_name(channel) if channel else "raw"
    return {**rest, "wire": "raw", "channel": channel} if former is None else {**rest, "wire": former}


def check_channel(channel: Any, changing: bool, members_change: bool) -> None:
    """`ConfigError` if a stage builds on messages that neighbours may not have, or on neighbours that stay."""
    for stage in channel_stages(channel):
        if (stage.pairwise or stage.screens) and (changing or members_change):
            raise ConfigError(
                f"network file channel: {stage.name} is for neighbours that stay; leave it out, or operator, process "
                "and directed"
            )
        if (stage.remembers and changing) or (stage.remembers == "receiver" and members_change):
            raise ConfigError(
                f"network file channel: {stage.name} builds on the last message, which not all neighbours have; leave "
                "it out, or operator, process and directed"
            )


def new_secret() -> int:
    """What a peer's noise is drawn from: another one at every start, because a peer that continues from a checkpoint
    sends other vectors in the same rounds, and the same noise on two vectors would tell their difference.

    >>> new_secret() == new_secret()
    False
    """
    return secrets.randbits(63)


def shared_numbers(me: int, keys: Keys, public_keys: Mapping[int, str], run: int) -> Pairs:
    """What a peer shares with each of its neighbours in a run: a hash of the Diffie-Hellman secret of their two keys.

    The keys are those of the links, so nothing has to be agreed on, and nobody else can compute it.

    >>> from byzmesh.peers.identity import new_keys
    >>> one, other = new_keys(), new_keys()
    >>> told = shared_numbers(0, one, {4: other.public}, run=7), shared_numbers(4, other, {0: one.public}, run=7)
    >>> told[0].shared[0][4] == told[1].shared[4][0]
    True
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

    mine = X25519PrivateKey.from_private_bytes(hashlib.sha512(bytes.fromhex(keys.secret)).digest()[:32])
    found = {}
    for neighbour, public in public_keys.items():
        try:
            secret = mine.exchange(X25519PublicKey.from_public_bytes(_montgomery(public)))
        except ValueError as error:  # a key of small order: everybody could compute the secret
            raise ConfigError(f"public key of peer {neighbour} shares no secret; make a new one") from error
        text = b"byzmesh pair noise" + (run % (1 << 64)).to_bytes(8, "little") + secret
        found[neighbour] = int.from_bytes(hashlib.sha256(text).digest()[:8], "little") >> 1
    return Pairs({me: found})


def _montgomery(public: str) -> bytes:
    """An Ed25519 public key as a point for Diffie-Hellman: u = (1 + y) / (1 - y), RFC 7748, section 4.1.

    Its secret half is then the first half of the SHA-512 of the Ed25519 secret, as in RFC 8032.
    """
    prime = (1 << 255) - 19
    y = int.from_bytes(bytes.fromhex(public), "little") & ((1 << 255) - 1)
    return ((1 + y) * pow(1 - y, -1, prime) % prime).to_bytes(32, "little")
