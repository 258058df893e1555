"""Clipping rules: move towards every neighbour, but by no more than a radius tau each.

    v <- v + sum_m a_m clip(y_m - v, tau),   clip(z, tau) = min(1, tau / ||z||) z

Centred clipping (CC) weighs all S vectors equally and starts at a centre v; self-centred clipping (SCC) starts at the
own model and uses the mixing weights. The radius depends on the task: the paper uses 0.1 (iid) and 0.3 (non-iid).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.compiled import exact
from byzmesh.errors import ConfigError
from byzmesh.registry import ByPartition
from byzmesh.rules.base import Block, Floats, Inbox, Rule, State, no_state, normalised, rules
from byzmesh.rules.gram import gram_rule


@exact
def clip_towards(inner: Floats, start: Floats, weight: Floats, tau: float, iterations: int) -> Floats:
    """(R, K) coefficients of v after `iterations` passes from v = sum_k start[k] y_k."""
    share = start.copy()
    receivers, slots = share.shape
    pull = np.empty(slots)
    for receiver in range(receivers):
        gram = inner[receiver]
        for _ in range(iterations):
            spread = 0.0
            for i in range(slots):
                for j in range(slots):
                    spread += share[receiver, i] * share[receiver, j] * gram[i, j]
            total = 0.0
            for slot in range(slots):
                pull[slot] = 0.0
                if weight[receiver, slot] > 0.0:
                    lean = 0.0
                    for other in range(slots):
                        lean += share[receiver, other] * gram[slot, other]
                    distance = np.sqrt(max(gram[slot, slot] - 2.0 * lean + spread, 0.0))
                    pull[slot] = weight[receiver, slot] * (tau / distance if distance > tau else 1.0)
                    total += pull[slot]
            for slot in range(slots):
                share[receiver, slot] = (1.0 - total) * share[receiver, slot] + pull[slot]
    return share


def check_radius(rule: str, tau: float) -> None:
    """A clipping radius must be a positive number."""
    if not (np.isfinite(tau) and tau > 0.0):
        raise ConfigError(f"{rule}'s tau must be a positive number, got {tau}")


@rules.register(
    "CC",
    aliases=("centered-clipping", "centred-clipping"),
    published={"centre": "memory", "tau": ByPartition(0.1, 0.3)},
)
def cc(tau: float = 0.3, centre: str = "own", iterations: int = 1) -> Rule:
    """Centred clipping: v + (1/S) sum_m clip(y_m - v, tau), repeated `iterations` times.

    centre="own": v starts at the own model; "memory": at the receiver's previous output, 0 at first (as published).
    """
    check_radius("CC", tau)
    if centre not in ("own", "memory"):
        raise ConfigError(f"CC's centre must be 'own' or 'memory', got {centre!r}")
    if iterations < 1:
        raise ConfigError(f"CC's iterations must be at least 1, got {iterations}")
    memory = centre == "memory"

    def coefficients(block: Block) -> Floats:
        start = np.zeros(block.weight.shape)
        start[:, -1 if memory else 0] = 1.0
        held = block.present.copy()
        if memory:
            held[:, -1] = False
        return clip_towards(block.inner, start, normalised(held), tau, iterations)

    def previous_output(inbox: Inbox, state: State) -> Any:
        return state

    return gram_rule(
        "CC",
        coefficients,
        anchor=previous_output if memory else None,
        remember=memory,
        init=(lambda models: models * 0) if memory else no_state,
        translates=not memory,
        idempotent=not memory,
        options={"tau": tau, "centre": centre, "iterations": iterations},
    )


@rules.register("SCC", aliases=("self-centered-clipping",), published={"tau": ByPartition(0.1, 0.3)})
def scc(tau: float = 0.3) -> Rule:
    """Self-centred clipping: x_n + sum_m w'_nm clip(y_m - x_n, tau); r_n = w'_nn."""
    check_radius("SCC", tau)

    def coefficients(block: Block) -> Floats:
        start = np.zeros(block.weight.shape)
        start[:, 0] = 1.0
        return clip_towards(block.inner, start, block.weight, tau, 1)

    return gram_rule(
        "SCC",
        coefficients,
        self_weight=lambda inbox: inbox.weight[:, 0],
        uses_weights=True,
        options={"tau": tau},
    )
