"""Checkpoints of a simulation: everything that the next round depends on, in one file (see training/checkpoint.py)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from byzmesh.checks import is_number
from byzmesh.errors import DataError
from byzmesh.naming import without_names
from byzmesh.renamed import as_of_today
from byzmesh.rules.interop import from_host, to_host
from byzmesh.simulation.edges import EdgeCounts
from byzmesh.training.checkpoint import load_checkpoint, save_checkpoint
from byzmesh.training.local_round import LocalRound

_STATES = ("rule", "attack")


class Resumable(Protocol):
    """What a checkpoint needs of a simulation: see `engine.Simulation`."""

    config: Mapping[str, Any]
    rounds: int
    task: Any
    exchange: Any
    models: Any
    round: int
    seconds: float
    status: str
    counts: EdgeCounts | None
    series: dict[str, list[float]]
    per_worker: dict[str, list[Any]]
    local_round: LocalRound

    def start(self) -> None:
        """Back to round 0."""
        ...


def save(run: Resumable, path: str | Path) -> None:
    """Write a checkpoint: one file, replaced in one step."""
    arrays = {"models": to_host(run.models)}
    arrays |= {f"series/{name}": np.array(values) for name, values in run.series.items()}
    arrays |= {f"workers/{name}": np.array(values) for name, values in run.per_worker.items()}
    if run.counts is not None:
        arrays |= {f"counts/{name}": values for name, values in run.counts.arrays().items()}
    arrays |= run.local_round.states()
    states = {name: getattr(run, f"{name}_state") for name in _STATES}
    arrays |= {f"state/{name}": np.asarray(to_host(state)) for name, state in states.items() if _plain(state)}
    save_checkpoint(
        path,
        arrays,
        {
            "config": dict(run.config),
            "round": run.round,
            "seconds": run.seconds,
            "status": run.status,
            "ways": list(_ways(run).items()),
        },
    )


def restore(run: Resumable, path: str | Path, *, fewer_rounds: bool = False) -> None:
    """Go back to a checkpoint of the same config, or of one that differs only by fewer rounds."""
    arrays, metadata = load_checkpoint(path)
    rounds = {"rounds": run.rounds} if fewer_rounds and metadata["round"] < run.rounds else {}
    same = without_names({**as_of_today(metadata["config"]), **rounds}) == without_names(run.config)
    if not same or arrays["models"].shape != tuple(run.models.shape):
        raise DataError(f"checkpoint {path} belongs to another config; remove it, or give one of this config")
    run.start()
    run.models = from_host(arrays["models"], run.models)
    run.round, run.seconds, run.status = metadata["round"], metadata["seconds"], metadata["status"]
    _ways(run).update(dict(metadata.get("ways", [])))
    run.series = {name: list(values) for name, values in _under("series/", arrays).items()}
    run.per_worker = {name: list(values) for name, values in _under("workers/", arrays).items()}
    counted = _under("counts/", arrays)
    if counted:
        run.counts = EdgeCounts(run.exchange, **counted)
    run.local_round.resume(arrays)
    for name, state in ((name, arrays[f"state/{name}"]) for name in _STATES if f"state/{name}" in arrays):
        former = getattr(run, f"{name}_state")
        on_device = state.ndim and hasattr(former, "new_empty")
        value = from_host(state, former) if on_device else state if state.ndim else state.item()
        setattr(run, f"{name}_state", value)


def _under(prefix: str, arrays: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix(prefix): values for name, values in arrays.items() if name.startswith(prefix)}


def _ways(run: Resumable) -> dict[int, str]:
    """How a neural task computes its gradients; a checkpoint keeps the choice if it was measured."""
    ways: dict[int, str] = getattr(run.task, "chosen", {})
    return ways


def _plain(state: Any) -> bool:
    """Whether a state changes from round to round: an array or number. Prepared records are rebuilt by `init`."""
    return is_number(state) or isinstance(state, np.ndarray) or hasattr(state, "new_empty")
