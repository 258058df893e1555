"""Networks whose members change, in a virtual world: an operator, signed files, and nodes that watch their own copy."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from byzmesh.peers import identity
from byzmesh.peers.changes import changed, sign_file
from byzmesh.peers.identity import Keyring, Keys, keys_of
from byzmesh.peers.network_file import NetworkFile, load_network, save_network
from byzmesh.peers.node import Node
from byzmesh.peers.signing import new_operator
from byzmesh.peers.virtual import VirtualWorld
from tests.peers.networks import make_network
from tests.peers.worlds import Nodes


def draw_keys(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Keys by the seed: so it determines every file, and the order of two files of one epoch."""
    draw = random.Random(seed)

    def new_keys() -> Keys:
        return keys_of(draw.randbytes(32).hex())

    def generate() -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(draw.randbytes(32))

    monkeypatch.setattr(identity, "new_keys", new_keys)
    monkeypatch.setattr(Ed25519PrivateKey, "generate", generate)


def signed_network(folder: Path, peers: int, **more: Any) -> NetworkFile:
    """Peers that are all linked, with a small problem and little patience; the first file of an operator."""
    usual: dict[str, Any] = {
        "topology": {"name": "complete", "n": peers},
        "rule": "ios",
        "f": 1,
        "problem": {"name": "quadratic", "dimension": 5, "targets": "normal"},
        "shares": peers,
        "rounds": 150,
        "evaluate_every": 150,
        "checkpoint_seconds": 1.0,
        "timeouts": {"round": 2.0, "start": 4.0, "start_grace": 0.5, "linger": 0.5, "alone": 20.0},
    }
    make_network(folder, peers, **{**usual, **more})
    new_operator(folder / "operator.key")
    return sign_file(folder / "network.yaml", folder / "operator.key")


def next_file(folder: Path, former: NetworkFile, from_round: int, name: str = "", **changes: Any) -> NetworkFile:
    """The next epoch, changed and signed."""
    path = folder / (name or f"epoch{former.epoch + 1}.yaml")
    save_network(changed(former, from_round, **changes), path)
    before = folder / f"before-{path.name}"
    before.write_bytes(former.text)
    return sign_file(path, folder / "operator.key", before)


class Members(Nodes):
    """Nodes that each watch a network file of their own, and find their keys beside their first one."""

    def path(self, me: int) -> Path:
        return self.out / f"given{me}.yaml"

    def give(self, me: int, text: bytes) -> None:
        """Replace the file on a peer's disk."""
        self.path(me).parent.mkdir(exist_ok=True)
        self.path(me).write_bytes(text)

    def make(self, me: int, **options: Any) -> Node:
        if not self.path(me).exists():
            self.give(me, self.file.text)
        file, ring = load_network(self.path(me)), Keyring(self.keys / f"peer{me}.key")
        return Node(file, me, ring, out=self.out, path=self.path(me), world=self.world, **options)

    def reach(self, round: int, *, limit: float = 100.0, peers: Any = None) -> None:
        """Run until all (of these) peers have reached a round."""
        whom = list(self.running) if peers is None else list(peers)

        def there() -> bool:
            return all(me in self.latest and self.latest[me].peer.round >= round for me in whom)

        self.world.run(self.world.time + limit, done=there)
        assert there(), {me: node.peer.round for me, node in self.latest.items()}

    def epochs(self) -> dict[int, int]:
        """The epoch in force at every peer."""
        return {me: node.file.epoch for me, node in self.latest.items()}


def start_all(world: VirtualWorld, file: NetworkFile, folder: Path, peers: Any = None) -> Members:
    members = Members(world, file, folder, folder / "out")
    for peer in file.ids if peers is None else peers:
        members.start(peer)
    return members


def spread(members: Members, peers: Any) -> float:
    """The largest difference between two of these peers' models."""
    models = np.concatenate([members.latest[me].model for me in peers])
    return float(np.ptp(models, axis=0).max())
