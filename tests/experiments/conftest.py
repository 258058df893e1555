"""Grids over the small data set, and the command line as users call it."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from byzmesh.store import open_store

STARTED: list[subprocess.Popen[str]] = []
COMMAND = [sys.executable, "-c", "from byzmesh.cli import main; main()"]


def command(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run `byzmesh` to its end."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=300, **options
    )


def start(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    """Start `byzmesh` in a process group of its own, which can be killed whole."""
    # tests that run in a shell's background inherit an ignored SIGINT; whoever types Ctrl-C does not
    signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )
    STARTED.append(process)
    return process


@pytest.fixture(autouse=True)
def _nothing_left_behind():
    """A test that fails half-way must not leave its sweeps running."""
    yield
    while STARTED:
        process = STARTED.pop()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def results(path: Path) -> dict[str, Any]:
    """Everything that must be the same bit for bit, by key."""
    with open_store(path, readonly=True) as store:
        return {
            run.key: (
                run.status,
                run.rounds,
                {name: values.tobytes() for name, values in store.series(run.key).items()},
                sorted(store.edges(run.key).tolist()),
            )
            for run in store.list()
        }


def statuses(path: Path) -> list[str]:
    # Not readonly: the sweep may be just about to create it.
    with open_store(path) as store:
        return [run.status for run in store.list()]


def alive(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


def children(pid: int) -> list[int]:
    """Processes whose parent is `pid`."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                text = Path(f"/proc/{entry}/stat").read_text()
            except OSError:
                continue
            if int(text.rpartition(")")[2].split()[1]) == pid:
                found.append(int(entry))
    return found


@pytest.fixture
def grid_file(tmp_path, samples):
    """Writes a grid over the small data set and returns its path."""

    def write(name: str = "grid.yaml", rounds: int = 50, **parts: Any) -> Path:
        base = {
            "problem": {"name": "softmax", "data": str(samples), "batch": 8},
            "network": "paper/two-castle",
            "attack": "gaussian",
            "rounds": rounds,
            "evaluate_every": max(rounds // 10, 1),
            **parts.pop("base", {}),
        }
        path = tmp_path / name
        path.write_text(yaml.safe_dump({"base": base, **parts}, sort_keys=False))
        return path

    return write
