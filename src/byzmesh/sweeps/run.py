"""One run: from its config to what the store keeps, with a checkpoint every few seconds.

The one loop of `byzmesh run`, of sweeps on this machine, and of sweeps on a cluster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from byzmesh.compiled import limit_threads
from byzmesh.simulation.engine import RUNNING, Simulation
from byzmesh.store import Store
from byzmesh.store.provenance import provenance
from byzmesh.sweeps.build import build
from byzmesh.sweeps.checkpoints import Checkpoint
from byzmesh.sweeps.models import Keeper

INTERRUPTED = "interrupted"

GoOn = Callable[[Simulation], bool]
"""Asked after every round."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """How a run ended: the arguments of `Store.finish`, `edges` (E, 4) among them, and from a cluster its models.

    files  what follows the key in the name of a file -> its content
    """

    status: str
    metrics: dict[str, npt.NDArray[np.float64]]
    edges: npt.NDArray[np.int64] | None
    rounds: int
    seconds: float
    provenance: dict[str, Any]
    files: dict[str, bytes] = field(default_factory=dict)


def compute(
    config: Mapping[str, Any],
    go_on: GoOn = lambda simulation: True,
    checkpoint: Checkpoint | None = None,
    keeper: Keeper | None = None,
) -> Result:
    """Compute a run to its end, or until `go_on` is False.

    >>> from byzmesh.config.schema import resolve
    >>> config = resolve({"problem": "quadratic", "network": {"name": "ring", "n": 5}, "rule": "mean", "rounds": 5})
    >>> compute(config).status, compute(config, lambda simulation: simulation.round < 3).status
    ('finished', 'interrupted')
    """
    simulation = build(config)
    if checkpoint is not None:
        checkpoint.restore(simulation)
    saved = time.monotonic()
    with limit_threads(simulation.threads):
        while simulation.status == RUNNING:
            evaluated = simulation.advance()
            if evaluated and keeper is not None:
                keeper.evaluated(simulation)
            if not go_on(simulation):
                if checkpoint is not None:
                    checkpoint.save(simulation)
                break
            if checkpoint is not None and time.monotonic() - saved >= checkpoint.seconds:
                checkpoint.save(simulation)
                saved = time.monotonic()
    if simulation.status != RUNNING and keeper is not None:
        keeper.ended(simulation)
    return _result(simulation)


def _result(simulation: Simulation) -> Result:
    run = simulation.result()
    edges = run.edges
    counts = None if edges is None else np.stack([edges.sender, edges.receiver, edges.cut, edges.rounds], axis=1)
    status = INTERRUPTED if run.status == RUNNING else run.status
    return Result(
        status=status,
        metrics=run.metrics,
        edges=counts,
        rounds=run.rounds,
        seconds=run.seconds,
        provenance=provenance(),
    )


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
