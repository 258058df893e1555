"""The worker processes of a local sweep: starts them, gives them runs, replaces those that die, stops them.

Where the system can fork, one process imports the library and every worker is forked from it: a worker, also one that
replaces another, starts in milliseconds. Elsewhere each worker imports the library itself.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from byzmesh.errors import ByzmeshError, StoreError
from byzmesh.store import this_process
from byzmesh.sweeps.queue import Backlog
from byzmesh.sweeps.worker import Orders, serve

MOST_DEATHS = 3
"""A run whose process died this often (out of memory, say) has failed."""

_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection
    ready: bool = False
    key: str | None = None


class Pool:
    """The worker processes of a sweep."""

    def __init__(self, backlog: Backlog, orders: Orders, count: int) -> None:
        self.backlog = backlog
        self.orders = orders
        self.count = count
        self.workers: list[_Worker] = []
        self.deaths: Counter[str | None] = Counter()

    def run(self) -> None:
        """Compute all runs of the backlog; always stops the workers at the end."""
        try:
            while self.backlog.open:
                while len(self.workers) < min(self.count, len(self.backlog.waiting) + len(self.backlog.running)):
                    self.workers.append(_start(self.orders))
                for worker in self.workers:
                    if worker.ready and worker.key is None:
                        worker.key = self.backlog.next()
                        if worker.key is not None:
                            self._send(worker, worker.key)
                self._listen()
                self.backlog.look()
        finally:
            self._stop()

    def _send(self, worker: _Worker, message: str | None) -> None:
        with contextlib.suppress(OSError):  # a dead worker is noticed when listening
            worker.connection.send(message)

    def _listen(self) -> None:
        connections = {worker.connection: worker for worker in self.workers}
        for connection in wait(list(connections), timeout=0.2):
            worker = connections[connection]  # type: ignore[index]
            messages, dead = [], False
            try:
                while worker.connection.poll():
                    messages.append(worker.connection.recv())
            except (EOFError, OSError):
                dead = True
            # Outside the try: a later error, such as a closed stderr, is not the worker's death.
            for message in messages:
                self._hear(worker, *message)
            if dead:
                self._bury(worker)

    def _hear(self, worker: _Worker, word: str, *rest: Any) -> None:
        if word == "at":
            self.backlog.at(*rest)
        elif word == "ready":
            worker.ready = True
        elif word == "note":
            self.backlog.note(*rest)
        elif word == "broken":
            raise StoreError(rest[0])
        else:
            worker.key = None
            self.backlog.hear(word, *rest)

    def _bury(self, worker: _Worker) -> None:
        """A worker died unexpectedly: its run is computed again, unless it died too often."""
        self.workers.remove(worker)
        worker.process.join()
        worker.connection.close()
        key, code = worker.key, worker.process.exitcode
        self.deaths[key] += 1
        if key is None and self.deaths[key] >= MOST_DEATHS:
            raise ByzmeshError(
                f"worker processes die before their first run (exit code {code}); see the messages above, "
                "and check that a script that calls sweep() has the guard if __name__ == '__main__'"
            )
        if key is None:
            return
        if self.deaths[key] < MOST_DEATHS or self.backlog.store.get(key).settled:
            self.backlog.again(key)
            return
        text = f"the process that computed this run died {MOST_DEATHS} times (exit code {code}); out of memory?"
        if self.backlog.store.claim(key, this_process()):
            self.backlog.store.fail(key, "killed", text, owner=this_process())
            self.backlog.end(key, "failed")
        else:
            self.backlog.taken(key)

    def _stop(self) -> None:
        """Let every worker write a checkpoint and exit; a second Ctrl-C does not wait for that."""
        try:
            for worker in self.workers:
                self._send(worker, None)
            for worker in self.workers:
                worker.process.join()
        except KeyboardInterrupt:
            for worker in self.workers:
                worker.process.kill()
                worker.process.join()
        finally:
            for worker in self.workers:
                worker.connection.close()
            self.workers.clear()


def _start(orders: Orders) -> _Worker:
    ours, theirs = multiprocessing.Pipe()
    former = dict(os.environ)
    os.environ.update(_ONE_THREAD)
    try:
        process = _process(dict(os.environ), theirs, orders)
        process.start()
    finally:
        for name in _ONE_THREAD.keys() - former.keys():
            del os.environ[name]
        os.environ.update(former)
    theirs.close()
    return _Worker(process, ours)


def _process(*arguments: Any) -> BaseProcess:
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn").Process(target=_serve, args=arguments, daemon=True)
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload([serve.__module__])
    return forks.Process(target=_serve, args=arguments, daemon=True)


def _serve(environment: Mapping[str, str], connection: Connection, orders: Orders) -> None:
    """A worker forked from an older process has the environment of the sweep."""
    os.environ.clear()
    os.environ.update(environment)
    serve(connection, orders)
