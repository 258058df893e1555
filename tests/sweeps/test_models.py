"""Models kept beside the store."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from byzmesh.errors import ConfigError, DataError, StoreError
from byzmesh.store import open_store
from byzmesh.sweeps.build import build
from byzmesh.sweeps.checkpoints import delete_runs
from byzmesh.sweeps.models import kept_rounds, models_file, models_folder, read_models, state_file
from byzmesh.sweeps.run import compute
from byzmesh.sweeps.sweep import sweep
from tests.processes import configs

GridFile = Callable[..., Path]


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("attack", ["gaussian", "label-flipping", "none"])
def test_the_honest_models_of_a_run_that_ended(grid_file: GridFile, tmp_path: Path, attack: str, workers: int) -> None:
    (config,) = configs(grid_file(base={"attack": attack}))
    store = tmp_path / "runs.db"
    (key,) = sweep([config], store, workers=workers, keep_models="final").statuses
    kept = read_models(models_file(store, key))
    expected = build(config).run()
    assert kept.models.tobytes() == expected.models.tobytes()
    assert kept.workers == [0, 1, 2, 3, 4, 5, 6, 8, 10, 11]  # 7 and 9 lie
    assert (kept.round, kept.status, kept.config) == (50, "finished", config)
    assert list(load_file(models_file(store, key))) == ["models"]
    assert sorted(os.listdir(models_folder(store))) == [f"{key}.safetensors", f"{key}.state"]


def test_all_keeps_each_evaluation_and_none_nothing(grid_file: GridFile, tmp_path: Path) -> None:
    (config,) = configs(grid_file(base={"evaluate_every": 20}))
    store = tmp_path / "runs.db"
    (key,) = sweep([config], store, workers=0, keep_models="all").statuses
    assert kept_rounds(store, key) == [0, 20, 40, 50]
    half = build({**config, "rounds": 20}).run()
    assert read_models(models_file(store, key, 20)).models.tobytes() == half.models.tobytes()
    last, ended = read_models(models_file(store, key, 50)), read_models(models_file(store, key))
    assert last.models.tobytes() == ended.models.tobytes()
    sweep([config], tmp_path / "none.db", workers=0)
    assert not models_folder(tmp_path / "none.db").exists()
    with pytest.raises(ConfigError, match="keep_models must be none, final or all, got 'some'"):
        sweep([config], store, keep_models="some")


def test_a_diverged_run_keeps_its_models_too(grid_file: GridFile, tmp_path: Path) -> None:
    (config,) = configs(grid_file(base={"rule": "mean", "step": 1e30, "attack": "sign-flipping"}))
    told = sweep([config], tmp_path / "runs.db", workers=0, keep_models="final")
    assert set(told.statuses.values()) == {"diverged"}
    assert read_models(models_file(tmp_path / "runs.db", next(iter(told.statuses)))).status == "diverged"


def test_models_go_with_their_run(grid_file: GridFile, tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    one, two = sweep(configs(grid_file(axes={"seed": [0, 1]})), store, workers=0, keep_models="all").statuses
    (models_folder(store) / f".{two}.safetensors-0a1b").write_text("killed while it wrote")
    with open_store(store) as opened:
        delete_runs(opened, [one])
        assert not list(models_folder(store).glob(f"*{one}*"))
        assert models_file(store, two).exists() and state_file(store, two).exists()
        delete_runs(opened, [two])
    assert not models_folder(store).exists()


def test_half_written_files_are_cleared_by_the_next_sweep(grid_file: GridFile, tmp_path: Path) -> None:
    written = configs(grid_file())
    store = tmp_path / "runs.db"
    (key,) = sweep(written, store, workers=0, keep_models="final").statuses
    (models_folder(store) / f".{key}.safetensors-0a1b").write_text("killed while it wrote")
    sweep(written, store, workers=0)
    assert sorted(os.listdir(models_folder(store))) == [f"{key}.safetensors", f"{key}.state"]


@pytest.mark.parametrize("workers", [0, 1])
def test_models_that_cannot_be_written_are_one_line_and_the_run_is_not_finished(
    grid_file: GridFile, tmp_path: Path, workers: int
) -> None:
    written = configs(grid_file())
    store = tmp_path / "runs.db"
    models_folder(store).write_text("a file where the folder should be")
    with pytest.raises(StoreError, match=r"models of a run could not be written to .*runs\.db\.models.*--keep-models"):
        sweep(written, store, workers=workers, keep_models="final")
    with open_store(store) as opened:
        assert [run.status for run in opened.list()] == ["interrupted"]
    models_folder(store).unlink()
    assert list(sweep(written, store, workers=workers, keep_models="final").statuses.values()) == ["finished"]


def test_a_full_disk_leaves_no_half_file(grid_file: GridFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("byzmesh.files.os.fsync", full)
    with pytest.raises(StoreError, match="No space left on device"):
        sweep(configs(grid_file()), tmp_path / "runs.db", workers=0, keep_models="final")
    assert os.listdir(models_folder(tmp_path / "runs.db")) == []


def test_a_damaged_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "broken.safetensors").write_bytes(b"these are no tensors")
    with pytest.raises(DataError, match=r"broken\.safetensors contains no models"):
        read_models(tmp_path / "broken.safetensors")


def test_keeping_models_changes_no_number(grid_file: GridFile, tmp_path: Path) -> None:
    (config,) = configs(grid_file())
    (key,) = sweep([config], tmp_path / "runs.db", workers=0, keep_models="all").statuses
    with open_store(tmp_path / "runs.db") as store:
        series = store.series(key)
    for name, values in compute(config).metrics.items():
        np.testing.assert_array_equal(values, series[name])
