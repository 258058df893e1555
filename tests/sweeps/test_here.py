"""Sweeps in this process, as `byzmesh run` does one: the same bits, stopped between rounds, resumed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from byzmesh.config.code import CodeReader
from byzmesh.store import Owner, RunRecord, open_store
from byzmesh.sweeps.queue import Backlog
from byzmesh.sweeps.sweep import sweep
from tests.processes import alone, configs, results

GridFile = Callable[..., Path]


def test_runs_here_equal_those_of_processes_and_report_progress(grid_file: GridFile, tmp_path: Path) -> None:
    written = configs(grid_file(rounds=400, axes={"rule": ["ios", "coomed"]}))
    ended: list[str] = []
    metrics: list[str] = []

    def show(backlog: Backlog, record: RunRecord | None) -> None:
        if record is not None:
            ended.append(record.status)
        for latest in backlog.latest.values():
            metrics.extend(latest)

    told = sweep(written, tmp_path / "runs.db", workers=0, show=show)
    assert (told.computed, told.interrupted, ended) == (2, False, ["finished"] * 2)
    assert "accuracy" in metrics and "consensus_error" in metrics
    assert list(results(tmp_path / "runs.db").values()) == [alone(config) for config in written]
    assert sweep(written, tmp_path / "runs.db", workers=0).computed == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_waits_for_the_round_to_end_and_the_next_call_continues(
    grid_file: GridFile, tmp_path: Path, number: signal.Signals
) -> None:
    written = configs(grid_file(rounds=300, axes={"seed": [0, 1]}))
    store = tmp_path / "runs.db"
    first: list[int] = []

    def stop(backlog: Backlog, record: RunRecord | None) -> None:
        if backlog.reached and not first:
            first.extend(last for _, last in backlog.reached.values())
            os.kill(os.getpid(), number)

    handlers = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    told = sweep(written, store, workers=0, checkpoint_seconds=1e6, show=stop)
    assert told.interrupted and list(told.statuses.values()) == ["interrupted", "planned"]
    assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == handlers
    with open_store(store) as opened:
        (kept,) = opened.list(status="interrupted")
        assert kept.rounds is not None and 0 < kept.rounds < 300
        assert os.listdir(tmp_path / "runs.db.checkpoints") == [kept.key]
    begun: list[int] = []

    def watch(backlog: Backlog, record: RunRecord | None) -> None:
        begun.extend(start for key, (start, _) in backlog.reached.items() if key == kept.key)

    assert not sweep(written, store, workers=0, show=watch).interrupted
    assert begun[0] > kept.rounds
    assert list(results(store).values()) == [alone(config) for config in written]
    assert not (tmp_path / "runs.db.checkpoints").exists()


def test_a_stop_before_the_first_round_is_immediate(
    grid_file: GridFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("byzmesh.sweeps.run.build", interrupt)
    told = sweep(configs(grid_file()), tmp_path / "runs.db", workers=0)
    assert told.interrupted and list(told.statuses.values()) == ["interrupted"]


def test_a_failure_is_stored_and_the_next_run_computed(grid_file: GridFile, tmp_path: Path) -> None:
    written = configs(grid_file(cases={"hopeless": {"rule": "krum", "f": 9}, "fine": {"rule": "ios"}}))
    told = sweep(written, tmp_path / "runs.db", workers=0)
    assert list(told.statuses.values()) == ["failed", "finished"]
    with open_store(tmp_path / "runs.db") as store:
        assert "f = 9 is infeasible" in str(store.get(told.failed[0]).failure)


def test_it_waits_for_a_run_that_another_process_computes(grid_file: GridFile, tmp_path: Path) -> None:
    (config,) = configs(grid_file())
    other = Owner("another-host", 1)
    with open_store(tmp_path / "runs.db") as store:
        key = store.plan(config, CodeReader().of(config))
        assert store.claim(key, other, 1e6)
        looks: list[int] = []

        def show(backlog: Backlog, record: RunRecord | None) -> None:
            looks.append(len(backlog.elsewhere))
            if looks.count(1) == 3:
                store.finish(key, "finished", {"loss": [1.0]}, owner=other)

        told = sweep([config], store.path, workers=0, show=show)
        assert told.statuses == {key: "finished"}
        assert store.series(key)["loss"].tolist() == [1.0]
