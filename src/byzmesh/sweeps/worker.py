"""A worker process of a local sweep.

    parent -> worker    a run's key, or None: stop
    worker -> parent    ("ready",)  ("round", key, k)  ("ended", key, status)  ("taken", key)
                        ("warning", text)  ("broken", text): the store cannot be used, the worker ends

The worker claims the run in the store itself, under its own process id: if it is killed, the run is free at once. When
the parent dies the pipe closes, and the worker stops after a checkpoint as if it had been asked to.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from byzmesh.errors import StoreError
from byzmesh.store import Store, open_store
from byzmesh.sweeps.checkpoints import Checkpoint, checkpoint_folder
from byzmesh.sweeps.failures import failure_kind, failure_text
from byzmesh.sweeps.leases import LEASE_SECONDS, Leases
from byzmesh.sweeps.run import INTERRUPTED, compute, store_result

LOOK_SECONDS = 0.1
"""How often a computing worker looks whether it should stop."""
TELL_SECONDS = 0.5


@dataclass(frozen=True)
class Orders:
    """What all workers of a sweep are told when they start."""

    store: Path
    checkpoint_seconds: float
    lease_seconds: float = LEASE_SECONDS


def serve(connection: Connection, orders: Orders) -> None:
    """Compute the runs whose keys come in, until told to stop or the parent is gone."""
    # Ctrl-C goes to all processes of a terminal; the parent tells its workers what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with open_store(orders.store) as store, Leases(store, orders.lease_seconds) as leases:
            connection.send(("ready",))
            while (key := connection.recv()) is not None:
                connection.send(_work(connection, orders, store, leases, key))
    except StoreError as error:
        _tell(connection, "broken", str(error))
    except (EOFError, OSError):
        return  # the parent is gone


def _work(connection: Connection, orders: Orders, store: Store, leases: Leases, key: str) -> tuple[str, ...]:
    if not leases.take(key):
        return ("taken", key)
    checkpoint = Checkpoint(
        checkpoint_folder(store.path) / key,
        orders.checkpoint_seconds,
        lambda text: _tell(connection, "warning", text),
    )
    try:
        result = compute(store.get(key).config, _watch(connection, leases, key), checkpoint)
    except StoreError:
        raise
    except Exception as error:
        stored, status = store.fail(key, failure_kind(error), failure_text(error), owner=leases.owner), "failed"
    else:
        stored, status = store_result(store, key, result, leases.owner), result.status
    finally:
        leases.drop(key)
    if not stored:
        return ("taken", key)
    if status != INTERRUPTED:
        checkpoint.remove()
    return ("ended", key, status)


def _watch(connection: Connection, leases: Leases, key: str) -> Callable[[int], bool]:
    """What `compute` asks after every round: go on?"""
    looked = told = 0.0

    def go_on(round: int) -> bool:
        nonlocal looked, told
        now = time.monotonic()
        if now - looked < LOOK_SECONDS:
            return True
        looked = now
        if now - told >= TELL_SECONDS:
            told = now
            _tell(connection, "round", key, round)
        # Readable is either the word to stop or the end of a parent.
        return key not in leases.lost and not connection.poll()

    return go_on


def _tell(connection: Connection, *message: object) -> None:
    try:
        connection.send(message)
    except OSError:
        return  # the parent is gone, which the next look at the pipe shows
