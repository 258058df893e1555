"""A run of a sweep on this machine, and the worker processes that compute such runs.

    parent -> worker    a run's key, or None: stop
    worker -> parent    ("ready",)  ("at", key, round, metrics)  ("note", text)
                        ("ended", key, status)  ("taken", key)
                        ("broken", text): the store cannot be used, the worker exits

The worker itself claims the run in the store, under its own process id: if it is killed, the run is free at once. When
the parent dies, the pipe closes and the worker stops after a checkpoint, as if it had been told to.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from byzmesh.config.code import check_code
from byzmesh.errors import StoreError
from byzmesh.plugins import keep_loaded, load_texts
from byzmesh.simulation.engine import Simulation
from byzmesh.store import Store, open_store
from byzmesh.sweeps.checkpoints import Checkpoint, checkpoint_folder
from byzmesh.sweeps.failures import failure_kind, failure_text
from byzmesh.sweeps.leases import LEASE_SECONDS, Leases
from byzmesh.sweeps.longer import state_to_go_on_from
from byzmesh.sweeps.models import keeper
from byzmesh.sweeps.run import INTERRUPTED, GoOn, compute, store_run

LOOK_SECONDS = 0.1
"""How often a computing worker checks whether it should stop."""
TELL_SECONDS = 0.5


@dataclass(frozen=True, kw_only=True)
class Orders:
    """The options for every process that computes runs of a sweep."""

    store: Path
    checkpoint_seconds: float
    keep_models: str = "none"
    texts: Mapping[str, str] = field(default_factory=dict)
    """Contents of the scripts among the plugins of the runs, by path."""
    lease_seconds: float = LEASE_SECONDS


def work(
    key: str,
    orders: Orders,
    store: Store,
    leases: Leases,
    go_on: GoOn,
    note: Callable[[str], None],
) -> tuple[str, ...]:
    """Compute a run if it is free, and store its result: ("ended", key, status) or ("taken", key)."""
    path = checkpoint_folder(store.path) / key
    try:
        if not leases.take(key):
            return ("taken", key)
        run = store.get(key)
        check_code(run.config, run.code)
        shorter = None if path.exists() else state_to_go_on_from(store, run, note)
        checkpoint = Checkpoint(path, orders.checkpoint_seconds, note, shorter)
        computed = compute(run.config, go_on, checkpoint, keeper(store.path, key, orders.keep_models))
    except (StoreError, KeyboardInterrupt):
        with contextlib.suppress(StoreError):
            store.finish(key, INTERRUPTED, {}, owner=leases.owner)
        raise
    except Exception as error:
        stored, status = store.fail(key, failure_kind(error), failure_text(error), owner=leases.owner), "failed"
    else:
        stored, status = store_run(store, key, computed, leases.owner), computed.status
    finally:
        leases.drop(key)
    if not stored:
        return ("taken", key)
    if status != INTERRUPTED:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
    return ("ended", key, status)


def serve(connection: Connection, orders: Orders) -> None:
    """Compute the runs whose keys arrive, until told to stop or the parent is gone."""
    # Ctrl-C goes to all processes of a terminal; the parent tells its workers what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with open_store(orders.store) as store, Leases(store, orders.lease_seconds) as leases:
            # Compute what was planned, even if the scripts have been edited since.
            keep_loaded()
            load_texts(orders.texts)
            connection.send(("ready",))

            def note(text: str) -> None:
                _tell(connection, "note", text)

            while (key := connection.recv()) is not None:
                go_on = _watch(connection, leases, key)
                connection.send(work(key, orders, store, leases, go_on, note))
    except StoreError as error:
        _tell(connection, "broken", str(error))
    except (EOFError, OSError):
        return  # the parent is gone


def latest(simulation: Simulation) -> dict[str, float]:
    """The metrics of a run's last evaluation."""
    return {name: values[-1] for name, values in simulation.series.items()}


def _watch(connection: Connection, leases: Leases, key: str) -> GoOn:
    looked = told = 0.0

    def go_on(simulation: Simulation) -> bool:
        nonlocal looked, told
        now = time.monotonic()
        if now - looked < LOOK_SECONDS:
            return True
        looked = now
        if now - told >= TELL_SECONDS:
            told = now
            _tell(connection, "at", key, simulation.round, latest(simulation))
        # Something to read is either the order to stop or the end of the parent.
        return key not in leases.lost and not connection.poll()

    return go_on


def _tell(connection: Connection, *message: object) -> None:
    try:
        connection.send(message)
    except OSError:
        return  # the parent is gone, as the next check of the pipe will show
