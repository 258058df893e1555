"""Event files for TensorBoard."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from byzmesh.config.grid import read_grid
from byzmesh.errors import ConfigError, MissingExtra
from byzmesh.store import open_store
from byzmesh.sweeps.sweep import sweep


def test_event_files_hold_the_series(filled: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with open_store(filled / "runs.db", readonly=True) as store:
        ended = [record for record in store.list() if record.status in ("finished", "diverged")]
        assert len(list((filled / "events").iterdir())) == len(ended) == 4
        for record in ended:
            (folder,) = (filled / "events").glob(f"*-{record.key[:12]}")
            events = EventAccumulator(str(folder))
            events.Reload()
            series = store.series(record.key)
            assert set(events.Tags()["scalars"] or events.Tags()["tensors"]) == set(series) - {"round"}
            for name in set(series) - {"round"}:
                read = events.Tensors(name)
                assert [item.step for item in read] == series["round"].tolist()
                found = [item.tensor_proto.float_val[0] for item in read]
                assert found == pytest.approx(series[name].tolist(), rel=1e-6)


def test_event_files_of_earlier_runs_are_written_too_and_only_once(filled: Path, tmp_path: Path) -> None:
    points = read_grid(filled / "grid.yaml")[:2]
    for _ in range(2):
        told = sweep([point.config for point in points], filled / "runs.db", workers=1, tensorboard=tmp_path / "events")
        assert told.computed == 0
        files = sorted(path.name for path in (tmp_path / "events").rglob("events*"))
        assert len(files) == 2


def test_bad_folders_and_missing_extras_are_named(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be created"):
        sweep([], tmp_path / "runs.db", tensorboard=tmp_path / "file")
    monkeypatch.setitem(sys.modules, "tensorboard.summary", None)
    with pytest.raises(MissingExtra, match=r"byzmesh\[tensorboard\]"):
        sweep([], tmp_path / "runs.db", tensorboard=tmp_path / "events")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtra, match=r"byzmesh\[dask\]"):
        sweep([point.config for point in read_grid(filled / "grid.yaml")], tmp_path / "runs.db", dask="tcp://x:1")
