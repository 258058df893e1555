"""Forensics of stored runs: who cut whom, who is named a liar, and how often that is right."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
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
    """Findings from a stored run's cut counts, graded by the truth of its config; drawn on the graph if asked."""
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


@dataclass(frozen=True, kw_only=True)
class Grades:
    """How often the named workers lie, over runs whose rule cut somebody.

    runs       how many there are
    naming     how many of them name somebody; the others cannot tell, or nobody stands out
    framing    how many of these name an honest worker
    named      workers that are named, over all runs
    right      how many of these lie
    liars      liars in all of the runs
    """

    runs: int
    naming: int
    framing: int
    named: int
    right: int
    liars: int

    @property
    def precision(self) -> float | None:
        """Fraction of liars among the named."""
        return self.right / self.named if self.named else None

    @property
    def recall(self) -> float | None:
        """Fraction of the liars that are named."""
        return self.right / self.liars if self.liars else None

    @property
    def framing_at_most(self) -> float | None:
        """Upper end of the 95% interval (Wilson's) for the fraction of naming runs that name an honest worker."""
        if not self.naming:
            return None
        share, z2, count = self.framing / self.naming, 1.96**2, self.naming
        half = math.sqrt(z2 * (share * (1.0 - share) / count + z2 / (4.0 * count**2)))
        return (share + z2 / (2.0 * count) + half) / (1.0 + z2 / count)


def grade(store: Store, keys: Iterable[str]) -> Grades:
    """The named workers of stored runs compared with the truth; runs that cut nobody do not count."""
    runs = naming = framing = named = right = liars = 0
    for key in keys:
        if not store.edges(key)[:, 2:3].any():
            continue
        findings = suspects(store, key)
        lying = {one.sender for one in findings.network if one.lies}
        runs, liars = runs + 1, liars + len(lying)
        naming += findings.verdict == "named"
        framing += not set(findings.named) <= lying
        named += len(findings.named)
        right += len(lying & set(findings.named))
    return Grades(runs=runs, naming=naming, framing=framing, named=named, right=right, liars=liars)
