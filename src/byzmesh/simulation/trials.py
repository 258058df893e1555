"""Tries many lies on a rule at once, without building a model.

A Gram rule only uses inner products, and a lie is a combination of a few vectors z_1, ..., z_M, the honest models first
(all relative to one point, so that models near each other are small vectors). With their Gram matrix a trial costs
O(M^2) instead of O(K D): an inbox is its inner products, and the outcome is again a combination.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from byzmesh.attacks.base import Scene, Weigh
from byzmesh.round import Round
from byzmesh.rules.base import Block, Rule
from byzmesh.rules.gram.products import tie_tolerance
from byzmesh.simulation.exchange import Exchange
from byzmesh.types import Floats, Integers


def trials(
    rule: Rule, exchange: Exchange, scene: Scene, bound: Integers, dtype: Any, b: Floats | None = None
) -> Callable[[Round], Weigh] | None:
    """A round -> `View.weigh`; None unless the rule is a Gram rule whose coefficients sum to 1."""
    coefficients = rule.coefficients
    if coefficients is None or not rule.affine:
        return None
    victims = scene.victims
    every = np.arange(len(victims))
    valid, lying = exchange.valid[victims], exchange.lying[victims]
    row = exchange.honest_row[victims]
    slots = row.shape[1]
    one_hot = ((valid & ~lying)[:, :, None] & (row[:, :, None] == np.arange(len(scene.honest)))).astype(np.float64)
    filled = valid[:, :, None] & valid[:, None, :]
    both, mixed = lying[:, :, None] & lying[:, None, :], lying[:, :, None] ^ lying[:, None, :]
    f = np.minimum(bound[victims], valid.sum(axis=1) - 1)

    def of_round(round: Round) -> Weigh:
        def weigh(gram: Floats, lies: Floats) -> Floats:
            times = len(lies)
            away = lies.copy()
            away[:, every, victims] -= 1.0
            product = away @ gram
            lean = product[:, every[:, None], row] - product[:, every, victims][:, :, None]
            square = (product * away).sum(axis=2)
            to_own = gram[row, victims[:, None]]
            near = gram[row[:, :, None], row[:, None, :]] - to_own[:, :, None] - to_own[:, None, :]
            near += gram[victims, victims][:, None, None]
            cross = np.where(lying[:, None, :], lean[:, :, :, None], lean[:, :, None, :])
            inner = np.where(both, square[:, :, None, None], np.where(mixed, cross, near)) * filled

            def repeated(part: Any) -> Any:
                return np.tile(part, (times, *(1,) * (part.ndim - 1)))

            block = Block(
                inner=inner.reshape(-1, slots, slots),
                weight=repeated(exchange.weight[victims]),
                present=repeated(valid),
                f=repeated(f),
                receiver=repeated(exchange.receiver[victims]),
                tie=tie_tolerance(dtype),
                round=round,
                b=None if b is None else repeated(b[victims]),
            )
            chosen = coefficients(block).reshape(times, len(victims), slots)
            out: Floats = np.where(lying, chosen, 0.0).sum(axis=2)[:, :, None] * lies
            out[:, :, : one_hot.shape[2]] += (chosen[:, :, None] @ one_hot)[:, :, 0]
            return out

        return weigh

    return of_round
