"""Rounds of a Gram rule of which it is known which rows arrive in which slots: `Rule.apply` without its bookkeeping.

A Gram rule's round is two passes over the models (inner products, mixture) and small matrices in between. The slots,
the weights, f and the matrix that lifts basis coordinates to pool rows (basis.py) do not depend on the vectors: where
lies are fixed combinations of honest models (`Attack.fixed`) on a network that does not change they are prepared once,
else for each round. `PreparedGram` adds the same numbers in the same order as `Rule.apply`, so the results are the same
bit for bit. For a round that is not usual (huge or lost models, no answer from the rule) it returns None: then
`Rule.apply` decides.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from byzmesh.compiled import exact
from byzmesh.round import Round
from byzmesh.rules.arrivals import Arrivals
from byzmesh.rules.base import Block, Choosing, State, settle
from byzmesh.rules.gram import strategy
from byzmesh.rules.gram.basis import FAR, HUGE
from byzmesh.rules.gram.pool import peaks
from byzmesh.rules.gram.products import tie_tolerance
from byzmesh.rules.gram.rule import checked
from byzmesh.rules.gram.slots import (
    anchored_slots,
    combination_peaks,
    gather_blocks,
    lift_combinations,
    lifted_inner,
    lifted_weights,
    sums_to_one,
)
from byzmesh.rules.gram.small_kernels import centred_mix, centred_products, own_products
from byzmesh.sums import MOST, row_sum
from byzmesh.types import Array, Booleans, Floats, Integers


def prepare_gram(name: str, rule: Choosing, arrivals: Arrivals, columns: int, largest: float) -> PreparedGram | None:
    """See `rules.prepared.prepare`."""
    receivers, slots = arrivals.index.shape
    size = arrivals.size + receivers * rule.remembers
    combined = 0 if arrivals.combination is None else len(arrivals.combination[0])
    if columns >= 2 * strategy.COLUMNS or size > MOST or not strategy.prefers_fused(size - combined + (combined > 0)):
        return None
    if strategy.blocks_cost_less(size, size - combined, receivers, slots + rule.remembers):
        return None
    f, kept = settle(arrivals, rule.feasible)
    return PreparedGram(name, rule, arrivals, f, kept, largest)


def _measures_own(rule: Choosing, arrivals: Arrivals) -> bool:
    """Whether a single receiver asks for nothing but the distances of the messages from its own model."""
    alone = arrivals.own == 1 and arrivals.messages == arrivals.size - 1 > 0
    return rule.own_distances and alone and not rule.remembers


class PreparedGram:
    """A Gram rule with everything that does not depend on the vectors.

    >>> import byzmesh as bm
    >>> run = bm.prepare(problem="quadratic", network={"name": "ring", "n": 5}, rule="ios", rounds=2)
    >>> run.prepared is not None
    True
    """

    def __init__(
        self, name: str, rule: Choosing, arrivals: Arrivals, f: Integers, kept: Booleans, largest: float
    ) -> None:
        self._name, self.choose, self._remembers = name, rule.coefficients, rule.remembers
        self._own_distances = _measures_own(rule, arrivals)
        self.present = arrivals.present
        self._index, self._weight, self._held = arrivals.index, arrivals.weight, arrivals.present
        size, receivers = arrivals.size, len(arrivals.index)
        if rule.remembers:
            self._index, self._weight, self._held = anchored_slots(size, self._index, self._weight, self._held)
            size += receivers
        self._kept = np.flatnonzero(kept) if np.count_nonzero(kept) else None
        self._largest = min(largest, HUGE[arrivals.dtype])
        self._none = _NO_ROWS[arrivals.dtype]
        self._combination = _NOTHING
        self.centre_row, self.height, self._lift = False, size, _NO_LIFT
        if arrivals.combination is not None:
            self._combination = arrivals.combination
            self._lift, self.centre_row = _lifted(*self._combination, arrivals.own, size)
            self.height = self._lift.shape[1]
        self._shape = (receivers, self._index.shape[1], self._index.shape[1])
        self._seen = Block.__new__(Block)
        self._seen.__dict__.update(
            weight=self._weight,
            present=self._held,
            f=f,
            receiver=arrivals.receiver,
            tie=tie_tolerance(arrivals.dtype),
            b=arrivals.b,
            room=_unlimited(receivers) if arrivals.b is None else arrivals.b,  # the same in every round
        )

    def refill(self, index: Integers) -> PreparedGram:
        """See `rules.prepared.Prepared`; this one is changed."""
        self._index = np.concatenate([index, self._index[:, -1:]], axis=1) if self._remembers else index
        return self

    def apply(
        self,
        own: Array,
        peak: Floats,
        round: Round,
        state: State,
        messages: Array | None = None,
        out: Array | None = None,
        message_peak: Floats | None = None,
    ) -> tuple[Array, Floats | None, State] | None:
        """The new models (R, D), the coefficients (R, K) and the next state, or None.

        own, peak  the half steps (R, D) and their largest absolute values (R,)
        messages   (Q, D) the messages that are no combinations, if there are any
        out        (R, D) memory for the new models that nobody reads any more, if there is any
        message_peak  (Q,) the `peaks` of the messages if they are known
        """
        anchors = state if self._remembers else self._none
        messages = self._none if messages is None else messages
        chosen = self._weight
        if self.choose is not None:
            block = self.block(own, messages, anchors, peak, round, message_peak)
            if block is None:
                return None
            chosen = checked(self.choose(block), chosen.shape, self._name)
        elif not _usual(peak, *self._combination, self._others(messages, anchors, message_peak), self._largest, FAR):
            return None
        if self._kept is not None:
            chosen = chosen.copy()
            chosen[self._kept] = np.arange(chosen.shape[1]) == 0
        models = np.empty(own.shape, own.dtype) if out is None else out
        if not _mixture(own, messages, anchors, self._index, chosen, self._lift, self.centre_row, self.height, models):
            return None  # the rule has no answer for an inbox
        if self._kept is not None:
            models[self._kept] = own[self._index[self._kept, 0]]
        return (models, chosen[:, :-1], models) if self._remembers else (models, chosen, state)

    def block(
        self,
        own: Array,
        messages: Array,
        anchors: Array,
        peak: Floats,
        round: Round,
        message_peak: Floats | None = None,
    ) -> Block | None:
        """What the rule sees of these rows; None if they are not usual."""
        inner = np.empty(self._shape)
        usual = _blocks(
            own,
            messages,
            anchors,
            peak,
            *self._combination,
            self._others(messages, anchors, message_peak),
            self._largest,
            FAR,
            self.centre_row,
            self._own_distances,
            self._lift,
            self.height,
            self._index,
            self._held,
            inner,
        )
        return Block.alike(self._seen, inner, round) if usual else None

    def _others(self, messages: Array, anchors: Array, message_peak: Floats | None) -> Floats:
        """The largest absolute values of the rows that are neither half steps nor combinations."""
        if self._own_distances or not (len(anchors) or len(messages)):
            return _NO_PEAKS
        known = peaks(messages) if message_peak is None else message_peak
        return np.concatenate([known, peaks(anchors)]) if len(anchors) else known


_NOTHING = np.zeros((0, 1), np.int64), np.zeros((0, 1))
_NO_PEAKS, _NO_LIFT = np.zeros(0), np.zeros((0, 0))
_NO_ROWS = {dtype: np.zeros((0, 1), dtype) for dtype in HUGE}


@lru_cache(maxsize=64)
def _unlimited(receivers: int) -> Floats:
    """`Block.room` where nothing but f limits what is cut; shared, so nobody may write to it."""
    return np.full(receivers, np.inf)


@exact
def _lifted(index: Any, coefficient: Any, own: int, size: int) -> Any:
    """The matrix (P, M) from basis to pool rows, and whether the centre is a row of the basis."""
    centre_row = not sums_to_one(coefficient)
    lift = np.zeros((size, size - index.shape[0] + centre_row))
    lift_combinations(index, coefficient, np.ones(size), own, centre_row, lift)
    return lift, centre_row


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
def _near(peak: Any, gram: Any, largest: float) -> bool:
    """Whether no message has a larger number: it is at most that of the receiver's model and their distance."""
    near = True
    for row in range(1, gram.shape[0]):
        near &= peak[0] + np.sqrt(gram[row, row]) <= largest
    return near


