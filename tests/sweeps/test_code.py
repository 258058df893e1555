"""Edited code and edited data are computed again, and the plan says why; nothing else is."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import byzmesh as bm
from byzmesh.catalogue import registries
from byzmesh.config.cell import Cell, make_cell
from byzmesh.config.changes import changes
from byzmesh.config.code import CodeReader, check_code
from byzmesh.config.grid import expand, read_grid
from byzmesh.config.schema import resolve
from byzmesh.errors import ChangedCode, ConfigError
from byzmesh.reports.pivot import pivot
from byzmesh.store import RunRecord, config_key, open_store
from byzmesh.sweeps.estimate import plan
from byzmesh.sweeps.reasons import reasons, summary
from byzmesh.sweeps.sweep import sweep
from tests.cli.commands import as_json, run
from tests.processes import command

SCRIPT = '''
import json, sys
import byzmesh as bm
import numpy as np
from byzmesh.config.grid import expand
from byzmesh.reports.pivot import pivot
from byzmesh.store import open_store
from byzmesh.sweeps.estimate import plan
from byzmesh.sweeps.reasons import summary
from byzmesh.sweeps.sweep import sweep

SHARE = 0.5


@bm.register_rule("mine")
def mine():
    """Half of its own model."""
    def coefficients(block):
        near = block.present.astype(float)
        near[:, 0] = 0.0
        out = (1 - SHARE) * near / np.maximum(near.sum(axis=1, keepdims=True), 1.0)
        out[:, 0] = 1.0 - out.sum(axis=1)
        return out
    return bm.gram_rule("mine", coefficients)


if __name__ == "__main__":
    base = {"problem": {"name": "quadratic", "targets": "halves"}, "network": {"name": "ring", "n": 6}, "rounds": 5}
    cells = expand({"base": base, "axes": {"rule": ["mine", "mean"], "seed": [0, 1]}})
    told = summary(run.because for run in plan(cells, "runs.db"))
    outcome = sweep([cell.config for cell in cells], "runs.db", workers=1)
    with open_store("runs.db", readonly=True) as store:
        table = pivot(store, "rule", "attack", metric="disagreement")
        value = table.cells["mine", "none"]
        print(json.dumps([told, outcome.computed, sorted(set(outcome.statuses.values())), value.mean, value.n]))
'''


def started(folder: Path, text: str) -> Any:
    """What the script prints in a new process."""
    (folder / "mine.py").write_text(text)
    told = subprocess.run([sys.executable, "mine.py"], cwd=folder, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)


def test_an_edited_rule_is_computed_again_and_the_plan_says_why(tmp_path: Path) -> None:
    _, computed, statuses, first, count = started(tmp_path, SCRIPT)
    assert (computed, statuses, count) == (4, ["finished"], 2)
    because, computed, *_ = started(tmp_path, SCRIPT.replace('"""Half of its own model."""', "# words"))
    assert (because, computed) == ([], 0)
    because, computed, statuses, second, count = started(tmp_path, SCRIPT.replace("SHARE = 0.5", "SHARE = 0.9"))
    assert because == ["2 runs are computed again: rule mine changed"]
    assert (computed, statuses) == (2, ["finished"])
    assert (second != first, count) == (True, 2)  # the table shows today's code, not a mean of both
    because, computed, _, third, _ = started(tmp_path, SCRIPT)  # taken back: the first results are those of this code
    assert (because, computed, third) == ([], 0, first)
    with open_store(tmp_path / "runs.db", readonly=True) as store:
        assert len(store.list({"rule.name": "mine"})) == 4


def flowers(path: Path, seed: int) -> None:
    draw = np.random.default_rng(seed)
    rows = np.column_stack([draw.normal(size=(60, 3)), np.arange(60) % 3])
    np.savetxt(path, rows, delimiter=",", fmt="%.3f")


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    """A grid over a CSV file."""
    flowers(tmp_path / "flowers.csv", 0)
    problem = {"name": "softmax", "dataset": str(tmp_path / "flowers.csv"), "batch": 4}
    base = {"problem": problem, "network": {"name": "ring", "n": 5}, "rounds": 3}
    path = tmp_path / "grid.yaml"
    path.write_text(yaml.safe_dump({"base": base, "axes": {"seed": [0, 1]}}))
    return path


def test_edited_data_are_computed_again_and_the_plan_says_why(grid: Path, tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    assert run("sweep", grid, "--store", store, "--workers", 1).exit_code == 0
    assert "computed again" not in run("sweep", grid, "--store", store, "--plan").stdout
    flowers(tmp_path / "flowers.csv", 1)
    shown = " ".join(run("sweep", grid, "--store", store, "--plan").stdout.split())
    assert "2 runs are computed again: data file" in shown and "flowers.csv changed" in shown
    rows = as_json("sweep", grid, "--store", store, "--plan")
    assert [row["because"] for row in rows] == [[f"data file {tmp_path / 'flowers.csv'} changed"]] * 2
    assert sweep([cell.config for cell in read_grid(grid)], store, workers=1).computed == 2
    with open_store(store, readonly=True) as opened:
        (value,) = pivot(opened, "rule", "attack").cells.values()
        assert (value.n, len(opened.list())) == (2, 4)


def test_a_table_waits_for_the_code_that_was_last_asked_for(grid: Path, tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    sweep([cell.config for cell in read_grid(grid)], store, workers=1)
    flowers(tmp_path / "flowers.csv", 1)
    with open_store(store) as opened:
        opened.plan_all(*zip(*((cell.config, cell.code) for cell in read_grid(grid)), strict=True))
        (value,) = pivot(opened, "rule", "attack").cells.values()
        assert (value.n, value.waiting) == (0, 2)


def test_a_file_is_read_once_for_many_cells(grid: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []
    real = open

    def counted(*given: Any, **more: Any) -> Any:
        opened.append(given[0])
        return real(*given, **more)

    monkeypatch.setattr("builtins.open", counted)
    (cell,) = read_grid(grid)[:1]
    reader = CodeReader()
    for _ in range(50):
        reader.of(cell.config)
    assert sum(str(path).endswith("flowers.csv") for path in opened) == 1


def test_data_that_change_during_a_sweep_fail_the_run_with_a_kind(grid: Path, tmp_path: Path) -> None:
    (cell, _) = read_grid(grid)
    check_code(cell.config, cell.code)
    flowers(tmp_path / "flowers.csv", 1)
    with pytest.raises(ChangedCode, match=r"flowers.csv changed since .* start the sweep again"):
        check_code(cell.config, cell.code)
    with open_store(tmp_path / "runs.db") as store:
        key = store.plan(cell.config, {"rule mine": "of another machine", **cell.code})
    from byzmesh.sweeps.leases import Leases
    from byzmesh.sweeps.worker import Orders, work

    with open_store(tmp_path / "runs.db") as store, Leases(store) as leases:
        orders = Orders(store=store.path, checkpoint_seconds=1000.0)
        notes: list[str] = []
        told = work(key, orders, store, leases, lambda simulation: True, notes.append)
        assert told == ("ended", key, "failed")
        assert (store.get(key).failure_kind, store.get(key).status) == ("changed", "failed")


def test_built_in_parts_leave_the_key_as_it_was_and_a_revision_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    from byzmesh.rules.base import rules

    config = resolve({"network": "paper/two-castle", "rule": {"name": "bucketing", "inner": "RTC"}, "attack": "alie"})
    before = make_cell(config)
    assert (before.code, before.key) == ({}, config_key(config))
    object.__setattr__(rules.entry("RTC"), "revision", 2)
    try:
        after = make_cell(config)
        assert after.code == {"rule RTC": "revision 2"} and after.key != before.key
        assert changes(before.code, after.code) == ("rule RTC: revision 1 -> 2",)
    finally:
        object.__setattr__(rules.entry("RTC"), "revision", None)
    monkeypatch.setattr("byzmesh.config.code.REVISION", 3)
    assert changes({"byzmesh": "revision 2"}, make_cell(config).code) == ("byzmesh: revision 2 -> 3",)


def test_the_reason_names_the_versions_where_byzmesh_itself_changed(tmp_path: Path) -> None:
    (cell,) = expand({"base": {"problem": "quadratic", "network": {"name": "ring", "n": 5}}})
    new = Cell(config=cell.config, code={"rule IOS": "revision 2"}, key=config_key(cell.config, {"a": "b"}), labels={})
    with open_store(tmp_path / "runs.db") as store:
        store.finish(store.plan(cell.config), "finished", {}, provenance={"version": "0.0.1"})
        assert reasons(store, [cell]) == {}
        (text,) = reasons(store, [new])[new.key]
    assert text.startswith("rule IOS: revision 1 -> 2 (byzmesh 0.0.1 -> ")


def test_a_run_of_an_older_store_whose_parts_are_the_users_is_not_taken_for_todays(grid: Path, tmp_path: Path) -> None:
    (cell, _) = read_grid(grid)
    with open_store(tmp_path / "runs.db") as store:
        store.finish(store.plan(cell.config), "finished", {})  # as it was stored before code was part of the key
    (told,) = plan([cell], tmp_path / "runs.db")
    assert (told.status, told.because) == ("planned", (f"data file {tmp_path / 'flowers.csv'} was not recorded",))


PLUGIN = """
import byzmesh as bm

