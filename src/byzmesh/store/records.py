"""Records that the store returns: a run, and a comparison of runs.

A run is `planned`, then `running` under a lease, and ends as `finished`, `diverged`, `failed` or `interrupted`; an
interrupted run may be claimed again.

`RunRecord` also declares the columns of the table `runs`, each once: schema, migration of older stores, reading, tables
and exports all follow from its fields.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from byzmesh.naming import merged
from byzmesh.renamed import as_of_today
from byzmesh.store.owners import Owner, is_dead

STATUSES = ("planned", "running", "finished", "diverged", "failed", "interrupted")
ENDED = ("finished", "diverged")
"""Results."""
FAILURE_KINDS = ("infeasible", "config", "data", "missing", "memory", "killed", "changed", "bug")
"""Why a run failed: f is too large for the rule; a value of the config; a data set; an extra that is not installed;
out of memory; its process died; code or data changed since it was planned; anything else."""

_OLDER_KIND = """CASE WHEN failure IS NULL THEN NULL
    WHEN failure LIKE '%is infeasible for rule%' THEN 'infeasible'
    WHEN failure LIKE 'the process%died%' OR failure LIKE 'the workers%died%' THEN 'killed'
    WHEN failure LIKE 'Traceback%' THEN 'bug' ELSE 'config' END"""


def column(
    sql: str, *, name: str = "", shown: bool = False, result: Callable[[Any], Any] | None = None, older: str = ""
) -> Any:
    """A field of `RunRecord` that is a column of the table `runs`.

    sql     type and default in the table
    name    in the table, if it differs from the field's
    shown   whether tables and exports show it
    result  its value for a computed `Run`; `Store.finish` and `Store.fail` take it as an argument of this name
    older   SQL expression for runs of a store that lacks the column, if the default is wrong for them
    """
    described = {"sql": sql, "name": name, "shown": shown, "result": result, "older": older}
    return field(repr=not name, metadata=described)


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """One run as stored. Times are seconds since 1970 (UTC); `seconds` is the run's duration as its process counted it.

    `config`, `code`, `provenance` and `final` are parsed on first use, so that listing many thousands of runs is fast.
    """

    key: str = column("TEXT NOT NULL UNIQUE", shown=True)
    status: str = column("TEXT NOT NULL", shown=True)
    rounds: int | None = column("INTEGER", shown=True, result=lambda run: run.rounds)
    seconds: float | None = column("REAL", shown=True, result=lambda run: run.seconds)
    started: float | None = column("REAL", shown=True)
    ended: float | None = column("REAL", shown=True)
    owner_host: str | None = column("TEXT")
    owner_pid: int | None = column("INTEGER")
    owner_process: str | None = column("TEXT")
    heartbeat: float | None = column("REAL")
    lease_until: float | None = column("REAL")
    failure: str | None = column("TEXT", shown=True)
    """Why the run failed; for a run with a result, why its recomputation failed."""
    failure_kind: str | None = column("TEXT", shown=True, older=_OLDER_KIND)
    """One of `FAILURE_KINDS`."""
    asked: float | None = column("REAL")
    """When the run was last planned."""
    again: int = column("INTEGER NOT NULL DEFAULT 0")
    """1 if the run ended but is to be computed again."""
    final_json: str = column("TEXT NOT NULL DEFAULT '{}'", name="final")
    provenance_json: str = column("TEXT NOT NULL DEFAULT '{}'", name="provenance")
    code_json: str = column("TEXT NOT NULL DEFAULT '{}'", name="code")
    names_json: str = column("TEXT NOT NULL DEFAULT '{}'", name="names")
    """The parts of the config that are not in the key; see `byzmesh.naming`."""
    config_json: str = column("TEXT NOT NULL", name="config")

    @property
    def owner(self) -> Owner | None:
        """The process that computes the run."""
        if self.owner_host is None or self.owner_pid is None:
            return None
        return Owner(self.owner_host, self.owner_pid, self.owner_process or "")

    @property
    def leased(self) -> bool:
        """Whether somebody is computing the run: its lease has not run out and its owner is not known to be dead."""
        if self.owner is None or self.lease_until is None:
            return False
        return self.lease_until > time.time() and not is_dead(self.owner)

    @property
    def settled(self) -> bool:
        """Whether there is nothing to compute: it has a result or failed, and is not to be computed again."""
        return self.status in (*ENDED, "failed") and not self.again

    @functools.cached_property
    def config(self) -> dict[str, Any]:
        """The resolved config with today's names of options, and the labels given when it was last planned."""
        return as_of_today(merged(json.loads(self.config_json), json.loads(self.names_json)))

    @functools.cached_property
    def code(self) -> dict[str, str]:
        """The code and data of the run that are not built in: part -> identity."""
        code: dict[str, str] = json.loads(self.code_json)
        return code

    @functools.cached_property
    def provenance(self) -> dict[str, Any]:
        """Versions, revision and machine; empty until the run ended."""
        provenance: dict[str, Any] = json.loads(self.provenance_json)
        return provenance

    @functools.cached_property
    def final(self) -> dict[str, float]:
        """Last value of each metric."""
        return {name: float(value) for name, value in json.loads(self.final_json).items()}


FIELDS = tuple(item.name for item in fields(RunRecord))
COLUMNS = {item.metadata["name"] or item.name: item.metadata for item in fields(RunRecord)}
"""Name in the table -> the arguments of `column`, in the order of `FIELDS`."""
SHOWN = tuple(name for name, declared in COLUMNS.items() if declared["shown"])
RESULTS: dict[str, Callable[[Any], Any]] = {
    name: declared["result"] for name, declared in COLUMNS.items() if declared["result"]
}
"""Column -> its value for a computed `Run`."""


def record(row: tuple[Any, ...]) -> RunRecord:
    """A row of `COLUMNS` as a record."""
    return RunRecord(**dict(zip(FIELDS, row, strict=True)))


def newest(runs: list[RunRecord]) -> list[RunRecord]:
    """Of runs that differ only in the code that computes them, the one planned last; in the same order."""
    former = superseded(runs)
    return [run for run in runs if run.key not in former]


def superseded(runs: Iterable[RunRecord]) -> dict[str, RunRecord]:
    """Key -> the run that was asked for later, with the same config and other code."""
    runs = list(runs)
    last: dict[str, RunRecord] = {}
    for run in runs:
        other = last.get(run.config_json)
        if other is None or (run.asked or 0.0) >= (other.asked or 0.0):
            last[run.config_json] = run
    return {run.key: last[run.config_json] for run in runs if last[run.config_json] is not run}


@dataclass(frozen=True)
class Comparison:
    """Runs side by side: one value per run, in the order of `keys`; None where a run has no such field or metric."""

    keys: tuple[str, ...]
    differing: Mapping[str, tuple[Any, ...]]
    """Config fields and parts of the code that differ between the runs."""
    final: Mapping[str, tuple[float | None, ...]]
    """Last value of each metric."""
