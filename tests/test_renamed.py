"""Renamed options: runs stored under a former name are still the same runs."""

from __future__ import annotations

import json
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

import byzmesh as bm
from byzmesh.config.cell import make_cell
from byzmesh.config.filters import filters
from byzmesh.config.schema import resolve
from byzmesh.errors import UnknownName, UnknownOption
from byzmesh.problems.base import problems
from byzmesh.renamed import as_of_today, as_stored
from byzmesh.simulation.saving import save
from byzmesh.store import Store, open_store
from byzmesh.studies.arena.grid import programme
from byzmesh.studies.paper.cells import choose
from byzmesh.sweeps.build import build
from byzmesh.sweeps.models import pack, read_models
from byzmesh.sweeps.sweep import sweep
from byzmesh.training.checkpoint import load_checkpoint, save_checkpoint
from tests.simulation.small import config as small_config
from tests.simulation.small import write_data

REPORTS = Path(__file__).parents[1] / "reports"
LINEAR = ("softmax", "logistic", "least-squares")


@pytest.fixture(params=["paper", "arena", "neural"])
def committed(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of a committed store, and what was computed before the options were renamed."""
    return Path(shutil.copy(REPORTS / request.param / "runs.db", tmp_path / "runs.db"))


def test_every_committed_run_has_the_key_of_its_config(committed: Path) -> None:
    with open_store(committed, readonly=True) as store:
        for run in store.list():
            assert make_cell(run.config).key == run.key
            assert "data" not in run.config["problem"]


def test_every_committed_config_is_one_of_today(committed: Path) -> None:
    with open_store(committed, readonly=True) as store:
        runs = store.list()[::20]
    for run in runs:
        again = resolve({**run.config, "plugins": None})
        assert again["problem"] == run.config["problem"]


@pytest.mark.parametrize("readonly", [True, False])
def test_committed_runs_are_found_by_todays_option_names(committed: Path, readonly: bool) -> None:
    with open_store(committed, readonly=readonly) as store:
        everything = store.list()
        chosen = {run.key: run.config["problem"].get("dataset") for run in everything}  # a quadratic has none
        names = set(chosen.values()) - {None}
        for name in names:
            wanted = [key for key, dataset in chosen.items() if dataset == name]
            assert [run.key for run in store.list(filters(store, [f"problem.dataset={name}"]))] == wanted
        assert set(store.values("problem.dataset")) == names
        with pytest.raises(UnknownName, match=r"did you mean 'problem\.dataset'"):
            store.list({"problem.datset": "mnist"})


def test_the_cells_of_the_studies_are_all_there() -> None:
    with open_store(REPORTS / "paper" / "runs.db", readonly=True) as store:
        keys = store.keys()
        cells = choose("table-3") + choose("misjudged-f")
        assert cells
        assert all(make_cell(dict(cell.config)).key in keys for cell in cells)
    with open_store(REPORTS / "arena" / "runs.db", readonly=True) as store:
        keys = store.keys()
        assert all(make_cell(dict(cell.config)).key in keys for cell in programme("tables"))


def test_a_stored_run_is_not_computed_again(tmp_path: Path) -> None:
    config = resolve(small_config(write_data(tmp_path), rounds=4))
    path = tmp_path / "runs.db"
    assert sweep([config], path, workers=0).computed == 1
    text = sqlite3.connect(path).execute("SELECT config FROM runs").fetchone()[0]
    assert json.loads(text)["problem"]["data"] == config["problem"]["dataset"]  # as it would have been stored before
    assert sweep([config], path, workers=0).computed == 0
    with open_store(path) as store:
        (run,) = store.list({"problem.dataset": config["problem"]["dataset"]})
        assert run.config == config
        assert store.frame()["problem.dataset"].tolist() == [config["problem"]["dataset"]]
        store.delete(run.key)
        assert store.list() == []
    assert sqlite3.connect(path).execute("SELECT count(*) FROM run_fields").fetchone() == (0,)


def test_checkpoints_and_models_with_former_option_names_are_read(tmp_path: Path) -> None:
    config = resolve(small_config(write_data(tmp_path), rounds=4))
    simulation = build(config)
    simulation.step()
    save(simulation, tmp_path / "now")
    arrays, facts = load_checkpoint(tmp_path / "now")
    save_checkpoint(tmp_path / "before", arrays, {**facts, "config": as_stored(facts["config"])})
    other = build(config)
    other.restore(tmp_path / "before")
    assert other.round == 1

    (tmp_path / "models.safetensors").write_bytes(pack(replace(other, config=as_stored(config))))
    assert read_models(tmp_path / "models.safetensors").config == config


@pytest.mark.parametrize("name", LINEAR)
def test_the_former_name_is_refused_with_todays(name: str) -> None:
    message = f"problem {name} has no option 'data'; it is called 'dataset'$"
    with pytest.raises(UnknownOption, match=message):
        bm.problem(name, data="mnist")
    with pytest.raises(UnknownOption, match=message):
        resolve({"network": {"name": "ring", "n": 5}, "problem": {"name": name, "data": "mnist"}})


def test_only_what_was_renamed_is_translated() -> None:
    mine = {"problem": {"name": "mine", "data": "a", "dataset": "b"}}
    assert as_stored(mine) == as_of_today(mine) == mine
    for name in LINEAR:
        assert "dataset" in problems.entry(name).options
    assert all("data" not in entry.options for entry in problems.entries())


def test_an_older_store_takes_new_runs(tmp_path: Path) -> None:
    """Torch always said `dataset`: one word chooses both."""
    linear = {"problem": {"name": "softmax", "dataset": "mnist"}, "rule": {"name": "IOS"}}
    torch = as_of_today({"problem": {"name": "torch", "dataset": "mnist"}, "rule": {"name": "IOS"}})
    with Store(tmp_path / "runs.db") as store:
        store.plan_all([linear, torch])
        assert [run.config for run in store.list({"problem.dataset": "mnist"})] == [linear, torch]
