"""The simulator on the same network, for comparison."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from byzmesh.attacks import attack
from byzmesh.peers.network_file import NetworkFile
from byzmesh.simulation.engine import Simulation
from byzmesh.training.checkpoint import load_checkpoint


def simulation_of(file: NetworkFile, byzantine: Iterable[int] = (), lie: Mapping[str, Any] | None = None) -> Simulation:
    """The same training, simulated."""
    liars = list(byzantine)
    options = dict(lie or {"name": "silent" if liars else "none"})
    chosen = attack(options.pop("name"), **options)
    network = file.network.with_byzantine(liars) if liars else file.network
    task = file.made_problem.bind(
        workers=file.shares or len(file.peers),
        seed=file.seed,
        dtype=file.dtype,
        liars=len(liars) if chosen.poisons_data else 0,
        poison=chosen.poison,
    )
    return Simulation(
        task=task,
        network=network,
        rule=file.made_rule,
        attack=chosen,
        rounds=file.rounds,
        schedule=file.schedule,
        local=file.made_local,
        f=[file.bound(peer) for peer in range(len(file.peers))],
        evaluate_every=file.evaluate_every,
        seed=file.seed,
    )


def final_models(out: Path, peers: Iterable[int]) -> np.ndarray[Any, Any]:
    """(N, D) models in the peers' checkpoints."""
    return np.stack([load_checkpoint(out / f"peer{peer}.ckpt")[0]["model"][0] for peer in peers])
