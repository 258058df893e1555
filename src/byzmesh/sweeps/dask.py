"""Sweeps on a Dask cluster: the cluster computes the runs, and only this process writes the store.

Each run is one task, which returns what the store keeps of it. If a worker dies, Dask gives its task to another one; a
run that keeps killing its workers ends as failed. Only as many runs are claimed and submitted at a time as keep the
workers busy, so that other sweeps on the same store find something to do.
"""

from __future__ import annotations

import contextlib
import queue
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from byzmesh.config.code import check_code
from byzmesh.errors import ByzmeshError, ConfigError, MissingExtra
from byzmesh.plugins import keep_loaded, load_texts, texts_of
from byzmesh.simulation.engine import Simulation
from byzmesh.simulation.run import Run
from byzmesh.store.provenance import provenance
from byzmesh.sweeps.failures import failure_kind, failure_text
from byzmesh.sweeps.leases import Leases
from byzmesh.sweeps.models import Keeper, writer
from byzmesh.sweeps.queue import Backlog
from byzmesh.sweeps.run import INTERRUPTED, compute, store_run
from byzmesh.sweeps.worker import Orders

CONNECT_SECONDS = 20.0
LEAST_SUBMITTED = 32
"""Tasks to queue even on a small cluster: an adaptive cluster grows only if tasks are waiting."""
LOOK_SECONDS = 2.0
"""How often a computing worker asks whether the sweep was stopped."""


