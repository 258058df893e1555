"""Audits on processes, on a Dask cluster, and after Ctrl-C find what an audit in one go and one process finds."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import byzmesh as bm
from byzmesh.store import RunRecord
from byzmesh.studies.audit import lies
from byzmesh.studies.audit.halving import LAST
from byzmesh.studies.audit.verdicts import Audit
from byzmesh.sweeps.processes import Pool
from byzmesh.sweeps.queue import Backlog
from byzmesh.sweeps.worker import Orders
from tests.processes import results
from tests.sweeps.test_dask import Cluster

CONFIG = {
    "problem": {"name": "noisy-quadratic", "dimension": 2},
    "network": {"name": "complete", "n": 6, "byzantine": [5]},
    "rule": "IOS",
    "rounds": 40,
}


@pytest.fixture(autouse=True)
def one_family(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lies, "FAMILIES", {"sign-flipping": lies.FAMILIES["sign-flipping"]})


def search(store: Path, **more: Any) -> Audit:
    return bm.audit(CONFIG, runs=5, seeds=2, finals=1, store=store, **more)


@pytest.fixture
def known(tmp_path: Path) -> tuple[Audit, dict[str, Any]]:
    """The audit in this process, in one go, and its runs."""
    store = tmp_path / "known.db"
    return search(store, workers=0), results(store)


def check(found: Audit, known: tuple[Audit, dict[str, Any]]) -> None:
    """The same runs, bit for bit, and the same said about them."""
    assert found.to_dict() == {**known[0].to_dict(), "store": str(found.store)}
    assert results(found.store) == known[1]


def test_two_processes_find_what_one_finds(
    known: tuple[Audit, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []

    def pool(backlog: Backlog, orders: Orders, count: int) -> Pool:
        counts.append(count)
        return Pool(backlog, orders, count)

    monkeypatch.setattr("byzmesh.sweeps.sweep.Pool", pool)
    check(search(tmp_path / "runs.db", workers=2), known)
    assert len(counts) >= 4 and set(counts) == {2}, "every stage on two processes"


@pytest.mark.parametrize("ended", [2, 12])
def test_what_is_finished_before_ctrl_c_is_not_computed_again(
    ended: int, known: tuple[Audit, dict[str, Any]], tmp_path: Path
) -> None:
    """Stopped in the first stage, and in the last."""
    store = tmp_path / "runs.db"
    computed: list[str] = []

    def show(backlog: Backlog, record: RunRecord | None) -> None:
        if record is not None:
            computed.append(record.key)
            if len(computed) == ended:
                os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        first = search(store, workers=0, show=show)
    finally:
        signal.signal(signal.SIGINT, before)
    assert first.interrupted and len(computed) == ended
    assert any(trial.stage == LAST for trial in first["IOS"].trials) == (ended == 12)
    found = search(store, workers=0, show=show)
    assert not found.interrupted
    check(found, known)
    assert len(computed) == len(set(computed)) == len(known[1])


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    started = Cluster(tmp_path)
    yield started
    started.close()


def test_a_cluster_finds_what_this_process_finds(
    cluster: Cluster, known: tuple[Audit, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.worker()
    for here in ("Pool", "run_here"):
        monkeypatch.setattr(f"byzmesh.sweeps.sweep.{here}", None)
    check(search(tmp_path / "runs.db", dask=cluster.address), known)
