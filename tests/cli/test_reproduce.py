"""`byzmesh reproduce` end to end: killed, resumed, and what it leaves on disk."""

from __future__ import annotations

import csv
import os
import signal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from byzmesh.errors import ConfigError, UnknownName
from byzmesh.store import open_store
from byzmesh.studies.paper.cells import choose
from tests.cli.commands import app
from tests.processes import command, start, wait_for

run = CliRunner()
ATTACKS = ("--attacks", "none,alie")


def words(folder: Path) -> list[str]:
    """Table III, quick, of one rule: two runs, one after the other."""
    where = ["--store", str(folder / "runs.db"), "--out", str(folder / "out"), "--workers", "1"]
    return ["reproduce", "table-3", "--quick", "--rules", "IOS", *ATTACKS, *where]


def finished(folder: Path) -> dict[str, float | None]:
    with open_store(folder / "runs.db", readonly=True) as store:
        return {record.key: record.ended for record in store.list(status="finished")}


def test_killed_and_resumed(tmp_path: Path) -> None:
    open_store(tmp_path / "runs.db").close()
    process = start(*words(tmp_path))
    wait_for(lambda: finished(tmp_path), process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    before = finished(tmp_path)
    assert len(before) == 1
    done = command(*words(tmp_path))
    assert done.returncode == 0, done.stderr
    after = finished(tmp_path)
    assert len(after) == 2
    assert {key: after[key] for key in before} == before, "a finished cell was computed again"
    assert "Table III" in done.stdout and "quick variant" in done.stdout

    out = tmp_path / "out"
    with (out / "results.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [line["attack"] for line in lines] == ["none", "alie"]
    ours = {line["attack"]: float(line["accuracy"]) for line in lines}
    # what the quick variant can show: IOS learns under ALIE, at some cost
    assert 70 < ours["alie"] < ours["none"] - 4 and ours["none"] > 80
    assert {line["rounds"] for line in lines} == {"5000"}
    assert "5,000 rounds, not the published number" in (out / "README.md").read_text("utf-8")
    names = {path.name for path in out.iterdir()}
    assert {"table-3.md", "table-3.tex", "results.csv", "README.md", "report.html"} <= names
    assert {"table-3-accuracy.png", "table-3-accuracy.pdf"} <= names
    text = (out / "report.html").read_text("utf-8")
    assert "quick variant" in text and "pub. 82.78" in text and str(tmp_path) not in text
    again = command(*words(tmp_path), "--no-run")
    assert again.stdout == done.stdout and finished(tmp_path) == after


def test_worked_examples(tmp_path: Path) -> None:
    where = ["--store", str(tmp_path / "runs.db"), "--out", str(tmp_path / "out"), "--workers", "1"]
    done = run.invoke(app, ["reproduce", "examples", *where])
    assert done.exit_code == 0, done.output
    with (tmp_path / "out" / "examples.csv").open() as file:
        ends = {(line["variant"], line["rule"]): line for line in csv.DictReader(file)}
    assert len(ends) == 9
    for rule in ("CooMed", "Krum"):
        assert float(ends["disagreement", rule]["disagreement"]) == 1.0
    assert float(ends["disagreement", "IOS"]["disagreement"]) < 1e-3
    fair, biased = (ends[f"fixed point, {name} weights", "WeiMean"] for name in ("metropolis-hastings", "equal"))
    # the loss at the average is 1/2 + distance^2 / 2, and the bias is 5/9
    assert float(fair["loss"]) == pytest.approx(0.5, abs=0.01)
    assert float(biased["loss"]) == pytest.approx(0.5 + (5 / 9) ** 2 / 2, abs=0.01)
    assert (tmp_path / "out" / "examples.png").exists()


def test_graphs_and_what_is_not_run(tmp_path: Path) -> None:
    where = ["--store", str(tmp_path / "runs.db"), "--out", str(tmp_path / "out")]
    assert run.invoke(app, ["reproduce", "figure-3", *where]).exit_code == 0
    assert (tmp_path / "out" / "figure-3-octopus.pdf").exists()
    for target in ("table-4", "figure-4", "misjudged-f", "claims", "figure-1", "outside"):
        shown = run.invoke(app, ["reproduce", target, "--no-run", *where])
        assert shown.exit_code == 0, shown.output
        assert "cells are not computed yet" in shown.output
    assert isinstance(run.invoke(app, ["reproduce", "tabel-3", *where]).exception, UnknownName)


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="table-4 has no rule 'ISO': did you mean 'IOS'"):
        choose("table-4", rules=("ISO",))
    with pytest.raises(ConfigError, match="table-1 is not made of runs"):
        choose("table-1", rules=("IOS",))
    with pytest.raises(UnknownName, match="has no attack 'alie': "):
        choose("table-3", rules=("NoComm",), attacks=("alie",))
    out = tmp_path / "out"
    assert run.invoke(app, ["reproduce", "tabel-3", "--out", str(out)]).exit_code != 0
    assert not out.exists()


def test_a_failed_run_is_an_error_and_an_infeasible_bound_is_not(tmp_path: Path) -> None:
    where = ["--no-run", "--store", str(tmp_path / "runs.db"), "--out", str(tmp_path / "out"), "--rules", "Krum"]
    with open_store(tmp_path / "runs.db") as store:
        refused, broken = (store.plan(choose("misjudged-f", rules=("Krum",))[place].config) for place in (0, 1))
        store.fail(refused, "infeasible", "f = 1 is infeasible for rule Krum at worker 8 with 1 neighbours: ...")
        assert run.invoke(app, ["reproduce", "misjudged-f", *where]).exit_code == 0
        store.fail(broken, "bug", "the disk is full")
    done = run.invoke(app, ["reproduce", "misjudged-f", *where])
    assert done.exit_code == 1 and "1 runs failed, e.g. the disk is full; retry with --retry-failed" in done.output