SHARE = 0.5


@bm.register_rule("from-plugin")
def from_plugin(own, received, weights, f):
    return own + SHARE * (received.mean(axis=0) - own)
"""


@pytest.fixture
def plugin_grid(tmp_path: Path) -> Path:
    """A grid of two runs of a rule in a script."""
    (tmp_path / "mine.py").write_text(PLUGIN)
    base = {"problem": "quadratic", "network": {"name": "ring", "n": 5}, "rounds": 5, "rule": "from-plugin"}
    path = tmp_path / "grid.yaml"
    path.write_text(yaml.safe_dump({"base": base, "axes": {"seed": [0, 1]}, "plugins": ["mine.py"]}))
    return path


def test_an_edited_plugin_is_computed_again(plugin_grid: Path, tmp_path: Path) -> None:
    store = ("--store", tmp_path / "runs.db")
    for text, because in (
        (PLUGIN, []),
        (PLUGIN + "\n# a comment\n", []),
        (PLUGIN.replace("SHARE = 0.5", "SHARE = 0.4"), ["rule from-plugin changed"]),
    ):
        (tmp_path / "mine.py").write_text(text)
        told = command("sweep", plugin_grid, *store, "--plan", "--json")
        assert [row["because"] for row in json.loads(told.stdout)] == [because] * 2, told.stderr
        told = command("sweep", plugin_grid, *store, "--workers", 1)
        assert told.returncode == 0, told.stderr
        assert ("2 runs are computed again: rule from-plugin changed" in told.stderr) == bool(because)
    with open_store(tmp_path / "runs.db", readonly=True) as opened:
        assert len(opened.list()) == 4 and len(opened.list(current=True)) == 2
    marks = [row["superseded"] for row in as_json("runs", "list", *store)]
    assert sorted(marks, key=str) == [None, None, ["rule from-plugin changed"], ["rule from-plugin changed"]]
    assert run("runs", "list", *store).stdout.count("rule from-plugin changed") == 2
    assert "superseded" not in run("runs", "list", *store, "--limit", 2).stdout


def test_a_sweep_keeps_the_code_it_started_with(plugin_grid: Path, tmp_path: Path) -> None:
    cells = read_grid(plugin_grid)

    def edit(backlog: Any, record: RunRecord | None) -> None:
        if record is not None:
            (tmp_path / "mine.py").write_text(PLUGIN.replace("SHARE = 0.5", "SHARE = 0.4"))

    told = sweep([cell.config for cell in cells], tmp_path / "runs.db", workers=1, show=edit)
    assert told.statuses == {cell.key: "finished" for cell in cells}
    with open_store(tmp_path / "runs.db", readonly=True) as store:
        first, second = (store.series(cell.key)["disagreement"] for cell in cells)
    assert (first == second).all()  # a quadratic without noise: the seed changes nothing, the code would


@pytest.mark.parametrize(("first", "second", "again"), [(1, 1, 0), (1, 2, 2)])
def test_with_a_revision_the_source_does_not_count(
    plugin_grid: Path, tmp_path: Path, first: int, second: int, again: int
) -> None:
    for share, revision, computed in ((0.5, first, 2), (0.4, second, again)):
        text = PLUGIN.replace('"from-plugin"', f'"from-plugin", revision={revision}')
        (tmp_path / "mine.py").write_text(text.replace("SHARE = 0.5", f"SHARE = {share}"))
        cells = read_grid(plugin_grid)
        assert cells[0].code == {"rule from-plugin": f"revision {revision}"}
        told = summary(row.because for row in plan(cells, tmp_path / "runs.db"))
        assert told == (
            ["2 runs are computed again: rule from-plugin: revision 1 -> 2"] if share < 0.5 and again else []
        )
        assert sweep([cell.config for cell in cells], tmp_path / "runs.db", workers=0).computed == computed


def test_a_revision_is_a_whole_number() -> None:
    with pytest.raises(ConfigError, match="revision"):
        bm.register_rule("mine", revision=0)


UNSEEN = """
import ctypes
import byzmesh as bm

