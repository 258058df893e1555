"""What the store hands out: a run, who computes it, and a comparison of runs.

A run is `planned`, then `running` under a lease, and ends as `finished`, `diverged`, `failed` or `interrupted`; an
interrupted one may be claimed again.
"""

from __future__ import annotations

import functools
import json
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

STATUSES = ("planned", "running", "finished", "diverged", "failed", "interrupted")


@dataclass(frozen=True)
class Owner:
    """The process that computes a run.

    `process` tells two processes of the same number apart: boot, process namespace and start time, empty where the
    system does not say (then only the end of the lease shows that an owner died).
    """

    host: str
    pid: int
    process: str = ""


def this_process() -> Owner:
    """The owner that the calling process is.

    >>> import os
    >>> this_process().pid == os.getpid()
    True
    """
    pid = os.getpid()
    born = _born(pid)
    return Owner(socket.gethostname(), pid, f"{_kernel()}/{born}" if born else "")


def is_dead(owner: Owner) -> bool:
    """Whether the owner was a process of this machine that has certainly ended; False where that cannot be known.

    >>> is_dead(this_process()), is_dead(Owner("another-host", 1))
    (False, False)
    """
    kernel, _, born = owner.process.rpartition("/")
    if not born or owner.host != socket.gethostname() or kernel != _kernel():
        return False
    return _born(owner.pid) != born


def _kernel() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _born(pid: int) -> str:
    """Start time of a process in kernel ticks; empty if there is none, or only its unreaped remains."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    # The second field is the program's name in parentheses and may hold anything.
    state, *rest = text.rpartition(")")[2].split()
    return "" if state in "ZX" else rest[18]


@dataclass(frozen=True)
class RunRecord:
    """One run as stored. Times are seconds since 1970 (UTC); `seconds` is what the run took as its runner counted it.

    `config`, `provenance` and `final` (the last value of each metric) are parsed on first use: a listing of many
    thousand runs stays fast.
    """

    key: str
    status: str
    rounds: int | None
    seconds: float | None
    started: float | None
    ended: float | None
    owner: Owner | None
    heartbeat: float | None
    lease_until: float | None
    failure: str | None
    final_json: str = field(repr=False)
    provenance_json: str = field(repr=False)
    config_json: str = field(repr=False)

    @property
    def leased(self) -> bool:
        """Whether somebody is computing the run: its lease has not run out and its owner is not known to be dead."""
        if self.status != "running" or self.owner is None or self.lease_until is None:
            return False
        return self.lease_until > time.time() and not is_dead(self.owner)

    @functools.cached_property
    def config(self) -> dict[str, Any]:
        """The resolved config."""
        config: dict[str, Any] = json.loads(self.config_json)
        return config

    @functools.cached_property
    def provenance(self) -> dict[str, Any]:
        """Versions, revision and machine; empty until the run ended."""
        provenance: dict[str, Any] = json.loads(self.provenance_json)
        return provenance

    @functools.cached_property
    def final(self) -> dict[str, float]:
        """Last value of each metric."""
        return {name: float(value) for name, value in json.loads(self.final_json).items()}


COLUMNS = (
    "key, status, rounds, seconds, started, ended, owner_host, owner_pid, owner_process, heartbeat, lease_until, "
    "failure, final, provenance, config"
)


def record(row: tuple[Any, ...]) -> RunRecord:
    """A row of `COLUMNS` as a record."""
    key, status, rounds, seconds, started, ended, host, pid, process, *rest = row
    owner = None if host is None else Owner(host, pid, process)
    return RunRecord(key, status, rounds, seconds, started, ended, owner, *rest)


@dataclass(frozen=True)
class Comparison:
    """Runs side by side: one value per run, in the order of `keys`; None where a run has no such field or metric."""

    keys: tuple[str, ...]
    differing: Mapping[str, tuple[Any, ...]]
    """Config fields that are not the same in all of the runs."""
    final: Mapping[str, tuple[float | None, ...]]
    """Last value of each metric."""
