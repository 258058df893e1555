"""Tries many lies on a rule at once, without filling inboxes.

A Gram rule only uses inner products, and a lie is a combination of a few vectors z_1, ..., z_M, the honest models first
(all relative to one point, so that models near each other are small vectors). With their Gram matrix a trial costs
O(M^2) instead of O(K D): an inbox is its inner products, and the outcome is again a combination.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from byzmesh.attacks.base import Ranks, Scene, Weigh
from byzmesh.attacks.rank_search import MOST
from byzmesh.round import Round
from byzmesh.rules.arrivals import Arrivals
from byzmesh.rules.base import Block, Ranking, Rule, settle
from byzmesh.rules.gram.products import tie_tolerance
from byzmesh.simulation.exchange import Delivery, Exchange
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
    f, kept = (part[victims] for part in settle(_arrivals(exchange, bound), rule.feasible))
    itself = np.arange(slots) == 0

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
            alone = kept | ~np.isfinite(chosen).all(axis=2)  # as in `gram_rule`
            chosen = np.where(alone[:, :, None], itself, chosen)
            out: Floats = np.where(lying, chosen, 0.0).sum(axis=2)[:, :, None] * lies
            out[:, :, : one_hot.shape[2]] += (chosen[:, :, None] @ one_hot)[:, :, 0]
            return out

        return weigh

    return of_round


def ranks_of(rule: Rule, exchange: Exchange, scene: Scene, bound: Integers) -> Ranks | None:
    """`View.ranks`; None unless the rule takes means of ranks and inboxes are small (attacks/rank_search.py)."""
    parts = rule.consists_of
    if not isinstance(parts, Ranking) or parts.apply is not rule.apply or rule.sends != "half":
        return None
    victims = scene.victims
    valid, lying = exchange.valid[victims], exchange.lying[victims]
    ranked = valid & ~lying
    ranked[:, 0] &= not parts.apart
    count = ranked.sum(axis=1)
    if count.max(initial=0) > MOST:
        return None
    f, kept = settle(_arrivals(exchange, bound), parts.feasible)
    lower, upper = parts.ranks(valid.sum(axis=1), f[victims])
    honest = np.zeros((len(victims), int(count.max(initial=0))), np.int64)
    honest[np.arange(honest.shape[1]) < count[:, None]] = exchange.honest_row[victims][ranked]
    return Ranks(
        own=victims,
        honest=honest,
        count=count,
        lies=lying.sum(axis=1),
        lower=np.where(kept[victims], 0, lower),
        upper=np.where(kept[victims], 0, upper),
        apart=parts.apart,
    )


def _arrivals(exchange: Exchange, bound: Integers) -> Arrivals:
    """What is known of the inboxes if all liars speak."""
    return exchange.arrivals(Delivery(exchange.honest_row, exchange.valid), np.empty((0, 0)), bound)
