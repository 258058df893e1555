"""One run from a canonical config, with its checkpoint and results in a folder."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from byzmesh.errors import ConfigError
from byzmesh.simulation.engine import RUNNING, Run, Simulation
from byzmesh.sweeps.build import build

Tell = Callable[[Mapping[str, float]], None]
Watch = Callable[[Simulation], AbstractContextManager[Tell]]


def run_single(config: Mapping[str, Any], out: Path | None, *, resume: bool, every: float, watch: Watch) -> Run:
    """Run to the end; with a folder, keep a checkpoint there and write `config.json`, `metrics.json`, `models.npy`."""
    if resume and out is None:
        raise ConfigError("--resume needs --out, the folder that holds the checkpoint")
    simulation = build(config)
    checkpoint = None if out is None else out / "checkpoint.byz"
    if checkpoint is not None:
        _prepare(checkpoint, resume)
        if resume and checkpoint.exists():
            simulation.restore(checkpoint)
    with watch(simulation) as tell:
        try:
            saved = time.monotonic()
            for record in simulation:
                tell(record)
                if checkpoint is not None and time.monotonic() - saved >= every:
                    simulation.save(checkpoint)
                    saved = time.monotonic()
        except KeyboardInterrupt:
            if checkpoint is None:
                raise
    if checkpoint is not None:
        simulation.save(checkpoint)
    run = simulation.result()
    if out is not None and run.status != RUNNING:
        _write(run, out)
    return run


def _prepare(checkpoint: Path, resume: bool) -> None:
    try:
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"--out {checkpoint.parent} cannot be made ({error.strerror}); choose another folder"
        ) from error
    if checkpoint.exists() and not resume:
        raise ConfigError(f"{checkpoint.parent} holds a run already; add --resume to go on, or choose another --out")


def _write(run: Run, out: Path) -> None:
    summary = {
        "status": run.status,
        "rounds": run.rounds,
        "seconds": run.seconds,
        "metrics": {name: values.tolist() for name, values in run.metrics.items()},
    }
    (out / "config.json").write_text(json.dumps(run.config, indent=2) + "\n")
    (out / "metrics.json").write_text(json.dumps(summary, indent=2) + "\n")
    np.save(out / "models.npy", run.models)
