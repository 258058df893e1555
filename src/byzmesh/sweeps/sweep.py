"""Sweeps: many runs on the processes of this machine, or on a cluster.

The store is the only memory. A sweep plans its runs there, computes those that have no result, and may be stopped or
killed at any moment: the same call again goes on. Several sweeps may share a store; each run is computed by one.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byzmesh.checks import positive, whole
from byzmesh.errors import ConfigError
from byzmesh.store import ENDED, RunRecord, open_store
from byzmesh.sweeps.checkpoints import CHECKPOINT_SECONDS, tidy
from byzmesh.sweeps.dask import Tls, run_on_cluster
from byzmesh.sweeps.processes import Pool
from byzmesh.sweeps.queue import Backlog, Show
from byzmesh.sweeps.tensorboard import check_tensorboard, write_events
from byzmesh.sweeps.worker import Orders


@dataclass(frozen=True)
class Outcome:
    """How a sweep stands when it ends.

    statuses     key -> status of all runs, in the order given
    computed     number of runs that ended during this sweep
    interrupted  whether it was stopped before everything was done
    """

    statuses: dict[str, str]
    computed: int
    interrupted: bool

    @property
    def failed(self) -> list[str]:
        """Keys of the runs that failed."""
        return [key for key, status in self.statuses.items() if status == "failed"]


def sweep(
    configs: Sequence[Mapping[str, Any]],
    store: str | Path,
    *,
    workers: int | None = None,
    dask: str | None = None,
    tls: Tls | None = None,
    retry_failed: bool = False,
    recompute: bool = False,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    tensorboard: str | Path | None = None,
    show: Show = lambda backlog, record: None,
) -> Outcome:
    """Compute the runs of these canonical configs that have no result in the store yet.

    workers             processes, by default one per core; each uses one thread unless a config says otherwise
    dask, tls           address of a Dask scheduler (tcp://host:8786) whose workers compute instead
    retry_failed        compute failed runs once more, from round 0
    recompute           compute all runs once more; a result is replaced when there is a new one, not before
    checkpoint_seconds  how often each run's state is written to the folder `STORE.checkpoints`
    tensorboard         folder for TensorBoard event files of all runs that have a result
    show                told how the sweep stands (`Backlog`), and the record of each run that ended

    Ctrl-C and SIGTERM end the sweep after a checkpoint of every run; `Outcome.interrupted` then is True.
    A script that calls this needs the guard `if __name__ == "__main__":`, as for every use of processes.
    """
    if workers is not None and dask is not None:
        raise ConfigError("workers are processes of this machine and dask is a cluster; give one of them")
    if tls is not None and dask is None:
        raise ConfigError("tls is for a cluster; give the address of its scheduler as dask")
    count = whole("workers", cores() if workers is None else workers, 1)
    positive("checkpoint_seconds", checkpoint_seconds)
    if tensorboard is not None:
        check_tensorboard(tensorboard)
    with open_store(store) as opened:
        again = (*ENDED, "failed") if recompute else ("failed",) if retry_failed else ()
        keys = list(dict.fromkeys(opened.plan_all(configs, again=again)))

        def shown(backlog: Backlog, record: RunRecord | None) -> None:
            show(backlog, record)
            if tensorboard is not None and record is not None and record.status in ENDED:
                write_events(opened, record, tensorboard)

        backlog = Backlog(opened, keys, shown)
        if tensorboard is not None:
            for key, status in backlog.ended.items():
                if status in ENDED:
                    write_events(opened, opened.get(key), tensorboard)
        interrupted = False
        with _terminable():
            try:
                if dask is not None:
                    run_on_cluster(backlog, dask, tls)
                else:
                    Pool(backlog, Orders(opened.path, checkpoint_seconds), count).run()
            except KeyboardInterrupt:
                interrupted = True
        tidy(opened.path, backlog.ended)
        statuses = {key: backlog.ended.get(key) or opened.get(key).status for key in keys}
        return Outcome(statuses, len(backlog.ended) - backlog.before, interrupted)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM, which batch systems send, means the same as Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    former = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)
