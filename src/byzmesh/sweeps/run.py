"""One run: from its config to its end, with a checkpoint every few seconds, and into the store.

The one loop of `byzmesh run`, of sweeps on this machine, and of sweeps on a cluster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from byzmesh.compiled import limit_threads
from byzmesh.simulation.engine import Simulation
from byzmesh.simulation.parts import RUNNING
from byzmesh.simulation.run import Run
from byzmesh.store import Store
from byzmesh.store.records import RESULTS
from byzmesh.sweeps.build import build
from byzmesh.sweeps.checkpoints import Checkpoint
from byzmesh.sweeps.models import Keeper

INTERRUPTED = "interrupted"

GoOn = Callable[[Simulation], bool]
"""Called after every round, or after a few that are one compiled call; False stops the run."""


def compute(
    config: Mapping[str, Any],
    go_on: GoOn = lambda simulation: True,
    checkpoint: Checkpoint | None = None,
    keeper: Keeper | None = None,
) -> Run:
    """Compute a run to its end, or until `go_on` returns False: it is then `interrupted`.

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
    run = simulation.result()
    return replace(run, status=INTERRUPTED) if run.status == RUNNING else run


def store_run(store: Store, key: str, run: Run, owner: Any, provenance: Mapping[str, Any] | None = None) -> bool:
    """Put a computed run into the store if it still belongs to this owner.

    provenance  of the machine that computed it; None: this one
    """
    counts = None if run.edges is None else run.edges.counts
    facts = {name: value_of(run) for name, value_of in RESULTS.items()}
    return store.finish(key, run.status, run.metrics, edges=counts, owner=owner, provenance=provenance, **facts)
