"""The Flower app of examples/ with Flower's own processes on loopback, one of whose clients lies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.processes import STARTED, wait_for

ROOT = Path(__file__).parents[2]


def test_a_flower_app_learns_although_a_client_lies(tmp_path: Path) -> None:
    """The truth is 3.74 from the start; the mean of three, one of which answers tenfold the other way, is farther."""
    result = tmp_path / "result"
    settings = ["clients=3", "rounds=2", f'result="{result}"']
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.integrations.flower_processes", "examples/flower", tmp_path, "3", *settings],
        cwd=ROOT,
        env={**os.environ, "FLWR_HOME": str(tmp_path / "home")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    STARTED.append(process)
    try:
        wait_for(lambda: result.exists() and result.read_text().endswith("\n"), process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert float(result.read_text().split()[-1]) < 1.0, (tmp_path / "log").read_text()
