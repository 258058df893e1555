"""`byzmesh runs ...`: what it prints and writes."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from byzmesh.errors import ConfigError, StoreError, UnknownName
from byzmesh.store import open_store
from byzmesh.store.records import SHOWN
from byzmesh.sweeps.checkpoints import checkpoint_folder
from tests.cli.commands import as_json, run

STATUSES = ["finished", "finished", "diverged", "diverged", "failed", "planned"]


def test_list_filters_by_any_key_and_status(filled: Path) -> None:
    store = ("--store", filled / "runs.db")
    found = as_json("runs", "list", *store)
    assert [item["status"] for item in found] == STATUSES
    assert all(len(item["key"]) == 64 for item in found)
    chosen = as_json("runs", "list", *store, "--where", "rule.name=IOS", "--where", "seed=1")
    assert [item["key"] for item in chosen] == [found[1]["key"]]
    assert chosen[0]["config"]["seed"] == 1 and chosen[0]["final"]["round"] == 20.0
    assert len(as_json("runs", "list", *store, "--status", "diverged")) == 2
    assert as_json("runs", "list", *store, "--limit", 1)[0]["key"] == found[5]["key"]
    assert len(as_json("runs", "list", *store, "--where", "network.byzantine=[7, 9]")) == 6
    shown = run("runs", "list", *store).stdout
    assert shown.count("two-castle") == 6 and found[0]["key"][:12] in shown
    assert "latest 2" in run("runs", "list", *store, "--limit", 2).stdout
    assert "no such runs" in run("runs", "list", *store, "--where", "seed=7").stdout


def test_mistakes_in_filters_are_named(filled: Path) -> None:
    store = ("--store", filled / "runs.db")
    with pytest.raises(UnknownName, match=r"did you mean 'rule\.name'\?"):
        run("runs", "list", *store, "--where", "rule.nam=IOS")
    with pytest.raises(ConfigError, match=r"--where takes KEY=VALUE, got 'seed'; write it as seed=VALUE"):
        run("runs", "list", *store, "--where", "seed")
    with pytest.raises(ConfigError, match=r"failed or interrupted, got .faild."):
        run("runs", "list", *store, "--status", "faild")
    with pytest.raises(StoreError, match="there is no store"):
        run("runs", "list", "--store", filled / "none.db")
    assert not (filled / "none.db").exists()


def test_show(filled: Path) -> None:
    store = ("--store", filled / "runs.db")
    keys = [item["key"] for item in as_json("runs", "list", *store)]
    whole = as_json("runs", "show", keys[0][:10], *store)
    assert whole["key"] == keys[0]
    assert whole["series"]["round"] == [0, 5, 10, 15, 20]
    assert {"version", "host", "packages"} <= set(whole["provenance"])
    assert all(len(edge) == 4 for edge in whole["edges"]) and whole["edges"]
    shown = run("runs", "show", keys[0], *store).stdout
    assert "rule:" in shown and all(f"{name}:" in shown for name in SHOWN if whole[name] is not None)
    assert "f = 9 is infeasible" in run("runs", "show", keys[4], *store).stdout


def test_compare(filled: Path) -> None:
    store = ("--store", filled / "runs.db")
    keys = [item["key"] for item in as_json("runs", "list", *store)]
    first, second = as_json("runs", "compare", keys[0], keys[1], *store)
    assert (first["status"], first["differing"], second["differing"]) == ("finished", {"seed": 0}, {"seed": 1})
    assert (
        first["final"]["accuracy"] != second["final"]["accuracy"] or first["final"]["loss"] != second["final"]["loss"]
    )
    assert "seed" in run("runs", "compare", keys[0], keys[1], *store).stdout


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_export(filled: Path, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"out.{ending}"
    run("runs", "export", path, "--store", filled / "runs.db", "--where", "rule.name=IOS")
    with path.open() as file:
        rows: list[Any] = list(csv.DictReader(file)) if ending == "csv" else json.load(file)
    assert [row["status"] for row in rows] == ["finished"] * 2
    if ending == "json":
        assert rows[0]["series"]["round"] == [0, 5, 10, 15, 20]
    else:
        assert [row["seed"] for row in rows] == ["0", "1"]


def test_delete_asks_and_removes_checkpoints_too(tmp_path: Path) -> None:
    with open_store(tmp_path / "runs.db") as store:
        keys = store.plan_all({"seed": seed} for seed in range(3))
        folder = checkpoint_folder(store.path)
    folder.mkdir()
    (folder / keys[0]).write_text("")
    where = ("--store", tmp_path / "runs.db")
    assert run("runs", "delete", keys[0], *where, input="n\n").exit_code == 1
    assert len(as_json("runs", "list", *where)) == 3
    assert run("runs", "delete", keys[0][:9], *where, input="y\n").exit_code == 0
    assert not folder.exists()
    assert run("runs", "delete", *where, "--where", "seed=2", "--yes").exit_code == 0
    assert [item["key"] for item in as_json("runs", "list", *where)] == [keys[1]]
