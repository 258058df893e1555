"""Which process computes a run, and whether it is still alive."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Owner:
    """The process that computes a run.

    `process` distinguishes processes with the same pid: boot, process namespace and start time. It is empty where the
    system does not provide them; then only the end of the lease shows that an owner died.
    """

    host: str
    pid: int
    process: str = ""


def this_process() -> Owner:
    """The calling process as an owner.

    >>> import os
    >>> this_process().pid == os.getpid()
    True
    """
    pid = os.getpid()
    born = _born(pid)
    return Owner(socket.gethostname(), pid, f"{_kernel()}/{born}" if born else "")


def is_dead(owner: Owner) -> bool:
    """Whether the owner was a process of this machine that has certainly ended; False if that cannot be known.

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
    """Start time of a process in kernel ticks; empty if it does not exist or is a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    # The second field is the program's name in parentheses and may contain anything.
    state, *rest = text.rpartition(")")[2].split()
    return "" if state in "ZX" else rest[18]
