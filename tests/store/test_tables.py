"""Runs as frames, comparisons and files."""

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from byzmesh.errors import ConfigError, MissingExtra, StoreError
from byzmesh.store import Store, open_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "runs.db") as opened:
        first = opened.plan({"rule": {"name": "IOS", "f": 1}, "seed": 1, "byzantine": [7, 9], "loss": "softmax"})
        second = opened.plan({"rule": {"name": "Krum", "f": "exact"}, "seed": 1, "byzantine": [7, 9], "status": True})
        opened.plan({"rule": {"name": "Krum", "f": "exact"}, "seed": 2})
        opened.finish(first, "finished", {"accuracy": [0.1, 0.9], "loss": [2.0, 0.1 + 0.2]}, rounds=7, seconds=1.5)
        opened.finish(second, "diverged", {"accuracy": [0.1, math.nan], "loss": [math.inf]})
        yield opened


def test_frame_has_one_row_per_run(store: Store) -> None:
    table = store.frame()
    assert list(table["status"]) == ["finished", "diverged", "planned"]
    assert list(table["rule.name"]) == ["IOS", "Krum", "Krum"]
    assert list(table["rule.f"]) == [1, "exact", "exact"]
    assert list(table["byzantine"][:2]) == ["[7,9]", "[7,9]"] and table["byzantine"].isna()[2]
    np.testing.assert_array_equal(table["accuracy"], [0.9, np.nan, np.nan])
    # Names that are taken: the config's `status`, and the metric `loss` where the config has one.
    assert table["config.status"][1] is True
    assert table["loss"][0] == "softmax"
    np.testing.assert_array_equal(table["final.loss"], [0.1 + 0.2, np.inf, np.nan])
    assert list(table["key"]) == [run.key for run in store.list()]


def test_frame_is_filtered_like_a_list(store: Store) -> None:
    assert list(store.frame({"rule.name": "Krum"})["seed"]) == [1, 2]
    assert list(store.frame(status="planned")["seed"]) == [2]
    assert len(store.frame({"seed": 99})) == 0


def test_compare_shows_what_differs(store: Store) -> None:
    keys = [run.key for run in store.list()]
    comparison = store.compare(key[:20] for key in keys[:2])
    assert comparison.keys == tuple(keys[:2])
    assert comparison.differing == {
        "loss": ("softmax", None),
        "rule.f": (1, "exact"),
        "rule.name": ("IOS", "Krum"),
        "status": (None, True),
    }
    np.testing.assert_equal(comparison.final, {"accuracy": (0.9, np.nan), "loss": (0.1 + 0.2, np.inf)})
    assert store.compare([keys[0], keys[2]]).final["accuracy"] == (0.9, None)


def test_compare_tells_types_apart(store: Store) -> None:
    keys = store.plan_all([{"f": 1}, {"f": 1.0}, {"f": True}])
    assert store.compare(keys).differing == {"f": (1, 1.0, True)}


def test_csv_comes_back(store: Store, tmp_path: Path) -> None:
    store.export(tmp_path / "runs.csv")
    table = pd.read_csv(tmp_path / "runs.csv")
    assert list(table["key"]) == [run.key for run in store.list()]
    assert table["final.loss"][0] == 0.1 + 0.2
    assert list(table.columns) == list(store.frame().columns)


def test_json_holds_configs_and_series(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    store.export(path, "json", where={"seed": 1})
    entries = json.loads(path.read_text(), parse_constant=pytest.fail)
    runs = store.list({"seed": 1})
    assert [entry["key"] for entry in entries] == [run.key for run in runs]
    assert [entry["config"] for entry in entries] == [run.config for run in runs]
    assert entries[0]["series"] == {"accuracy": [0.1, 0.9], "loss": [2.0, 0.1 + 0.2]}
    assert entries[1]["series"] == {"accuracy": [0.1, "nan"], "loss": ["inf"]}
    assert entries[0]["provenance"] == runs[0].provenance
    store.export(path, "json", status="failed")
    assert json.loads(path.read_text()) == []


def test_parquet_comes_back(store: Store, tmp_path: Path) -> None:
    store.export(tmp_path / "runs.parquet")
    table = pd.read_parquet(tmp_path / "runs.parquet")
    assert list(table["rule.f"]) == ["1", '"exact"', '"exact"']
    assert table["final.loss"][0] == 0.1 + 0.2
    assert list(table["seed"]) == [1, 1, 2]


def test_parquet_without_its_extra(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"byzmesh\[parquet\]"):
        store.export(tmp_path / "runs.parquet")
    assert [file.name for file in tmp_path.iterdir() if "parquet" in file.name] == []


def test_a_failed_export_keeps_the_older_file(store: Store, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'xlsx'"):
        store.export(tmp_path / "runs.xlsx")
    with pytest.raises(StoreError, match="another path"):
        store.export(tmp_path / "no" / "runs.csv")
    target = tmp_path / "folder.csv"
    (target / "inside").mkdir(parents=True)
    with pytest.raises(StoreError, match="another path"):
        store.export(target)
    assert (target / "inside").is_dir()
    assert [file.name for file in tmp_path.iterdir() if file.name.endswith(".part")] == []
