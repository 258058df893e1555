"""The store of runs: what was planned, which process computes it, and the results.

    planned --claim--> running --finish--> finished | diverged | interrupted
                              \\--fail----> failed

A run is identified by its config and the code that computes it: planning it twice gives one run with one key. A result
is replaced only if it is to be computed again, and only by a new result. Several processes may work on one store:
`claim` gives a run to exactly one of them, under a lease that `heartbeat` extends. If the owner dies or falls silent,
the next claim takes over the run, and anything the former owner still sends is rejected.

The store does not know what a config, an identity of code or a metric means. It must be on a local disk of the machine
whose processes use it; see `byzmesh.store.database`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from byzmesh.checks import choice
from byzmesh.errors import ConfigError, StoreError, UnknownOption, nearest
from byzmesh.store import reading, tables, writing
from byzmesh.store.keys import NO_CODE
from byzmesh.store.owners import Owner
from byzmesh.store.provenance import provenance as gather_provenance
from byzmesh.store.records import ENDED, FAILURE_KINDS, RESULTS, Comparison, RunRecord
from byzmesh.store.session import Session

if TYPE_CHECKING:
    import pandas

LEASE_SECONDS = 60.0

Where = Mapping[str, Any]
Records = list[RunRecord]
Keys = list[str]
Values = list[Any]


def open_store(path: str | os.PathLike[str], *, readonly: bool = False) -> Store:
    """Open the store at `path`; create it if there is none, migrate it if its version is older.

    >>> import tempfile
    >>> from byzmesh.store import this_process
    >>> with tempfile.TemporaryDirectory() as folder, open_store(folder + "/runs.db") as store:
    ...     key = store.plan({"rule": {"name": "IOS", "f": 1}, "seed": 3})
    ...     if store.claim(key, this_process()):
    ...         stored = store.finish(key, "finished", {"accuracy": [0.5, 0.875]}, rounds=100)
    ...     [(run.status, run.final) for run in store.list({"rule.name": "IOS"})]
    [('finished', {'accuracy': 0.875})]
    """
    return Store(path, readonly=readonly)


class Store(Session):
    """An open store; see `open_store`. Threads may share it; another process opens its own (pickling does that)."""

    def plan(self, config: Where, code: Mapping[str, str] = NO_CODE) -> str:
        """Add a run and return its key; an existing run, whatever its state, is not changed.

        code  the code and data of the run that are not built in: part -> identity
        """
        return self.plan_all([config], [code])[0]

    def plan_all(
        self, configs: Iterable[Where], codes: Iterable[Mapping[str, str]] | None = None, *, again: Collection[str] = ()
    ) -> Keys:
        """Add many runs in one transaction and return their keys in the order given.

        codes  as in `plan`, one for each config; none by default
        again  statuses (`finished`, `diverged`, `failed`) whose runs are to be computed again; the store remembers
               this until they are
        """
        for status in again:
            if status not in (*ENDED, "failed"):
                raise ConfigError(
                    f"status = {status!r} cannot be computed again: {nearest(status, (*ENDED, 'failed'))}"
                )
        with self._writing() as connection:
            return writing.add_runs(connection, configs, codes, again)

    def claim(self, key: str, owner: Owner, lease_seconds: float = LEASE_SECONDS) -> bool:
        """Take a run for computing: True for exactly one caller, which then owns it for `lease_seconds`.

        A run is free if it is planned, interrupted or to be computed again, if its lease ran out, or if its owner was a
        process of this machine that ended. Leases use the wall clock: a lease should be much longer than any jump of
        the clock. While a result is computed again, the old one stays visible.
        """
        if not lease_seconds > 0:
            raise ConfigError(f"lease_seconds = {lease_seconds} must be positive; {LEASE_SECONDS:.0f} is the default")
        with self._writing() as connection:
            return writing.take(connection, key, owner, lease_seconds)

    def heartbeat(self, key: str, owner: Owner, lease_seconds: float = LEASE_SECONDS) -> bool:
        """Extend the lease; False if this owner has lost the run and should stop computing it."""
        with self._writing() as connection:
            return writing.extend(connection, key, owner, lease_seconds)

    def finish(
        self,
        key: str,
        status: str,
        metrics: Mapping[str, npt.ArrayLike],
        *,
        edges: npt.ArrayLike | None = None,
        owner: Owner | None = None,
        provenance: Mapping[str, Any] | None = None,
        **facts: Any,
    ) -> bool:
        """Store the result of a run, all or nothing; True if it was stored.

        status      `finished`, `diverged`, or `interrupted` (may be claimed again)
        metrics     one-dimensional numbers by name, kept bit for bit as float64
        edges       (E, 4) integers: sender, receiver, rounds in which the receiver cut it, rounds counted
        owner       store only if the run still belongs to this owner; None: do not check
        provenance  of the process that computed the run; by default this process's
        facts       `rounds`, `seconds`: the columns of `RunRecord` that are declared as results

        A finished or diverged run that is not to be computed again is not changed, and the answer is False.
        """
        choice("status of a run that ends", status, (*ENDED, "interrupted"))
        series = {name: writing.checked_series(name, values) for name, values in metrics.items()}
        links = writing.checked_edges(edges)
        values = {"status": status, "failure": None, "failure_kind": None, **_checked(facts, provenance)}
        with self._writing() as connection:
            return writing.end_run(connection, key, owner, values, series, links)

    def fail(
        self,
        key: str,
        kind: str,
        text: str,
        *,
        owner: Owner | None = None,
        provenance: Mapping[str, Any] | None = None,
        **facts: Any,
    ) -> bool:
        """Record that a run failed, its kind (one of `records.FAILURE_KINDS`) and the reason; otherwise as `finish`.

        If a run with a result was computed again, it keeps that result, and the reason is stored beside it.
        """
        choice("kind of failure", kind, FAILURE_KINDS)
        why = {"failure": text.encode("utf-8", "replace").decode(), "failure_kind": kind}
        values = {"status": "failed", **why, **_checked(facts, provenance)}
        with self._writing() as connection:
            return writing.end_run(connection, key, owner, values)

    def delete(self, *keys: str) -> None:
        """Remove runs (keys or unique prefixes) and everything that belongs to them, unless one is being computed."""
        with self._writing() as connection:
            for key in keys:
                run, record = reading.locate(connection, key)
                if record.leased and record.owner is not None:
                    holder = f"process {record.owner.pid} on {record.owner.host}"
                    raise StoreError(f"run {record.key[:12]} is being computed by {holder}; stop that first")
                writing.remove(connection, run, record)

    def keys(self) -> frozenset[str]:
        """The keys of all runs."""
        with self._reading() as connection:
            return frozenset(row[0] for row in connection.execute("SELECT key FROM runs"))

    def get(self, key: str) -> RunRecord:
        """The run with this key or unique beginning of a key."""
        with self._reading() as connection:
            return reading.locate(connection, key)[1]

    def list(
        self,
        where: Where | None = None,
        status: str | None = None,
        limit: int | None = None,
        *,
        current: bool = False,
    ) -> Records:
        """Runs in the order of planning, filtered by config fields (`{"rule": "IOS", "seed": 3}`) and status.

        limit    keeps the latest ones
        current  of runs that differ only in the code that computes them, only the one planned last: what a table may
                 average

        A field that no run has is an error that suggests the nearest one; see `byzmesh.store.fields` for the names.
        """
        with self._reading() as connection:
            return reading.select(connection, where, status, limit, current=current)

    def values(self, field: str) -> Values:
        """The values of a config field over all runs, in the order in which they first occurred."""
        with self._reading() as connection:
            return reading.values_of(connection, field)

    def series(self, key: str) -> dict[str, npt.NDArray[np.float64]]:
        """All metric series of a run, bit for bit as they were stored."""
        with self._reading() as connection:
            run, _ = reading.locate(connection, key)
            rows = connection.execute("SELECT name, data FROM series WHERE run = ?", (run,)).fetchall()
        return {name: np.frombuffer(data, "<f8").astype(np.float64) for name, data in rows}

    def edges(self, key: str) -> npt.NDArray[np.int64]:
        """(E, 4) sender, receiver, cut, rounds: how often each receiver cut each sender in a run."""
        with self._reading() as connection:
            run, _ = reading.locate(connection, key)
            rows = connection.execute(
                "SELECT sender, receiver, cut, rounds FROM edges WHERE run = ?", (run,)
            ).fetchall()
        return np.array(rows, np.int64).reshape(-1, 4)

    def frame(self, where: Where | None = None, status: str | None = None, *, current: bool = True) -> pandas.DataFrame:
        """One row per run: key, status, the config's fields, the last value of each metric; see `tables.frame`.

        current  as in `list`; False also shows the runs of older code
        """
        return tables.frame(self.list(where, status, current=current))

    def compare(self, keys: Iterable[str]) -> Comparison:
        """The config fields and parts of the code in which the runs differ, and their final metrics side by side."""
        return tables.compare([self.get(key) for key in keys])

    def export(
        self,
        path: str | os.PathLike[str],
        format: str | None = None,
        *,
        where: Where | None = None,
        status: str | None = None,
        current: bool = True,
    ) -> None:
        """Write runs to a CSV, JSON or Parquet file (by its suffix unless `format` is given); see `tables.export`.

        current  as in `list`; False also writes the runs of older code
        """
        target = Path(path).absolute()
        chosen = tables.choose_format(target, format)
        tables.export(self.list(where, status, current=current), target, chosen, self.series)


def _checked(facts: Mapping[str, Any], provenance: Mapping[str, Any] | None) -> dict[str, Any]:
    """The columns for the facts about a run's end; an unknown one is an error that suggests the nearest."""
    for name in facts:
        if name not in RESULTS:
            raise UnknownOption(f"a run's end has no fact {name!r}: {nearest(name, RESULTS)}")
    origin = gather_provenance() if provenance is None else dict(provenance)
    return {**dict.fromkeys(RESULTS), **facts, "provenance": json.dumps(origin, default=str)}
