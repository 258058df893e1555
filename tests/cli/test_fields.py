"""One way to name fields and values, in every verb that reads a store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from byzmesh.config.grid import read_grid
from byzmesh.errors import ConfigError, UnknownName
from byzmesh.networks import network
from byzmesh.store import config_key, open_store
from tests.cli.commands import as_json, run
from tests.reports.stores import fill

FILTERS = ["rule=IOS", "rule.name=ios", "rule=i_o_s", "rule=iterative-outlier-scissor", "rule.name=IOS"]


@pytest.fixture
def store(tmp_path: Path) -> tuple[Any, ...]:
    with open_store(tmp_path / "runs.db") as opened:
        fill(opened)
    return "--store", tmp_path / "runs.db"


@pytest.mark.parametrize("where", FILTERS)
def test_a_rule_by_any_of_its_names(store: tuple[Any, ...], where: str, tmp_path: Path) -> None:
    listed = as_json("runs", "list", *store, "--where", where)
    assert len(listed) == 6 and {item["config"]["rule"]["name"] for item in listed} == {"IOS"}
    shown = run("table", *store, "--where", where, "--rows", where.split("=")[0], "--format", "csv").stdout
    assert shown.startswith("rule.name,attack.name,") and "Krum" not in shown
    for verb, file in (("plot", "plot.png"), ("report", "report.html")):
        assert run(verb, *store, "--where", where, "--out", tmp_path / file).exit_code == 0
    run("runs", "export", tmp_path / "runs.csv", *store, "--where", where)
    assert (tmp_path / "runs.csv").read_text().count("IOS") == 6
    assert "6 runs deleted" in run("runs", "delete", *store, "--where", where, "--yes").stdout


def test_other_names_and_values(store: tuple[Any, ...]) -> None:
    assert len(as_json("runs", "list", *store, "--where", "network=Ring", "--where", "seed=1")) == 2
    assert len(as_json("runs", "list", *store, "--where", "attack=little")) == 3, "an alias of ALIE"
    assert as_json("runs", "list", *store, "--where", "rule=faba") == [], "a rule, but of no run"


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("ruel=IOS", "no run has the field 'ruel': did you mean 'rule'?"),
        ("rule.nam=IOS", "no run has the field 'rule.nam': did you mean 'rule.name'?"),
        ("rule=isos", "no run has rule = 'isos': did you mean 'IOS'?"),
        ("netwrok=ring", "no run has the field 'netwrok': did you mean 'network'?"),
    ],
)
def test_hints_name_the_right_key(store: tuple[Any, ...], where: str, message: str) -> None:
    for verb in (["runs", "list"], ["table"], ["plot"], ["report"]):
        with pytest.raises(UnknownName) as stopped:
            run(*verb, *store, "--where", where)
        assert str(stopped.value) == message


GRID = {
    "base": {"problem": "quadratic", "rounds": 4, "attack": "gaussian"},
    "cases": {"dense": {"network": {"file": "lab.edges", "byzantine": [0]}},
              "sparse": {"network": {"file": "line.edges", "byzantine": [0]}}},
    "axes": {"seed": [0, 1]},
}  # fmt: skip


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A grid over a user's own graphs."""
    network("complete", n=5).save(tmp_path / "lab.edges")
    network("ring", n=6).save(tmp_path / "line.edges")
    (tmp_path / "grid.yaml").write_text(json.dumps(GRID))
    return tmp_path


def test_networks_of_ones_own_and_cases_are_fields(own: Path) -> None:
    store = ("--store", own / "runs.db")
    shown = run("sweep", own / "grid.yaml", *store, "--workers", 1)
    assert shown.exit_code == 0 and "lab" in shown.stdout and "line" in shown.stdout
    by = ("--metric", "loss", "--format", "csv")
    table = run("table", *store, "--rows", "case", "--columns", "network", *by).stdout.splitlines()
    assert table[0].startswith("labels.case,network")
    assert [line.split(",")[:2] for line in table[1:]] == [["dense", "lab"], ["sparse", "line"]]
    for where in ("network=lab", "case=dense", "network.label=LAB", "labels.case=dense"):
        assert {item["config"]["network"]["n"] for item in as_json("runs", "list", *store, "--where", where)} == {5}
    with pytest.raises(ConfigError, match=r"differ in network .*--where network="):
        run("table", *store, *by)
    with pytest.raises(UnknownName, match="no run has network = 'laboratory'"):
        run("runs", "list", *store, "--where", "network=laboratory")


def test_names_do_not_change_which_run_it_is(own: Path) -> None:
    points = read_grid(own / "grid.yaml")
    bare = json.loads(json.dumps(points[0].config))
    del bare["labels"], bare["network"]["label"]
    assert config_key(bare) == points[0].key
    with open_store(own / "runs.db") as store:
        key = store.plan(bare)
        assert store.get(key).config == bare and store.list({"seed": 0})
        assert store.plan(points[0].config) == key, "an older store learns the names"
        assert store.get(key).config == points[0].config
        assert [run.key for run in store.list({"case": "dense", "network": "lab"})] == [key]
        store.plan({**bare, "labels": {"case": "other"}})
        assert not store.list({"case": "dense"}) and store.get(key).config["network"]["label"] == "lab"
        store.plan(bare)
        assert store.list({"case": "other"}), "a planning without names takes none away"
        store.delete(key)
        assert store._connection.execute("SELECT count(*) FROM run_fields").fetchone() == (0,)


def test_labels_of_ones_own(own: Path) -> None:
    content = {"network": "lab.edges", "problem": "quadratic", "rounds": 2, "labels": {"owner": "mei", "try": 3}}
    (own / "run.yaml").write_text(json.dumps(content))
    assert as_json("show", own / "run.yaml")["labels"] == {"owner": "mei", "try": 3}
    assert as_json("show", own / "run.yaml", "--set", "labels.try=4")["labels"]["try"] == 4
    for name, value, message in (("rule", "x", "'rule' is a key of configs"), ("a", [1], "labels.a")):
        (own / "run.yaml").write_text(json.dumps({**content, "labels": {name: value}}))
        with pytest.raises(ConfigError, match=message):
            run("show", own / "run.yaml")


def test_suspects_of_the_only_run_that_is_chosen(own: Path) -> None:
    store = ("--store", own / "runs.db")
    run("sweep", own / "grid.yaml", *store, "--workers", 1)
    one = ("--where", "case=dense", "--where", "rule=ios", "--where", "seed=1")
    key = as_json("runs", "list", *store, *one)[0]["key"]
    assert as_json("suspects", *store, *one) == as_json("suspects", key[:9], *store)
    with pytest.raises(ConfigError, match="2 runs match, but one is needed: give its key"):
        run("suspects", *store, *one[:4])
    with pytest.raises(ConfigError, match="name a run either by its key or by --where"):
        run("suspects", key, *store, *one)
