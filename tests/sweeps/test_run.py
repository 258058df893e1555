"""One run: stopped and resumed bit for bit, damaged checkpoints, leases."""

import os
import threading
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzmesh.config.grid import expand
from byzmesh.errors import ConfigError, DataError, InfeasibleBound, MissingExtra
from byzmesh.simulation.engine import Simulation
from byzmesh.simulation.run import Run
from byzmesh.store import Owner, Store, open_store
from byzmesh.store.records import FAILURE_KINDS
from byzmesh.sweeps.checkpoints import Checkpoint, checkpoint_folder, delete_runs, find_runs, tidy
from byzmesh.sweeps.failures import failure_kind, failure_text
from byzmesh.sweeps.leases import Leases
from byzmesh.sweeps.run import compute

# Rules with memory, liars with memory or draws, momentum: what a checkpoint must hold.
HARD = [
    {"rule": "cc", "attack": "gaussian", "local": {"momentum": "heavy-ball"}},
    {"rule": "ios", "attack": "mimic"},
    {"rule": "simrew", "attack": "alie"},
    {"rule": {"name": "bucketing", "inner": "krum"}, "attack": "label-flipping"},
]


def config(samples: Path, **parts: Any) -> dict[str, Any]:
    base = {"problem": {"name": "softmax", "dataset": str(samples)}, "network": "paper/two-castle", "rounds": 60}
    return expand({"base": {**base, "evaluate_every": 7, **parts}})[0].config


def _before(stop: int, run: Simulation) -> bool:
    return run.round < stop


def same(one: Run, other: Run) -> None:
    assert (one.status, one.rounds) == (other.status, other.rounds)
    assert {name: values.tobytes() for name, values in one.metrics.items()} == {
        name: values.tobytes() for name, values in other.metrics.items()
    }
    assert (one.edges is None) == (other.edges is None)
    if one.edges is not None and other.edges is not None:
        for name, values in vars(one.edges).items():
            np.testing.assert_array_equal(values, vars(other.edges)[name])


@pytest.mark.parametrize("parts", HARD, ids=lambda parts: str(parts["attack"]))
def test_a_run_stopped_at_any_round_continues_bit_for_bit(samples: Path, tmp_path: Path, parts: dict[str, Any]) -> None:
    written = config(samples, **parts)
    whole = compute(written)
    assert whole.status == "finished"
    warnings: list[str] = []
    checkpoint = Checkpoint(tmp_path / "folder" / "run", 1e9, warnings.append)
    seen: list[int] = []
    for stop in (1, 23, 24, 49):
        part = compute(written, partial(_before, stop), checkpoint)
        assert (part.status, part.rounds) == ("interrupted", stop)

    def watch(run: Simulation) -> bool:
        seen.append(run.round)
        return True

    same(compute(written, watch, checkpoint), whole)
    assert seen == list(range(50, 61))
    assert warnings == []


def test_checkpoints_are_written_during_the_run(samples: Path, tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "run", 1e-9, pytest.fail)
    rounds: list[int] = []

    def watch(run: Simulation) -> bool:
        if run.round > 2:
            rounds.append(checkpoint.path.stat().st_mtime_ns)
        return run.round < 10

    compute(config(samples, rule="ios"), watch, checkpoint)
    assert len(set(rounds)) > 1