LIBRARY = ctypes.CDLL(None)


def make(library):
    def rule(own, received, weights, f):
        return own + 0.1 * library.abs(-1) * (received.mean(axis=0) - own)
    return rule


bm.register_rule("from-plugin")(make(LIBRARY))
"""


def test_code_that_cannot_be_inspected_is_computed_again_with_a_note(plugin_grid: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(UNSEEN)
    store = ("--store", tmp_path / "runs.db")
    for again in (False, True):
        told = command("sweep", plugin_grid, *store, "--workers", 1)
        assert told.returncode == 0 and "2 of them now" in told.stderr, told.stderr
        assert ("what ctypes.CDLL does in rule from-plugin cannot be seen; register it" in told.stderr) == again
    (tmp_path / "mine.py").write_text(UNSEEN.replace('"from-plugin"', '"from-plugin", revision=1'))
    for now in (2, 0):
        assert f"{now} of them now" in command("sweep", plugin_grid, *store, "--workers", 1).stderr


def test_files_in_a_list_of_an_option_count(tmp_path: Path) -> None:
    from byzmesh.config.code import _data

    (tmp_path / "a.csv").write_text("1")
    first = _data({"files": [str(tmp_path / "a.csv")]}, None)
    (tmp_path / "a.csv").write_text("22")
    assert first and _data({"files": [str(tmp_path / "a.csv")]}, None) != first


CACHED = """
import byzmesh as bm


