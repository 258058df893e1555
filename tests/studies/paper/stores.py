"""A store with made-up results, so that rendering can be tested without a single round of training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from byzmesh.config.cell import Cell
from byzmesh.networks import network
from byzmesh.store import open_store
from byzmesh.studies.paper.cells import cells
from byzmesh.studies.paper.published import beside

OFFSETS = (0.0, 0.12, -0.31, 0.7, -0.9, 2.5, -7.0)
"""Ours minus published, in turn over the cells: every colour of a report occurs."""

DIVERGED, FAILED, WAITING = ("DRSA", "alie"), ("Krum", "isolation"), ("GeoMed", "gaussian")
PROVENANCE = {"version": "1.2.3", "revision": "abc", "python": "3.11", "platform": "Linux", "processor": "x86_64",
              "packages": {"numpy": "2.0"}, "host": "secret-machine"}  # fmt: skip


def made_up(path: Path, target: str = "table-3", rules: Sequence[str] = (), seeds: int = 1) -> list[Cell]:
    """Fill a store with results beside the published ones of a table; its cells."""
    chosen = [cell for cell in cells(target, seeds=seeds) if not rules or cell.labels["rule"] in rules]
    with open_store(path) as store:
        for number, cell in enumerate(chosen):
            rule, attack = cell.labels["rule"], cell.labels["attack"]
            key = store.plan(cell.config)
            if (rule, attack) == WAITING:
                continue
            if (rule, attack) == FAILED:
                text = "f = 9 is infeasible for rule Krum at worker 3 with 10 neighbours"
                store.fail(key, "infeasible", text, provenance=PROVENANCE)
                continue
            status = "diverged" if (rule, attack) == DIVERGED else "finished"
            theirs = beside(**cell.labels)
            assert theirs is not None
            final = min(max(theirs.accuracy + OFFSETS[number % len(OFFSETS)], 0.0), 100.0) / 100.0
            error = theirs.consensus_error.value * {"<": 0.3, ">": 4.0, "": 1.4}[theirs.consensus_error.side]
            rounds = np.arange(0, 20_500, 500.0)
            rise = 1.0 - 0.5 * 0.8 ** np.arange(len(rounds) - 10)
            series = {
                "round": rounds,
                "accuracy": np.concatenate([final * rise, np.full(10, final)]),
                "loss": 2.0 - final + 0 * rounds,
                "consensus_error": error * (1.0 + np.exp(-rounds / 1_000))[::-1][::-1],
                "disagreement": 30.0 * error + 0 * rounds,
            }
            edges = _edges(cell) if rule in ("IOS", "FABA", "Krum") and attack != "none" else None
            store.finish(key, status, series, edges=edges, rounds=20_000, seconds=12.5 + number, provenance=PROVENANCE)
    return chosen


def _edges(cell: Cell) -> np.ndarray:
    """Liars are cut nine times in ten, honest ones never."""
    net = network(cell.config["network"]["name"])
    return np.array(
        [
            (sender, receiver, 900 if sender in net.byzantine else 0, 1000)
            for receiver in net.honest.tolist()
            for sender in net.neighbours(receiver).tolist()
        ]
    )
