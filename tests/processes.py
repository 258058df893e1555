"""The command line in its own processes, as users call it, and what it leaves in a store."""

import contextlib
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import partial
from multiprocessing import forkserver
from pathlib import Path
from typing import IO, Any

import pytest

from byzmesh.cli import main
from byzmesh.config.grid import read_grid
from byzmesh.store import open_store
from byzmesh.sweeps.run import compute

STARTED: list[subprocess.Popen[str]] = []
FORKS = multiprocessing.get_context("forkserver")
COMMAND = [sys.executable, "-c", "from byzmesh.cli import main; main()"]


def command(
    *arguments: object, cwd: str | Path = ".", file_size: int | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `byzmesh` to its end, in a process forked from one that has imported it already.

    file_size  the largest file that it and its workers may write: then all start from nothing, and inherit it
    """
    words = list(map(str, arguments))
    if file_size is not None:
        limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (file_size, file_size))
        return subprocess.run(
            [*COMMAND, *words], cwd=cwd, preexec_fn=limit, capture_output=True, text=True, check=False, timeout=300
        )
    with tempfile.TemporaryDirectory() as folder:
        outputs = [Path(folder, name) for name in ("stdout", "stderr")]
        arguments = (words, Path(cwd).absolute(), dict(os.environ), outputs, fork_server())
        process = FORKS.Process(target=_forked, args=arguments)
        process.start()
        process.join(300)
        if process.exitcode is None:
            process.kill()
            process.join()
            pytest.fail(f"byzmesh {' '.join(words)} did not end in 300 s")
        stdout, stderr = (path.read_text() for path in outputs)
        return subprocess.CompletedProcess(words, process.exitcode, stdout, stderr)


def fork_server() -> dict[str, Any]:
    """Start, once, the process from which commands and the workers of sweeps are forked; how others find it."""
    FORKS.set_forkserver_preload(["tests.warm"])
    with contextlib.chdir(Path(__file__).parents[1]):  # where it finds tests.warm
        forkserver.ensure_running()
    known = vars(forkserver._forkserver)
    return {name: known[name] for name in ("_forkserver_address", "_forkserver_authkey") if name in known}


def _forked(
    words: list[str], folder: Path, environment: dict[str, str], outputs: list[Path], server: dict[str, Any]
) -> None:
    # its workers, if it sweeps, are forked from the same process: another one would import everything again
    vars(forkserver._forkserver).update(server, ensure_running=lambda: None)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for stream, path in zip((1, 2), outputs):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream)
    sys.argv = ["byzmesh", *words]
    main()


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


def output(process: subprocess.Popen[str]) -> IO[str]:
    """What a process prints, line by line."""
    assert process.stdout is not None
    return process.stdout


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


def descendants(pid: int) -> list[int]:
    """The processes that `pid` started, and those that they started."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                parents[int(entry)] = int(Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1])
    found = [child for child, parent in parents.items() if parent == pid]
    for child in found:
        found.extend(other for other, parent in parents.items() if parent == child)
    return found


PATIENCE = 120.0


def wait_for(condition: Callable[[], object], process: subprocess.Popen[str] | None = None) -> None:
    """Polls until the condition holds, the process ends or the time limit is reached."""
    pause = threading.Event()
    for _ in range(int(PATIENCE / 0.02)):
        if condition():
            return
        if process is not None and process.poll() is not None:
            pytest.fail(f"the sweep ended early: {process.communicate()}")
        pause.wait(0.02)
    pytest.fail("waited in vain")


def configs(path: Path) -> list[dict[str, Any]]:
    """The configs of a grid file."""
    return [cell.config for cell in read_grid(path)]


def alone(config: dict[str, Any]) -> tuple[Any, ...]:
    """The result of a run computed alone, in the form of `results`."""
    run = compute(config)
    series = {name: values.tobytes() for name, values in run.metrics.items()}
    return (run.status, run.rounds, series, [] if run.edges is None else sorted(run.edges.counts.tolist()))