def make():
    seen = {}
    def rule(own, received, weights, f):
        seen[len(seen)] = own
        return own + 0.5 * (received.mean(axis=0) - own)
    return rule


bm.register_rule("from-plugin")(make())
"""


@pytest.mark.parametrize("workers", [0, 1])
def test_what_a_run_leaves_in_memory_does_not_fail_the_next(plugin_grid: Path, tmp_path: Path, workers: int) -> None:
    (tmp_path / "mine.py").write_text(CACHED)
    cells = read_grid(plugin_grid)
    told = sweep([cell.config for cell in cells], tmp_path / "runs.db", workers=workers)
    assert told.statuses == {cell.key: "finished" for cell in cells}


EVERY_PART = """
import byzmesh as bm
import networkx
import numpy as np
from byzmesh.problems.neural.augment import Augmentation


@bm.register_rule("my-rule")
def my_rule(own, received, weights, f): return 1 * own


@bm.register_rule("my-inner-rule")
def my_inner_rule(own, received, weights, f): return 2 * own


@bm.register_attack("my-attack")
def my_attack(own, received): return 3 * own


@bm.register_topology("my-topology")
def my_topology(n: int): return networkx.circulant_graph(n, [1, 4])


@bm.register_weights("my-weights")
def my_weights(adjacency): return adjacency / 5 + np.diag(1 - adjacency.sum(axis=1) / 5)


@bm.register_problem("my-problem")
def my_problem(): return bm.Problem("my-problem", {}, bm.problem("quadratic", curvature=6.0).binder)


@bm.register_partition("my-partition")
def my_partition(): return lambda labels, workers, generator: np.array_split(np.arange(700), workers)


@bm.register_schedule("my-step")
def my_step(): return lambda k: 0.8


@bm.register_module("my-module")
def my_module():
    import torch
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.LazyLinear(9))


@bm.register_augmentation("my-augmentation")
def my_augmentation(): return Augmentation(1, lambda images, draws: images * 0.11)


@bm.register_metric("my_metric")
def my_metric(seen): return 12.0
"""
PARTS = {
    "rule my-rule": ("1 *", "2 *"),
    "rule my-inner-rule": ("2 *", "3 *"),
    "attack my-attack": ("3 *", "4 *"),
    "topology my-topology": ("4]", "5]"),
    "weight scheme my-weights": ("/ 5", "/ 6"),
    "problem my-problem": ("6.0", "7.0"),
    "partition my-partition": ("700", "800"),
    "schedule my-step": ("0.8", "0.9"),
    "module my-module": ("(9)", "(1)"),
    "augmentation my-augmentation": ("0.11", "0.21"),
    "metric my_metric": ("12.0", "22.0"),
}


@pytest.mark.parametrize("part", PARTS)
def test_an_edit_of_any_part_is_named(tmp_path: Path, part: str) -> None:
    config = {
        "network": {"name": "my-topology", "n": 6, "byzantine": [1], "weights": "my-weights"},
        "attack": "my-attack",
        "step": "my-step",
        "measure": ["my_metric"],
        "plugins": [str(tmp_path / "mine.py")],
    }
    torch = {"name": "torch", "module": "my-module", "augment": ["my-augmentation"], "partition": "my-partition"}
    inner = {"name": "bucketing", "inner": {"name": "NNM", "inner": "my-inner-rule"}}
    runs = [{**config, "problem": torch, "rule": "my-rule"}, {**config, "problem": "my-problem", "rule": inner}]
    codes: list[dict[str, str]] = [{}, {}]
    with contextlib.ExitStack() as stack:
        for registry in registries().values():
            stack.enter_context(registry.temporary())
        for code, text in zip(codes, (EVERY_PART, EVERY_PART.replace(*PARTS[part])), strict=True):
            (tmp_path / "mine.py").write_text(text)
            for run_of_it in runs:
                code |= make_cell(resolve(run_of_it)).code
    assert set(codes[0]) == set(PARTS)
    assert changes(*codes) == (f"{part} changed",)
