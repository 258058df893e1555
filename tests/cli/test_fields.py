"""One way to name fields and values, in every verb that reads a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from byzmesh.errors import UnknownName
from byzmesh.store import open_store
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