@exact
def _blocks(
    own: Any,
    messages: Any,
    anchors: Any,
    peak: Any,
    combined: Any,
    coefficient: Any,
    others: Any,
    largest: float,
    far: float,
    centre_row: bool,
    own_distances: bool,
    lift: Any,
    height: int,
    index: Any,
    present: Any,
    out: Any,
) -> bool:
    """out (R, K, K) = the inner products of each receiver's slots; False if the rows are not usual."""
    if not _usual(peak, combined, coefficient, others, largest, far):
        return False
    gram = np.zeros((height, height))
    if own_distances:
        square = np.empty(messages.shape[0])
        own_products(own, messages, 0, own.shape[1], square)
        for row in range(square.size):
            gram[row + 1, row + 1] = square[row]
        if not _near(peak, gram, largest):
            return False
    else:
        centred_products(own, messages, anchors, centre_row, 0, own.shape[1], gram)
    if lift.shape[0] > 0:
        inner = np.empty((lift.shape[0], lift.shape[0]))
        lifted_inner(lift, gram, np.empty(lift.shape), inner)
        gather_blocks(inner, index, present, out)
    else:
        gather_blocks(gram, index, present, out)
    return True


@exact
def _mixture(
    own: Any,
    messages: Any,
    anchors: Any,
    index: Any,
    chosen: Any,
    lift: Any,
    centre_row: bool,
    height: int,
    out: Any,
) -> bool:
    """out[r] = sum over the slots by the coefficients `chosen`; False if they are not finite, before it is written."""
    receivers, size, total = index.shape[0], max(height, lift.shape[0]), 0.0
    matrix, sums = np.zeros((receivers, size)), np.empty(receivers)
    for receiver in range(receivers):
        for slot in range(index.shape[1]):
            matrix[receiver, index[receiver, slot]] += chosen[receiver, slot]
        sums[receiver] = row_sum(matrix[receiver])
        total += sums[receiver]
    if not np.isfinite(total):
        return False
    weights, kind = matrix, own.dtype.type
    if lift.shape[0] > 0:
        weights = np.empty((receivers, height))
        lifted_weights(matrix, lift, weights)
    narrow, share = np.empty(weights.shape, own.dtype), np.empty(receivers, own.dtype)
    for receiver in range(receivers):
        for row in range(weights.shape[1]):
            narrow[receiver, row] = kind(weights[receiver, row])
        share[receiver] = kind(sums[receiver] + (weights[receiver, -1] if centre_row else 0.0))
    centred_mix(own, messages, anchors, narrow, share, 0, own.shape[1], out)
    return True
