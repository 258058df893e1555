"""Rounds of a Gram rule in which the same messages arrive in the same slots: all that does not change is prepared once.

A Gram rule's round is two passes over the models (inner products, mixture) and small matrices in between. Where lies
are fixed combinations of honest models (`Attack.fixed`) or nobody lies, the slots, the weights, f and the matrix that
lifts basis coordinates to pool rows (basis.py) are the same in every round. `PreparedGram` adds the same numbers in the
same order as `Rule.apply`, so the results are the same bit for bit; only bookkeeping is left out. For a round that is
not like that (huge or lost models, no answer from the rule) it returns None: then `Rule.apply` decides.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.compiled import exact
from byzmesh.round import Round
from byzmesh.rules.base import Block, Choosing, Inbox, State, settle
from byzmesh.rules.gram import strategy
from byzmesh.rules.gram.basis import FAR, HUGE
from byzmesh.rules.gram.pool import peaks
from byzmesh.rules.gram.products import tie_tolerance
from byzmesh.rules.gram.rule import anchored, checked
from byzmesh.rules.gram.slots import MOST, combination_peaks, gather_blocks, row_sum
from byzmesh.rules.gram.small_kernels import centred_mix, centred_products, own_products
from byzmesh.types import Array, Floats, Integers


def prepare_gram(name: str, rule: Choosing, inbox: Inbox, columns: int, largest: float) -> PreparedGram | None:
    """See `rules.prepared.prepare`."""
    f, kept = settle(inbox, rule.feasible)
    if rule.remembers:
        inbox = anchored(inbox, np.zeros_like(inbox.pool.own[inbox.index[:, 0]]))
    pool = inbox.pool
    if (
        (pool.messages is not None and len(pool.own) != 1)
        or kept.any()
        or columns >= 2 * strategy.COLUMNS
        or pool.size > MOST
    ):
        return None
    if strategy.prefers_blocks(pool, *inbox.index.shape) or not pool.basis.fused:
        return None
    return PreparedGram(name, rule, inbox, f, largest)


class PreparedGram:
    """A Gram rule with everything that is the same in every round.

    >>> import byzmesh as bm
    >>> run = bm.prepare(problem="quadratic", network={"name": "ring", "n": 5}, rule="ios", rounds=2)
    >>> run.prepared is not None
    True
    """

    def __init__(self, name: str, rule: Choosing, inbox: Inbox, f: Integers, largest: float) -> None:
        pool, basis = inbox.pool, inbox.pool.basis
        self._name, self.choose, self._remembers = name, rule.coefficients, rule.remembers
        self._own_distances = rule.own_distances and pool.messages is not None
        self._index, self._weight, self._held, self._f = inbox.index, inbox.weight, inbox.present, f
        self._receiver, self._b = inbox.receiver, inbox.b
        self.present = inbox.present[:, :-1] if rule.remembers else inbox.present
        self._largest = min(largest, HUGE[pool.dtype])
        self._none = pool.own[:0].copy()
        none = np.zeros((0, 1), np.int64), np.zeros((0, 1))
        self._combination = none if pool.combination is None else pool.combination
        self._lift = None if pool.combination is None else basis.plain_lift
        self.centre_row, self.height = basis.centre_row, basis.height
        self._gram = np.zeros((basis.height, basis.height))
        self._half, self._inner = np.empty((pool.size, basis.height)), np.empty((pool.size, pool.size))
        receivers = len(inbox.index)
        self._matrix, self._sums = np.empty((receivers, pool.size)), np.empty(receivers)
        self._weights = np.empty((receivers, basis.height))
        self._tie = tie_tolerance(pool.dtype)

    def apply(
        self, own: Array, peak: Floats, round: Round, state: State, messages: Array | None = None
    ) -> tuple[Array, Floats | None, State] | None:
        """The new models (R, D), the coefficients (R, K) and the next state, or None.

        own, peak  the half steps (R, D) and their largest absolute values (R,)
        messages   (d, D) what a single receiver got, if it was prepared for messages that are no combinations
        """
        anchors, others = (state, peaks(state)) if self._remembers else (self._none, self._sums[:0])
        if messages is None:
            messages = self._none
        else:
            others = peaks(messages)
        if not _usual(peak, *self._combination, others, self._largest, FAR):
            return None
        chosen = self._weight
        if self.choose is not None:
            chosen = checked(self.choose(self.block(own, messages, anchors, round)), chosen.shape, self._name)
        weights = self._matrix
        if not _scatter(self._index, chosen, weights, self._sums):
            return None  # the rule has no answer for an inbox
        if self._lift is not None:
            weights = np.matmul(weights, self._lift, out=self._weights)
        models = np.empty(own.shape, own.dtype)
        _mix(own, messages, anchors, weights, self._sums, self.centre_row, models)
        return (models, chosen[:, :-1], models) if self._remembers else (models, chosen, state)

    def block(self, own: Array, messages: Array, anchors: Array, round: Round) -> Block:
        """What the rule sees of these rows."""
        if self._own_distances:
            _diagonal(own, messages, self._gram)
        else:
            centred_products(own, messages, anchors, self.centre_row, 0, own.shape[1], self._gram)
        inner, lift = self._gram, self._lift
        if lift is not None:
            inner = np.matmul(np.matmul(lift, inner, out=self._half), lift.T, out=self._inner)
        blocks = np.empty((*self._index.shape, self._index.shape[1]))
        gather_blocks(inner, self._index, self._held, blocks)
        return Block(
            inner=blocks,
            weight=self._weight,
            present=self._held,
            f=self._f,
            receiver=self._receiver,
            tie=self._tie,
            round=round,
            b=self._b,
        )


@exact
def _usual(peak: Any, index: Any, coefficient: Any, others: Any, largest: float, far: float) -> bool:
    """Whether no row of the pool has a larger number, and no own model is that many times as large as another."""
    low, high = np.inf, 0.0
    for row in range(peak.size):
        low, high = min(low, peak[row]), max(high, peak[row])
    if not high <= far * low:
        return False
    for bound in combination_peaks(index, coefficient, peak):
        high = max(high, bound)
    for bound in others:
        high = max(high, bound)
    return bool(high <= largest)


@exact
def _diagonal(own: Any, messages: Any, gram: Any) -> None:
    """gram[k, k] = the squared distance of message k - 1 from the receiver's own model; the rest of it stays zero."""
    square = np.empty(messages.shape[0])
    own_products(own, messages, 0, own.shape[1], square)
    for row in range(square.size):
        gram[row + 1, row + 1] = square[row]


