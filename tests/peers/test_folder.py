"""A peer's folder: row 12 of issue 18 and friction 14."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzmesh.errors import DataError, NotWritten, PeerError
from byzmesh.peers import folder as folders
from byzmesh.peers.export import peer_model
from byzmesh.peers.folder import Folder
from byzmesh.peers.identity import load_keys
from byzmesh.peers.network_file import NetworkFile
from byzmesh.peers.node import Node
from byzmesh.peers.peer import no_log
from byzmesh.training.checkpoint import load_checkpoint
from tests.peers.networks import make_network

PROBLEM = {"name": "quadratic", "dimension": 5000}


def alone(folder: Path, rounds: int = 5) -> NetworkFile:
    spec: dict[str, Any] = {"edges": [], "rule": "nocomm", "problem": PROBLEM, "checkpoint_seconds": 1e-9}
    return make_network(folder, 1, real=True, rounds=rounds, **spec)


def full(*_: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def node(file: NetworkFile, folder: Path, **options: Any) -> Node:
    return Node(file, 0, load_keys(folder / "peer0.key"), out=folder / "out", **options)


def test_one_process_at_a_time(tmp_path: Path) -> None:
    first = Folder(tmp_path, 3, no_log)
    with pytest.raises(PeerError, match="another process runs peer 3"):
        Folder(tmp_path, 3, no_log)
    Folder(tmp_path, 4, no_log).close()
    first.close()
    Folder(tmp_path, 3, no_log).close()


def test_a_damaged_checkpoint_has_an_older_copy(tmp_path: Path) -> None:
    said: list[str] = []
    folder = Folder(tmp_path, 0, lambda event, **facts: said.append(event))
    assert folder.load() is None
    for number in range(3):
        folder.save({"model": np.full(2, number)}, {"round": number})
    folder.checkpoint.write_bytes(folder.checkpoint.read_bytes()[:-5])
    found = folder.load()
    assert found is not None and found[1] == {"round": 1} and said == ["damaged"]
    folder.previous.write_bytes(b"BYZMESH1 and no more")
    with pytest.raises(DataError, match="damaged"):
        folder.load()
    folder.close()


def test_a_checkpoint_that_cannot_be_written_costs_none_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a full disk nor damage leaves less than one whole checkpoint, and `export` finds it."""
    folder = Folder(tmp_path, 0, no_log)
    folder.save({"model": np.zeros((1, 2))}, {"round": 0})
    folder.save({"model": np.ones((1, 2))}, {"round": 1})
    with monkeypatch.context() as disk:
        disk.setattr(folders, "save_checkpoint", full)
        folder.save({"model": np.ones((1, 2))}, {"round": 2})
    assert not folder.written
    assert [load_checkpoint(path)[1]["round"] for path in (folder.checkpoint, folder.previous)] == [1, 0]
    folder.checkpoint.write_bytes(b"BYZMESH1 and no more")
    found = folder.load()
    assert found is not None and found[1]["round"] == 0
    with pytest.raises(DataError, match="peer 0 is of an older version"):  # whole, if without all that a model needs
        peer_model(tmp_path)
    folder.save({"model": np.ones((1, 2))}, {"round": 3})
    assert [load_checkpoint(path)[1]["round"] for path in (folder.checkpoint, folder.previous)] == [3, 0]
    folder.close()


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    names = [".peer0.ckpt-0123456789ab", ".peer0.status.json-0123456789ab", ".peer0.previous-77"]
    for name in [*names, ".peer1.ckpt-0123456789ab", "peer0.jsonl"]:
        (tmp_path / name).write_text("left")
    Folder(tmp_path, 0, no_log).close()
    assert sorted(os.listdir(tmp_path)) == [".peer1.ckpt-0123456789ab", "peer0.jsonl", "peer0.lock"]


@pytest.mark.real
def test_a_full_disk_does_not_stop_training_and_is_told_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[tuple[str, dict[str, Any]]] = []
    peer = node(alone(tmp_path), tmp_path, log=lambda event, **facts: said.append((event, facts)))

    monkeypatch.setattr(folders, "save_checkpoint", full)
    with pytest.raises(NotWritten, match="not on disk") as failure:
        peer.run()
    assert peer.peer.round == 5 and failure.value.exit_code == 5
    assert ("not written", {"path": str(tmp_path / "out" / "peer0.ckpt"), "error": "No space left on device"}) in said
    monkeypatch.undo()
    again = node(alone(tmp_path / "again"), tmp_path / "again")
    again.folder.written = False
    again.run()  # the disk has room again
    assert again.folder.written


def test_an_unwritable_folder_is_an_error_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(NotWritten, match="give another --out"):
        Folder(tmp_path / "file" / "out", 0, no_log)
