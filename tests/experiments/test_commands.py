"""`byzmesh runs ...`, `byzmesh sweep --plan` and event files: what they print and write."""

import csv
import json
import sys

import pytest
from typer.testing import CliRunner

from byzmesh.cli import app
from byzmesh.config.grid import Point, expand, read_grid
from byzmesh.errors import ByzmeshError, ConfigError, MissingExtra, StoreError, UnknownName
from byzmesh.store import open_store
from byzmesh.sweeps.checkpoints import checkpoint_folder
from byzmesh.sweeps.estimate import Planned, plan, total_seconds
from byzmesh.sweeps.sweep import sweep


def run(*arguments, **options):
    told = CliRunner().invoke(app, [str(argument) for argument in arguments], **options)
    if isinstance(told.exception, ByzmeshError):
        raise told.exception
    return told


def as_json(*arguments):
    told = run(*arguments, "--json")
    assert told.exit_code == 0, told.output
    return json.loads(told.stdout)


@pytest.fixture(scope="module")
def filled(tmp_path_factory, samples):
    """A store with finished, diverged, failed and planned runs, and their grid."""
    folder = tmp_path_factory.mktemp("filled")
    grid = {
        "base": {
            "problem": {"name": "softmax", "data": str(samples)},
            "network": "paper/two-castle",
            "rounds": 20,
            "evaluate_every": 5,
        },
        "cases": {
            "good": {"rule": "ios", "attack": "alie"},
            "wild": {"rule": "mean", "step": 1e30},
            "never": {"rule": "krum", "f": 9},
        },
        "axes": {"seed": [0, 1]},
    }
    (folder / "grid.yaml").write_text(json.dumps(grid))
    points = read_grid(folder / "grid.yaml")
    sweep([point.config for point in points[:5]], folder / "runs.db", workers=1, tensorboard=folder / "events")
    with open_store(folder / "runs.db") as store:
        store.plan(points[5].config)
    return folder


STATUSES = ["finished", "finished", "diverged", "diverged", "failed", "planned"]


def test_list_filters_by_any_key_and_status(filled):
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


def test_mistakes_in_filters_are_named(filled):
    store = ("--store", filled / "runs.db")
    with pytest.raises(UnknownName, match=r"did you mean 'rule\.name'\?"):
        run("runs", "list", *store, "--where", "rule.nam=IOS")
    with pytest.raises(ConfigError, match="takes KEY=VALUE"):
        run("runs", "list", *store, "--where", "seed")
    with pytest.raises(ConfigError, match="did you mean 'failed'"):
        run("runs", "list", *store, "--status", "faild")
    with pytest.raises(StoreError, match="there is no store"):
        run("runs", "list", "--store", filled / "none.db")
    assert not (filled / "none.db").exists()


def test_show(filled):
    store = ("--store", filled / "runs.db")
    keys = [item["key"] for item in as_json("runs", "list", *store)]
    whole = as_json("runs", "show", keys[0][:10], *store)
    assert whole["key"] == keys[0]
    assert whole["series"]["round"] == [0, 5, 10, 15, 20]
    assert {"version", "host", "packages"} <= set(whole["provenance"])
    assert all(len(edge) == 4 for edge in whole["edges"]) and whole["edges"]
    assert "rule:" in run("runs", "show", keys[0], *store).stdout
    assert "f = 9 is infeasible" in run("runs", "show", keys[4], *store).stdout


def test_compare(filled):
    store = ("--store", filled / "runs.db")
    keys = [item["key"] for item in as_json("runs", "list", *store)]
    first, second = as_json("runs", "compare", keys[0], keys[1], *store)
    assert (first["status"], first["differing"], second["differing"]) == ("finished", {"seed": 0}, {"seed": 1})
    assert (
        first["final"]["accuracy"] != second["final"]["accuracy"] or first["final"]["loss"] != second["final"]["loss"]
    )
    assert "seed" in run("runs", "compare", keys[0], keys[1], *store).stdout


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_export(filled, tmp_path, ending):
    path = tmp_path / f"out.{ending}"
    run("runs", "export", path, "--store", filled / "runs.db", "--where", "rule.name=IOS")
    with path.open() as file:
        rows = list(csv.DictReader(file)) if ending == "csv" else json.load(file)
    assert [row["status"] for row in rows] == ["finished"] * 2
    if ending == "json":
        assert rows[0]["series"]["round"] == [0, 5, 10, 15, 20]
    else:
        assert [row["seed"] for row in rows] == ["0", "1"]


