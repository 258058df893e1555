"""Rounds in which the same messages arrive in the same slots: all that does not change is prepared once.

A Gram rule's round is two passes over the models (inner products, mixture) and small matrices in between. Where lies
are fixed combinations of honest models (`Attack.fixed`) or nobody lies, the slots, the weights, f and the matrix that
lifts basis coordinates to pool rows (basis.py) are the same in every round. A `Prepared` calls the same kernels on the
same numbers in the same order as `Rule.apply`, so the results are the same bit for bit; only bookkeeping is left out.
For a round that is not like that (huge or lost models, no answer from the rule) it returns None: then `Rule.apply`
decides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from byzmesh.compiled import exact
from byzmesh.round import Round
from byzmesh.rules.base import Block, Inbox, Rule, settle
from byzmesh.rules.gram import strategy
from byzmesh.rules.gram.basis import FAR, HUGE
from byzmesh.rules.gram.products import tie_tolerance
from byzmesh.rules.gram.rule import checked
from byzmesh.rules.gram.slots import combination_peaks, gather_blocks, scatter
from byzmesh.rules.gram.small_kernels import centred_mix, centred_products
from byzmesh.types import Array, Floats, Integers

Coefficients = Callable[[Block], Floats]


def prepare(rule: Rule, inbox: Inbox, columns: int, largest: float) -> Prepared | None:
    """What does not change in rounds whose messages arrive as in this inbox; None if the rule or the pool is unusual.

    inbox    of models that are all zero, of any number of columns
    columns  D of the models to come
    largest  models with a larger number are left to `Rule.apply`
    """
    pool, choosing = inbox.pool, rule.choosing
    if choosing is None or choosing.apply is not rule.apply or rule.sends != "half":
        return None
    f, kept = settle(inbox, choosing.feasible)
    usual = isinstance(pool.own, np.ndarray) and pool.messages is None and pool.anchors is None and not kept.any()
    if not usual or columns >= 2 * strategy.COLUMNS:
        return None
    if strategy.prefers_blocks(pool, *inbox.index.shape) or not pool.basis.fused:
        return None
    return Prepared(rule.name, choosing.coefficients, inbox, f, largest)


class Prepared:
    """A Gram rule with everything that is the same in every round.

    >>> import byzmesh as bm
    >>> run = bm.prepare(problem="quadratic", network={"name": "ring", "n": 5}, rule="ios", rounds=2)
    >>> run.prepared is not None
    True
    """

    def __init__(self, name: str, choose: Coefficients | None, inbox: Inbox, f: Integers, largest: float) -> None:
        pool, basis = inbox.pool, inbox.pool.basis
        self._name, self._choose = name, choose
        self.inbox, self.present, self._f = inbox, inbox.present, f
        self._largest = min(largest, HUGE[pool.dtype])
        self._none = pool.own[:0].copy()
        none = np.zeros((0, 1), np.int64), np.zeros((0, 1))
        self._combination = none if pool.combination is None else pool.combination
        self._lift = None if pool.combination is None else basis.plain_lift
        self._centre_row, self._gram = basis.centre_row, np.zeros((basis.height, basis.height))
        self._tie = tie_tolerance(pool.dtype)

    def apply(self, own: Array, peak: Floats, round: Round) -> tuple[Array, Floats] | None:
        """The new models (R, D) and the coefficients (R, K) for half steps (R, D) with these peaks (R,), or None."""
        top, spread = _sizes(peak, *self._combination)
        if not (top <= self._largest and spread <= FAR):
            return None
        chosen = self.inbox.weight
        if self._choose is not None:
            chosen = checked(self._choose(self._block(own, round)), chosen.shape, self._name)
            if not np.isfinite(chosen.sum()):
                return None
        return self._mixed(own, chosen), chosen

    def _block(self, own: Array, round: Round) -> Block:
        inbox, gram, lift = self.inbox, self._gram, self._lift
        centred_products(own, self._none, self._none, self._centre_row, 0, own.shape[1], gram)
        inner = gram if lift is None else lift @ gram @ lift.T
        blocks = np.empty((*inbox.index.shape, inbox.index.shape[1]))
        gather_blocks(inner, inbox.index, inbox.present, blocks)
        return Block(
            inner=blocks,
            weight=inbox.weight,
            present=inbox.present,
            f=self._f,
            receiver=inbox.receiver,
            tie=self._tie,
            round=round,
        )

    def _mixed(self, own: Array, chosen: Floats) -> Array:
        matrix = np.zeros((len(chosen), self.inbox.pool.size))
        scatter(self.inbox.index, chosen, matrix)
        total = matrix.sum(axis=1)
        if self._lift is not None:
            matrix = matrix @ self._lift
        if self._centre_row:
            total = total + matrix[:, -1]
        out = np.empty((len(chosen), own.shape[1]), own.dtype)
        weights, sums = matrix.astype(own.dtype, copy=False), total.astype(own.dtype, copy=False)
        centred_mix(own, self._none, self._none, weights, sums, 0, own.shape[1], out)
        return out


@exact
def _sizes(peak: Any, index: Any, coefficient: Any) -> Any:
    """The largest number in any row of the pool, and how many times the smallest own peak the largest is."""
    low, high = np.inf, 0.0
    for row in range(peak.size):
        low, high = min(low, peak[row]), max(high, peak[row])
    top = high
    for bound in combination_peaks(index, coefficient, peak):
        top = max(top, bound)
    return top, 1.0 if high == low else high / low
