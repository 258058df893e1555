"""One run: from its config to what the store keeps, with a checkpoint every few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from byzmesh.compiled import limit_threads
from byzmesh.simulation.engine import RUNNING, Simulation
from byzmesh.store import Store
from byzmesh.store.provenance import provenance
from byzmesh.sweeps.build import build
from byzmesh.sweeps.checkpoints import Checkpoint

INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Result:
    """How a run ended; the fields are the arguments of `Store.finish`, `edges` (E, 4) among them."""

    status: str
    metrics: dict[str, npt.NDArray[np.float64]]
    edges: npt.NDArray[np.int64] | None
    rounds: int
    seconds: float
    provenance: dict[str, Any]


def compute(
    config: Mapping[str, Any], go_on: Callable[[int], bool] = lambda round: True, checkpoint: Checkpoint | None = None
) -> Result:
    """Compute a run to its end, or until `go_on(round)`, asked after every round, is False.

    >>> from byzmesh.config.schema import resolve
    >>> config = resolve({"problem": "quadratic", "network": {"name": "ring", "n": 5}, "rule": "mean", "rounds": 5})
    >>> compute(config).status, compute(config, lambda round: round < 3).status
    ('finished', 'interrupted')
    """
    simulation = build(config)
    if checkpoint is not None:
        checkpoint.restore(simulation)
    saved = time.monotonic()
    with limit_threads(simulation.threads):
        while simulation.status == RUNNING:
            simulation.advance()
            if not go_on(simulation.round):
                if checkpoint is not None:
                    checkpoint.save(simulation)
                break
            if checkpoint is not None and time.monotonic() - saved >= checkpoint.seconds:
                checkpoint.save(simulation)
                saved = time.monotonic()
    return _result(simulation)


def _result(simulation: Simulation) -> Result:
    run = simulation.result()
    edges = run.edges
    counts = None if edges is None else np.stack([edges.sender, edges.receiver, edges.cut, edges.rounds], axis=1)
    status = INTERRUPTED if run.status == RUNNING else run.status
    return Result(status, run.metrics, counts, run.rounds, run.seconds, provenance())


def store_result(store: Store, key: str, result: Result, owner: Any) -> bool:
    """Put a result into the store if the run is still this owner's."""
    return store.finish(
        key,
        result.status,
        result.metrics,
        edges=result.edges,
        rounds=result.rounds,
        seconds=result.seconds,
        owner=owner,
        provenance=result.provenance,
    )
