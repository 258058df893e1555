"""Forensics of a stored run: who cut whom, and who is suspected."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from byzmesh.errors import ConfigError
from byzmesh.store import Store
from byzmesh.sweeps.build import network_as_run
from byzmesh.theory.forensics import Findings, find_suspects


def honest_cut(store: Store, key: str) -> float | None:
    """Fraction of the honest neighbours' messages that a stored run cut; None for a rule that does not cut."""
    edges = store.edges(key)
    honest = edges[~np.isin(edges[:, 0], network_as_run(store.get(key).config).byzantine)]
    came = int(honest[:, 3].sum())
    return float(honest[:, 2].sum() / came) if came else None


def suspects(store: Store, key: str, picture: Path | None = None) -> Findings:
    """Suspects from a stored run's cut counts, graded by the truth of its config; drawn on the graph if asked."""
    run = store.get(key)
    edges = store.edges(run.key)
    if len(edges) == 0:
        what = f"run {run.key[:12]} ({run.config['rule']['name']}, {run.status})"
        raise ConfigError(f"{what} has no cut counts; choose a run of a rule that cuts")
    network = network_as_run(run.config)
    came = edges[edges[:, 3] > 0]
    findings = find_suspects(came[:, 0], came[:, 1], came[:, 2], came[:, 3], network.byzantine.tolist())
    if picture is not None:
        cut = np.zeros((network.n, network.n))
        cut[came[:, 1], came[:, 0]] = came[:, 2] / came[:, 3]
        network.draw(picture, cut)
    return findings
