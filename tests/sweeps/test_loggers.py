"""Runs in MLflow and for Weights & Biases: what was logged is read back with the tools' own readers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from byzmesh.config.grid import read_grid
from byzmesh.errors import ConfigError
from byzmesh.store import open_store
from byzmesh.sweeps.sweep import sweep


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No telemetry: nothing here leaves the machine."""
    for name, value in {"MLFLOW_DISABLE_TELEMETRY": "true", "WANDB_ERROR_REPORTING": "false"}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("quiet")
def test_mlflow_holds_settings_and_series(filled: Path, tmp_path: Path) -> None:
    from mlflow.tracking import MlflowClient

    points = read_grid(filled / "grid.yaml")[1:3]  # one finished, one diverged
    for _ in range(2):  # the second time everything is there
        told = sweep([point.config for point in points], filled / "runs.db", workers=0, mlflow=tmp_path)
        assert told.computed == 0
    client = MlflowClient(tmp_path.as_uri())
    experiment = client.get_experiment_by_name("byzmesh")
    runs = client.search_runs([experiment.experiment_id])
    with open_store(filled / "runs.db", readonly=True) as store:
        assert sorted(run.data.tags["byzmesh.key"] for run in runs) == sorted(point.key for point in points)
        assert {run.data.tags["byzmesh.status"] for run in runs} == {"finished", "diverged"}
        for run in runs:
            record, series = store.get(run.data.tags["byzmesh.key"]), store.series(run.data.tags["byzmesh.key"])
            assert run.info.run_name == f"{record.config['rule']['name']}-{record.config['attack']['name']}"
            assert run.data.params["rule.name"] == record.config["rule"]["name"]
            assert run.data.params["seed"] == str(record.config["seed"])
            assert run.info.end_time == int(1000 * (record.ended or 0))
            for name in set(series) - {"round"}:
                read = client.get_metric_history(run.info.run_id, name)
                assert [item.step for item in read] == series["round"].tolist()
                assert [item.value for item in read] == pytest.approx(series[name].tolist(), nan_ok=True)


def offline_records(path: Path) -> Iterator[Any]:
    """The records of a file that W&B wrote offline."""
    from wandb.proto import wandb_internal_pb2
    from wandb.sdk.internal.datastore import DataStore

    data = DataStore()
    data.open_for_scan(str(path))
    while (line := data.scan_data()) is not None:
        record = wandb_internal_pb2.Record()
        record.ParseFromString(line)
        yield record


@pytest.mark.usefixtures("quiet")
def test_wandb_holds_settings_and_series(filled: Path, tmp_path: Path) -> None:
    point = read_grid(filled / "grid.yaml")[1]
    for _ in range(2):  # the second time it is there
        told = sweep([point.config], filled / "runs.db", workers=0, wandb=tmp_path)
        assert told.computed == 0
    (path,) = (tmp_path / "wandb").glob("offline-run-*/*.wandb")
    assert path.name == f"run-{point.key[:12]}.wandb"
    records = list(offline_records(path))
    (run,) = (record.run for record in records if record.WhichOneof("record_type") == "run")
    config = {item.key: json.loads(item.value_json) for item in run.config.update}
    assert run.display_name == "IOS-ALIE" and run.project == "byzmesh"
    assert config["rule.name"] == "IOS" and config["seed"] == point.config["seed"]
    found: dict[str, list[float]] = {}
    for record in records:
        if record.WhichOneof("record_type") == "history":
            for item in record.history.item:
                found.setdefault(item.nested_key[0], []).append(json.loads(item.value_json))
    with open_store(filled / "runs.db", readonly=True) as store:
        series = store.series(point.key)
    assert found["_step"] == series["round"].tolist()
    for name in set(series) - {"round"}:
        assert found[name] == pytest.approx(series[name].tolist())


@pytest.mark.usefixtures("quiet")
def test_places_that_cannot_be_used_are_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for option in ("mlflow", "wandb"):
        with pytest.raises(ConfigError, match=f"cannot be created .* give another --{option}"):
            sweep([], tmp_path / "runs.db", **{option: tmp_path / "file"})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="--mlflow nowhere://x: "):
        sweep([], tmp_path / "runs.db", mlflow="nowhere://x")
