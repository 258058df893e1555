"""Checkpoints of a simulation: everything that the next round depends on, in one file (see training/checkpoint.py)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from byzmesh.attacks.state import memories, memories_below, with_memories
from byzmesh.errors import DataError
from byzmesh.naming import without_names
from byzmesh.renamed import as_of_today
from byzmesh.rules.interop import from_host, to_host
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
    counts: Any
    series: dict[str, list[float]]
    per_worker: dict[str, list[Any]]
    local_round: LocalRound
    live: Any
    courier: Any
    sent_bytes: Any

    def start_counts(self, **counted: Any) -> Any:
        """Sums over the edges, from those of a checkpoint."""
        ...

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
    if run.live is not None:
        arrays |= run.live.past.arrays(run.round)
    if run.courier is not None:
        arrays |= run.courier.arrays()
    if run.sent_bytes.any():
        arrays["sent_bytes"] = run.sent_bytes
    for name in _STATES:
        remembered = memories(getattr(run, f"{name}_state"), f"state/{name}")
        arrays |= {path: np.asarray(to_host(part)) for path, part in remembered}
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
        run.counts = run.start_counts(**counted)
    run.local_round.resume(arrays)
    if run.live is not None:
        run.live.past.resume(arrays, run.round, run.models)
    if run.courier is not None:
        run.courier.resume(arrays)
    run.sent_bytes = arrays.get("sent_bytes", run.sent_bytes)
    for name in _STATES:
        former = getattr(run, f"{name}_state")
        kept = {path: _like(values, former) for path, values in arrays.items() if path.startswith("state/")}
        planned = name != "attack" or run.live is None  # on a changing network each round makes a plan
        state = with_memories(former, kept, f"state/{name}") if planned else memories_below(kept, f"state/{name}")
        setattr(run, f"{name}_state", state)


def _like(values: Any, former: Any) -> Any:
    """What a checkpoint kept, on the device of what it replaces, a number if it was one."""
    if values.ndim and hasattr(former, "new_empty"):
        return from_host(values, former)
    return values if values.ndim else values.item()


def _under(prefix: str, arrays: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix(prefix): values for name, values in arrays.items() if name.startswith(prefix)}


def _ways(run: Resumable) -> dict[int, str]:
    """How a neural task computes its gradients; a checkpoint keeps the choice if it was measured."""
    ways: dict[int, str] = getattr(run.task, "chosen", {})
    return ways
