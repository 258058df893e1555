"""kill -9 at random points, three times over: every run finished once, bit for bit as if nothing had happened."""

import contextlib
import os
import random
import signal
import subprocess
from pathlib import Path

from byzmesh.store import open_store
from tests.conftest import GridFile
from tests.processes import command, results, start, wait_for

KILLS = 3


def test_a_sweep_killed_three_times_ends_like_an_undisturbed_one(grid_file: GridFile, tmp_path: Path) -> None:
    axes = {"rule": ["ios", "cc"], "attack": ["gaussian", "alie"], "seed": [0, 1]}
    grid = grid_file(rounds=3000, axes=axes)
    calm, store = tmp_path / "calm.db", tmp_path / "runs.db"
    undisturbed = command("sweep", grid, "--store", calm, "--workers", 2)
    assert undisturbed.returncode == 0, undisturbed.stderr
    draw = random.Random(0)
    resumed = 0
    for kill in range(KILLS):
        process = start("sweep", grid, "--store", store, "--workers", 2, "--checkpoint-seconds", 0.05)
        with open_store(store) as opened:
            # Two more runs done each time, so that all kills find something running; then a random moment.
            wait_for(lambda: len(opened.list(status="finished")) >= 2 * kill, process)
            wait_for(lambda: any(run.leased for run in opened.list(status="running")), process)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=draw.uniform(0.0, 0.6))
            # All processes at once as when the machine goes down, or the first one only.
            os.killpg(process.pid, signal.SIGKILL) if kill % 2 else process.kill()
            process.communicate()
            assert process.returncode == -signal.SIGKILL
            folder = tmp_path / "runs.db.checkpoints"
            resumed += len(os.listdir(folder)) if folder.exists() else 0
    assert resumed > 0
    again = command("sweep", grid, "--store", store, "--workers", 2)
    assert again.returncode == 0, again.stderr
    assert len(results(store)) == 8
    assert results(store) == results(calm)
    assert {status for status, *_ in results(store).values()} == {"finished"}
    assert not (tmp_path / "runs.db.checkpoints").exists()