def test_delete_asks_and_removes_checkpoints_too(tmp_path):
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


def test_a_plan_lists_all_runs_with_status_and_time_and_writes_nothing(filled, tmp_path):
    rows = as_json("sweep", filled / "grid.yaml", "--plan", "--store", filled / "runs.db")
    assert [row["status"] for row in rows] == STATUSES
    assert [row["seconds"] for row in rows[:5]] == [0.0] * 5
    assert rows[5]["seconds"] is None and "infeasible" in rows[5]["problem"]
    fresh = as_json("sweep", filled / "grid.yaml", "--plan", "--store", tmp_path / "new.db")
    assert [row["status"] for row in fresh] == ["planned"] * 6
    assert [row["label"] for row in fresh][:2] == [{"case": "good", "seed": 0}, {"case": "good", "seed": 1}]
    assert all(row["seconds"] > 0 for row in fresh[:4])
    assert not (tmp_path / "new.db").exists()
    shown = run("sweep", filled / "grid.yaml", "--plan", "--store", tmp_path / "new.db", "--workers", 2).stdout
    assert "6 runs, 6 to compute" in shown and "cannot run" in shown and "on 2 processes" in shown


def test_estimates_grow_with_rounds_and_evaluations(filled):
    point = read_grid(filled / "grid.yaml")[0]
    short, long, often = (
        Point(f"{rounds}/{every}", {**point.config, "rounds": rounds, "evaluate_every": every}, {})
        for rounds, every in ((1000, 1000), (100_000, 100_000), (1000, 1))
    )
    a, b, c = (run.seconds for run in plan([short, long, often]))
    assert 20 * a < b
    assert c > a


def test_a_plan_of_many_classes_times_some_and_checks_all(monkeypatch):
    monkeypatch.setattr("byzmesh.sweeps.estimate.BUDGET", 0.0)
    raw = {
        "base": {"problem": "quadratic", "network": {"name": "complete", "n": 5}, "attack": "none", "rounds": 10},
        "axes": {"rule": ["IOS", "FABA", {"name": "TriMean"}], "f": [1, 3]},
    }
    first, *rest = plan(expand(raw))
    assert first.seconds and all(run.seconds == first.seconds for run in rest if run.problem is None)
    refused = {run.config["rule"]["name"]: run.problem for run in rest if run.problem is not None}
    assert "f = 3 is infeasible for rule TriMean" in refused["TriMean"]
    assert sum(run.config["f"] == 1 for run in rest if run.problem is None) == 2


def test_the_total_is_shared_work_but_no_less_than_the_longest_run():
    runs = [Planned(str(seconds), "planned", {}, {}, seconds) for seconds in (1.0, 2.0, 9.0)] + [
        Planned("x", "planned", {}, {}, None, "no")
    ]
    assert total_seconds(runs, 1) == 12.0
    assert total_seconds(runs, 4) == 9.0


def test_event_files_hold_the_series(filled):
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


def test_event_files_of_earlier_runs_are_written_too_and_only_once(filled, tmp_path):
    points = read_grid(filled / "grid.yaml")[:2]
    for _ in range(2):
        told = sweep([point.config for point in points], filled / "runs.db", workers=1, tensorboard=tmp_path / "events")
        assert told.computed == 0
        files = sorted(path.name for path in (tmp_path / "events").rglob("events*"))
        assert len(files) == 2


def test_what_is_missing_or_in_the_way_is_said_first(filled, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be made"):
        sweep([], tmp_path / "runs.db", tensorboard=tmp_path / "file")
    monkeypatch.setitem(sys.modules, "tensorboard.summary", None)
    with pytest.raises(MissingExtra, match=r"byzmesh\[tensorboard\]"):
        sweep([], tmp_path / "runs.db", tensorboard=tmp_path / "events")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtra, match=r"byzmesh\[dask\]"):
        sweep([point.config for point in read_grid(filled / "grid.yaml")], tmp_path / "runs.db", dask="tcp://x:1")
