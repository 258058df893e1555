"""Checkpoints: what is written comes back; what is torn or foreign is refused; the old file survives a failed write."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from byzmesh.errors import ConfigError, DataError
from byzmesh.training.checkpoint import load_checkpoint, save_checkpoint

ARRAYS: dict[str, np.ndarray] = {
    "models": np.random.default_rng(0).normal(size=(4, 30)).astype(np.float32),
    "counts": np.arange(6).reshape(2, 3),
    "flags": np.array([True, False]),
    "nothing": np.zeros((0, 5)),
    "scalar": np.array(2.5),
    "strided": np.arange(20.0).reshape(4, 5).T[::2],
}
METADATA = {"round": 41, "config": {"rule": "IOS", "f": [1, 2]}, "seed": 2**70, "note": "é"}


def test_round_trip_is_exact(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "state", ARRAYS, METADATA)
    arrays, metadata = load_checkpoint(tmp_path / "state")
    assert metadata == METADATA
    assert list(arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        assert arrays[name].shape == array.shape
        assert arrays[name].tobytes() == array.tobytes()
        assert arrays[name].flags.writeable
    assert os.listdir(tmp_path) == ["state"]


@settings(max_examples=30, deadline=None)
@given(
    array=hnp.arrays(
        st.sampled_from(["<f4", ">f8", "<i8", "u1", "?", "<c16"]), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0)
    ),
    number=st.integers(),
    text=st.text(max_size=20),
)
def test_any_array_of_numbers_comes_back(
    array: Any, number: int, text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "any-checkpoint"
    save_checkpoint(path, {text: array}, {"number": number, text: text})
    arrays, metadata = load_checkpoint(path)
    assert arrays[text].dtype == array.dtype
    assert arrays[text].tobytes() == array.tobytes()
    assert metadata == {"number": number, text: text}


def test_truncated_and_changed_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "state"
    save_checkpoint(path, ARRAYS, METADATA)
    whole = path.read_bytes()
    for length in (*range(0, len(whole), 37), len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match="damaged or cut short" if length >= 8 else "not a checkpoint"):
            load_checkpoint(path)
    for place in range(8, len(whole), 29):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(DataError, match="damaged or cut short"):
            load_checkpoint(path)
    path.write_bytes(whole + b"more")
    with pytest.raises(DataError, match="damaged or cut short"):
        load_checkpoint(path)


def test_foreign_and_missing_files_are_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    with pytest.raises(DataError, match=r"other.npz is not a checkpoint of byzmesh"):
        load_checkpoint(tmp_path / "other.npz")
    with pytest.raises(DataError, match=r"cannot read checkpoint .*missing: No such file"):
        load_checkpoint(tmp_path / "missing")


@pytest.mark.parametrize("step", ["os.fsync", "os.replace"])
def test_a_failed_write_leaves_the_old_file(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state"
    save_checkpoint(path, {"a": np.arange(3)}, {"round": 1})

    def fail(*arguments: Any) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(f"byzmesh.files.{step}", fail)
        with pytest.raises(OSError, match="disk full"):
            save_checkpoint(path, {"a": np.arange(9)}, {"round": 2})
    assert load_checkpoint(path)[1] == {"round": 1}
    assert os.listdir(tmp_path) == ["state"]
    save_checkpoint(path, {"a": np.arange(9)}, {"round": 2})
    assert load_checkpoint(path)[1] == {"round": 2}


def test_objects_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="array 'bad' of a checkpoint must contain numbers, got object"):
        save_checkpoint(tmp_path / "state", {"bad": np.array([None])}, {})
    with pytest.raises(TypeError):
        save_checkpoint(tmp_path / "state", {}, {"bad": object()})
    assert os.listdir(tmp_path) == []
