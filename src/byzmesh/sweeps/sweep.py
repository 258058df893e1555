"""Sweeps: many runs on the processes of this machine, or on a cluster.

All state is in the store. A sweep plans its runs there, computes those that have no result, and may be stopped or
killed at any moment: the same call continues. Several sweeps may share a store; each run is computed by one of them.
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

from byzmesh.checks import choice, positive, whole
from byzmesh.config.cell import make_cell
from byzmesh.config.code import CodeReader
from byzmesh.errors import ConfigError
from byzmesh.files import CHECKPOINT_SECONDS
from byzmesh.plugins import texts_of
from byzmesh.progress import progress_bar
from byzmesh.store import ENDED, RunRecord, open_store
from byzmesh.sweeps.checkpoints import tidy
from byzmesh.sweeps.dask import Tls, run_on_cluster
from byzmesh.sweeps.here import run_here
from byzmesh.sweeps.mlflow import MLflow
from byzmesh.sweeps.models import KEEP
from byzmesh.sweeps.processes import Pool
from byzmesh.sweeps.queue import Backlog, Show
from byzmesh.sweeps.reasons import reasons, summary
from byzmesh.sweeps.run_log import RunLogger, run_log
from byzmesh.sweeps.tensorboard import TensorBoard
from byzmesh.sweeps.wandb import WeightsAndBiases
from byzmesh.sweeps.worker import Orders


@dataclass(frozen=True)
class Swept:
    """The state of a sweep when it ends.

    statuses     key -> status of all runs, in the order given
    computed     number of runs that this sweep computed to their end
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
    keep_models: str = "none",
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    tensorboard: str | Path | None = None,
    mlflow: str | Path | None = None,
    wandb: str | Path | None = None,
    show: Show = lambda backlog, record: None,
    progress: bool = False,
) -> Swept:
    """Compute the runs of these canonical configs that have no result in the store yet.

    workers             processes, by default one per core; each uses one thread unless a config says otherwise.
                        0: one run after another in this process
    dask, tls           address of a Dask scheduler (tcp://host:8786) whose workers compute instead
    retry_failed        compute failed runs again, from round 0
    recompute           compute all runs again; an old result stays until a new one replaces it
    keep_models         `final`: keep the final honest models in the folder `STORE.models`, with the state from which a
                        run with more rounds continues; `all`: also the models of each evaluation. Not by default: the
                        models of a run are ten to a thousand times the size of its entry in the store
    checkpoint_seconds  how often each run's state is written to the folder `STORE.checkpoints`
    tensorboard         folder for TensorBoard event files of all runs that have a result
    mlflow              tracking URI or folder of MLflow, for the same runs
    wandb               folder for offline runs of Weights & Biases, of the same runs
    show                called with the state of the sweep (`Backlog`) and the record of each run that ended
    progress            show a bar, in a notebook or a terminal

    Ctrl-C and SIGTERM end the sweep after a checkpoint of every run; `Swept.interrupted` is then True.
    A script that calls this with `workers` needs the guard `if __name__ == "__main__":`, as every use of processes.
    """
    if workers is not None and dask is not None:
        raise ConfigError("workers are processes on this machine and dask is a cluster; give one of them")
    if tls is not None and dask is None:
        raise ConfigError("tls is for a cluster; give the address of its scheduler as dask")
    count = cores() if workers is None else whole("workers", workers, 0)
    positive("checkpoint_seconds", checkpoint_seconds)
    choice("keep_models", keep_models, KEEP)
    loggers: list[RunLogger] = [
        kind(where)
        for kind, where in ((TensorBoard, tensorboard), (MLflow, mlflow), (WeightsAndBiases, wandb))
        if where is not None
    ]
    with open_store(store) as opened, progress_bar(progress) as tell:
        again = (*ENDED, "failed") if recompute else ("failed",) if retry_failed else ()
        reader = CodeReader()
        cells = {cell.key: cell for cell in (make_cell(dict(config), reader=reader) for config in configs)}
        because = reasons(opened, list(cells.values()))
        keys = opened.plan_all([c.config for c in cells.values()], [c.code for c in cells.values()], again=again)

        def write(record: RunRecord) -> None:
            told = run_log(opened, record)
            for logger in loggers:
                logger.write(told)

        def shown(backlog: Backlog, record: RunRecord | None) -> None:
            show(backlog, record)
            tell(backlog.share, f"{len(backlog.ended)} of {len(backlog.keys)} runs")
            if loggers and record is not None and record.status in ENDED:
                write(record)

        backlog = Backlog(opened, keys, shown)
        for text in summary(because.values()):
            backlog.note(text)
        if loggers:
            for key, status in backlog.ended.items():
                if status in ENDED:
                    write(opened.get(key))
        plugins = {name for cell in cells.values() for name in cell.config.get("plugins", ())}
        orders = Orders(
            store=opened.path, checkpoint_seconds=checkpoint_seconds, keep_models=keep_models, texts=texts_of(plugins)
        )
        interrupted = False
        with _terminable():
            try:
                if dask is not None:
                    run_on_cluster(backlog, orders, dask, tls)
                elif count == 0:
                    run_here(backlog, orders)
                else:
                    Pool(backlog, orders, count).run()
            except KeyboardInterrupt:
                interrupted = True
        tidy(opened.path, backlog.ended)
        statuses = {key: backlog.ended.get(key) or opened.get(key).status for key in keys}
        return Swept(statuses, backlog.computed, interrupted)


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