def test_a_damaged_checkpoint_costs_time_not_the_run(samples: Path, tmp_path: Path) -> None:
    written = config(samples, rule="ios", attack="gaussian")
    warnings: list[str] = []
    checkpoint = Checkpoint(tmp_path / "run", 1e9, warnings.append)
    compute(written, lambda run: run.round < 30, checkpoint)
    held = bytearray(checkpoint.path.read_bytes())
    held[len(held) // 2] ^= 1
    checkpoint.path.write_bytes(held)
    same(compute(written, lambda run: True, checkpoint), compute(written))
    assert len(warnings) == 1
    assert "damaged" in warnings[0] and "starts again" in warnings[0]


def test_a_checkpoint_that_cannot_be_written_does_not_end_the_run(samples: Path, tmp_path: Path) -> None:
    warnings: list[str] = []
    (tmp_path / "file").write_text("")
    checkpoint = Checkpoint(tmp_path / "file" / "run", 1e-9, warnings.append)
    assert compute(config(samples, rule="ios"), lambda run: True, checkpoint).status == "finished"
    assert "the run continues without one" in warnings[0]


def test_a_users_mistake_is_a_line_and_a_bug_is_a_trace() -> None:
    assert failure_text(ConfigError("f = 9 is too large")) == "f = 9 is too large"
    try:
        dict[str, int]()["missing"]
    except KeyError as error:
        text = failure_text(error)
    assert "Traceback" in text and "test_run.py" in text and "KeyError: 'missing'" in text


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (InfeasibleBound(rule="Krum", worker=3, f=9, largest=1, neighbours=4), "infeasible"),
        (MissingExtra("torch", "problem 'torch'"), "missing"),
        (DataError("no data file"), "data"),
        (ConfigError("f = 9 is too large"), "config"),
        (MemoryError(), "memory"),
        (type("OutOfMemoryError", (RuntimeError,), {})(), "memory"),
        (ZeroDivisionError(), "bug"),
    ],
)
def test_a_failure_has_a_kind(error: BaseException, kind: str) -> None:
    assert failure_kind(error) == kind and kind in FAILURE_KINDS


def test_tidy_deletes_only_what_is_over(tmp_path: Path) -> None:
    folder = checkpoint_folder(tmp_path / "runs.db")
    folder.mkdir()
    for name in ("aa", ".aa-x1y2", "bb", ".bb-q"):
        (folder / name).write_text("")
    tidy(tmp_path / "runs.db", ["aa"])
    assert sorted(os.listdir(folder)) == [".bb-q", "bb"]
    tidy(tmp_path / "runs.db", ["aa", "bb"])
    assert not folder.exists()


def test_runs_are_deleted_with_their_checkpoints(tmp_path: Path) -> None:
    with open_store(tmp_path / "runs.db") as store:
        keys = store.plan_all({"seed": seed} for seed in range(3))
        folder = checkpoint_folder(store.path)
        folder.mkdir()
        (folder / keys[0]).write_text("")
        (folder / keys[1]).write_text("")
        with pytest.raises(ConfigError, match="either by their keys or by --where"):
            find_runs(store, [], {}, None)
        with pytest.raises(ConfigError, match="either by their keys or by --where"):
            find_runs(store, [keys[0]], {"seed": 0}, None)
        delete_runs(store, find_runs(store, [], {"seed": 0}, None))
        assert [run.key for run in store.list()] == keys[1:]
        assert os.listdir(folder) == [keys[1]]


def lease_until(store: Store, key: str) -> float:
    until = store.get(key).lease_until
    assert until is not None
    return until


def test_a_held_run_keeps_its_lease_and_a_lost_one_is_noticed(tmp_path: Path) -> None:
    with open_store(tmp_path / "runs.db") as store:
        key, other = store.plan_all([{"seed": 0}, {"seed": 1}])
        with Leases(store, seconds=0.4) as leases:
            assert leases.take(key) and leases.take(other)
            assert not leases.take(key)
            first = lease_until(store, key)
            leases.drop(other)
            patience = threading.Event()
            while lease_until(store, key) < first + 1:  # several times the length of a lease
                assert not patience.wait(0.05)
            assert key not in leases.lost
            thief = Owner("elsewhere", 1)
            assert store.claim(other, thief, 60)  # dropped, and its lease ran out
            assert store.finish(key, "interrupted", {}, owner=leases.owner)
            while key not in leases.lost:
                assert not patience.wait(0.05)
            assert other not in leases.lost
