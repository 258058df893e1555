"""What a peer's folder remembers of its network files: a mistake on the command line changes nothing in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from byzmesh.errors import DataError, PeerError
from byzmesh.peers.changes import sign_file
from byzmesh.peers.identity import Keyring, one_more_key
from byzmesh.peers.network_file import NetworkFile, load_network
from byzmesh.peers.node import Node
from byzmesh.peers.virtual import VirtualWorld
from tests.peers.members import Members, next_file, signed_network, start_all


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in os.listdir(folder)}


def trained(world: VirtualWorld, folder: Path) -> Members:
    """Peers of whom all have taken up epoch 1 and know epoch 2; peer 3 is down."""
    file = signed_network(folder, 4)
    one = next_file(folder, file, 15, keys={3: one_more_key(folder, 3)[1]})
    two = next_file(folder, one, 140, f=0)
    members = start_all(world, file, folder)
    members.reach(5)
    members.give(3, one.text)
    members.reach(25)
    members.give(3, two.text)
    members.reach(50)
    members.kill(3)
    names = sorted(name for name in os.listdir(members.out) if name.startswith("peer3.") and name.endswith("yaml"))
    assert [load_network(members.out / name).epoch for name in names] == [2, 1]
    return members


def of_another_run(folder: Path, same_operator: bool) -> NetworkFile:
    """A file with other peers' keys: by another operator, or another run of the same one."""
    other = folder / "other"
    other.mkdir()
    made = signed_network(other, 4)
    if not same_operator:
        return made
    path = other / "again.yaml"
    text = b"\n".join(line for line in made.text.split(b"\n") if not line.startswith((b"operator", b"signature")))
    path.write_bytes(text.rstrip(b"\n") + b"\nnonce: again\n")
    return sign_file(path, folder / "operator.key")


@pytest.mark.parametrize("same_operator", [False, True])
@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_file_of_another_run_is_refused_and_nothing_is_written(
    tmp_path: Path, same_operator: bool, checkpoint: bool
) -> None:
    with VirtualWorld(1, lambda random, *_: random.uniform(0.05, 0.1)) as world:
        members = trained(world, tmp_path)
        if not checkpoint:
            for path in members.out.glob("peer3.*ckpt"):
                path.unlink()
        before = contents(members.out)
        other = of_another_run(tmp_path, same_operator)
        with pytest.raises(PeerError, match="belongs to another run than the network file; choose another --out"):
            Node(other, 3, Keyring(tmp_path / "other" / "peer3.key"), out=members.out, world=world)
        assert contents(members.out) == before
        if checkpoint:
            members.start(3)
            members.reach(80)
            assert members.epochs()[3] == 1


def test_nothing_is_written_beside_a_checkpoint_of_another_run(tmp_path: Path) -> None:
    """That run had no operator, so its folder has no network files."""
    with VirtualWorld(1, lambda random, *_: random.uniform(0.05, 0.1)) as world:
        members = trained(world, tmp_path)
        for path in members.out.glob("peer3.*yaml"):
            path.unlink()
        before = contents(members.out)
        other = of_another_run(tmp_path, False)
        with pytest.raises(DataError, match="belongs to another run or peer; choose another --out"):
            Node(other, 3, Keyring(tmp_path / "other" / "peer3.key"), out=members.out, world=world)
        assert contents(members.out) == before


def test_a_damaged_file_is_told_and_replaced(tmp_path: Path) -> None:
    with VirtualWorld(1, lambda random, *_: random.uniform(0.05, 0.1)) as world:
        members = trained(world, tmp_path)
        path = members.out / "peer3.network.yaml"
        path.write_bytes(path.read_bytes()[:-9])
        members.give(3, load_network(next(members.out.glob("peer2.network.yaml"))).text)
        members.start(3)
        members.reach(80)
        assert members.said("damaged", 3)[0]["path"] == str(path) and load_network(path).epoch == 1