@dataclass(frozen=True)
class Tls:
    """Files (PEM) for an encrypted cluster: the authority's certificate, this client's certificate and its key."""

    ca: str
    cert: str
    key: str


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer of a Dask worker: a run without its models, or why there is none.

    failure  kind and text
    files    what follows the key in the name of a file of kept models -> its content
    """

    run: Run | None = None
    failure: tuple[str, str] = ("", "")
    provenance: Mapping[str, Any] = field(default_factory=provenance)
    files: Mapping[str, bytes] = field(default_factory=dict)


def remote(
    config: Mapping[str, Any], code: Mapping[str, str], stop: str, keep_models: str, texts: Mapping[str, str]
) -> Answer:
    """What a Dask worker does: compute a run until it ends or the event named `stop` is set.

    texts  contents of the scripts among its plugins, by path: the worker's machine need not have the files
    """
    from distributed import Event

    event = Event(stop)
    asked = time.monotonic()

    def go_on(simulation: Simulation) -> bool:
        nonlocal asked
        if time.monotonic() - asked < LOOK_SECONDS:
            return True
        asked = time.monotonic()
        return not event.is_set()

    try:
        keep_loaded()
        load_texts(texts)
        check_code(config, code)
        files: dict[str, bytes] = {}
        run = compute(config, go_on, keeper=Keeper(keep_models, files.__setitem__))
        return Answer(run=replace(run, models=run.models[:0]), files=files)
    except Exception as error:
        return Answer(failure=(failure_kind(error), failure_text(error)))


def run_on_cluster(backlog: Backlog, orders: Orders, address: str, tls: Tls | None) -> None:
    """Compute all runs of the backlog; always tells the cluster to stop at the end."""
    with _client(address, tls) as client, Leases(backlog.store) as leases:
        jobs = _Jobs(backlog, orders, client, leases)
        try:
            while backlog.open:
                jobs.submit()
                jobs.receive()
                backlog.look()
                if client.status not in ("running", "connecting"):
                    raise ByzmeshError(_lost(address))
        finally:
            jobs.stop()


class _Jobs:
    """The runs of a sweep that are on the cluster."""

    def __init__(self, backlog: Backlog, orders: Orders, client: Any, leases: Leases) -> None:
        from distributed import Event

        self.backlog = backlog
        self.orders = orders
        self.client = client
        self.leases = leases
        self.name = f"byzmesh-{uuid.uuid4().hex}"
        self.event = Event(self.name, client=client)
        self.keys: dict[Any, str] = {}
        self.ready: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def submit(self) -> None:
        """Claim and submit runs until the workers have enough."""
        if not self.backlog.waiting or len(self.keys) >= LEAST_SUBMITTED:
            enough = 2 * sum(self.client.nthreads().values()) if self.backlog.waiting else 0
        else:
            enough = LEAST_SUBMITTED
        while len(self.keys) < enough and (key := self.backlog.next()) is not None:
            if not self.leases.take(key):
                self.backlog.taken(key)
                continue
            run = self.backlog.store.get(key)
            texts = texts_of(run.config.get("plugins", ()))
            asked = (run.config, run.code, self.name, self.orders.keep_models, texts)
            future = self.client.submit(remote, *asked, key=f"{self.name}-{key}", pure=False)
            self.keys[future] = key
            future.add_done_callback(self.ready.put)

    def receive(self) -> None:
        """Store results as they arrive, waiting a moment for the next."""
        with contextlib.suppress(queue.Empty):
            future = self.ready.get(timeout=0.2)
            while True:
                self._end(future)
                future = self.ready.get_nowait()

    def _end(self, future: Any) -> None:
        from distributed import KilledWorker

        if future.status == "cancelled":
            raise ByzmeshError(_lost(self.client.scheduler.address))
        key = self.keys.pop(future)
        error = future.exception() if future.status == "error" else None
        if isinstance(error, KilledWorker):
            text = f"the workers that computed this run died: {error}"
            answer = Answer(failure=("killed", text))
        elif error is not None:
            raise ByzmeshError(
                f"the cluster cannot compute runs ({_root(error)}); install the same byzmesh on all of its workers"
            )
        else:
            answer = future.result()
        store, owner = self.backlog.store, self.leases.owner
        if answer.run is None:
            stored = store.fail(key, *answer.failure, owner=owner, provenance=answer.provenance)
            status = "failed"
        else:
            write = writer(store.path, key)
            for ending, content in answer.files.items():
                write(ending, content)
            stored = store_run(store, key, answer.run, owner, answer.provenance)
            status = answer.run.status
        self.leases.drop(key)
        self.backlog.hear("ended" if stored else "taken", key, status)

    def stop(self) -> None:
        """Release the runs that were not computed."""
        if not self.backlog.running:
            return
        with contextlib.suppress(Exception):  # the cluster may be gone
            self.event.set()
            self.client.cancel(list(self.keys), force=True)
        # Not only submitted runs: Ctrl-C may come between claiming a run and submitting it.
        for key in self.backlog.running:
            self.leases.drop(key)
            self.backlog.store.finish(key, INTERRUPTED, {}, owner=self.leases.owner)
        self.keys.clear()


def _root(error: BaseException) -> str:
    """The root cause of an error, in one line.

    >>> _root(ValueError("no\\nnumber"))
    'ValueError: no number'
    """
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(f"{type(error).__name__}: {error}".split())


def _lost(address: str) -> str:
    return (
        f"the Dask scheduler at {address} is gone or has cancelled the runs; "
        "results that arrived are stored, and the same command computes the rest"
    )


@contextlib.contextmanager
def _client(address: str, tls: Tls | None) -> Iterator[Any]:
    try:
        from distributed import Client
        from distributed.security import Security
    except ImportError as error:
        raise MissingExtra("dask", "a sweep on a Dask cluster") from error
    if address.startswith("tls://") != (tls is not None):
        raise ConfigError(
            f"the Dask scheduler at {address}: an address tls://host:port and the three TLS files "
            "(--tls-ca, --tls-cert, --tls-key) go together; give both or neither"
        )
    security = None
    if tls is not None:
        security = Security(
            tls_ca_file=tls.ca, tls_client_cert=tls.cert, tls_client_key=tls.key, require_encryption=True
        )
    try:
        client = Client(address, security=security, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise ConfigError(
            f"no Dask scheduler answers at {address} ({error}); check the address (tcp://host:8786, or tls:// for an "
            "encrypted cluster) and that the scheduler is running"
        ) from error
    try:
        yield client
    finally:
        with contextlib.suppress(Exception):  # the connection may already be lost
            client.close(timeout=2)