@exact
def _scatter(index: Any, chosen: Any, matrix: Any, sums: Any) -> bool:
    """matrix[r, index[r, k]] = the sum of these coefficients, sums[r] = their sum; False if they are not finite."""
    matrix[:] = 0.0
    total = 0.0
    for receiver in range(index.shape[0]):
        for slot in range(index.shape[1]):
            matrix[receiver, index[receiver, slot]] += chosen[receiver, slot]
        sums[receiver] = row_sum(matrix[receiver])
        total += sums[receiver]
    return bool(np.isfinite(total))


@exact
def _mix(own: Any, messages: Any, anchors: Any, weights: Any, sums: Any, centre_row: bool, out: Any) -> None:
    """out[r] = sum over the pool by the weights (R, M) of its basis, whose last row is the centre if asked."""
    receivers, kind = out.shape[0], own.dtype.type
    narrow, total = np.empty(weights.shape, own.dtype), np.empty(receivers, own.dtype)
    for receiver in range(receivers):
        for row in range(weights.shape[1]):
            narrow[receiver, row] = kind(weights[receiver, row])
        total[receiver] = kind(sums[receiver] + (weights[receiver, -1] if centre_row else 0.0))
    centred_mix(own, messages, anchors, narrow, total, 0, own.shape[1], out)
