"""Rounds of a Gram rule of which it is known which rows arrive in which slots: `Rule.apply` without its bookkeeping.

A Gram rule's round is two passes over the models (inner products, mixture) and small matrices in between. The slots,
the weights, f and the matrix that lifts basis coordinates to pool rows (basis.py) do not depend on the vectors: where
lies are fixed combinations of honest models (`Attack.fixed`) on a network that does not change they are prepared once,
else for each round. `PreparedGram` adds the same numbers in the same order as `Rule.apply`, so the results are the same
bit for bit. For a round that is not usual (huge or lost models, no answer from the rule) it returns None: then
`Rule.apply` decides.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from byzmesh.round import Round
from byzmesh.rules.arrivals import Arrivals
from byzmesh.rules.base import Block, Choosing, State, settle
from byzmesh.rules.gram import strategy
from byzmesh.rules.gram.alone_kernels import near_block, own_gram
from byzmesh.rules.gram.basis import FAR, HUGE
from byzmesh.rules.gram.many_kernels import many_products
from byzmesh.rules.gram.pool import peaks
from byzmesh.rules.gram.prepared_kernels import blocks, lifted, mixture, usual, weights_alone
from byzmesh.rules.gram.products import tie_tolerance
from byzmesh.rules.gram.rule import checked
from byzmesh.rules.gram.slots import anchored_slots
from byzmesh.rules.gram.small_kernels import centred_products
from byzmesh.sparse import frozen
from byzmesh.sums import MOST
from byzmesh.types import Array, Booleans, Floats, Integers


def prepare_gram(name: str, rule: Choosing, arrivals: Arrivals, columns: int, largest: float) -> PreparedGram | None:
    """See `rules.prepared.prepare`."""
    receivers, slots = arrivals.index.shape
    size = arrivals.size + receivers * rule.remembers
    combined = 0 if arrivals.combination is None else len(arrivals.combination[0])
    few = columns < 2 * strategy.COLUMNS and strategy.prefers_fused(size - combined + (combined > 0))
    if size > MOST or not (few or _alone(rule, arrivals)):
        return None
    if strategy.blocks_cost_less(size, size - combined, receivers, slots + rule.remembers):
        return None
    f, kept = settle(arrivals, rule.feasible)
    return PreparedGram(name, rule, arrivals, f, kept, largest)


def _alone(rule: Choosing, arrivals: Arrivals) -> bool:
    """Whether `alone_block` serves the rule: the pool is a single receiver's model and messages."""
    if rule.remembers or rule.coefficients is None or arrivals.own != 1 or arrivals.messages != arrivals.size - 1:
        return False
    here = rule.own_distances or strategy.prefers_fused(arrivals.size) or strategy.prefers_tiles(arrivals.size)
    return here and arrivals.messages > 0


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
        self._name, self.remembers = name, rule.remembers
        self.choose: Any = rule.coefficients
        self._alone, self._own_distances = _alone(rule, arrivals), rule.own_distances
        self._products = centred_products if strategy.prefers_fused(arrivals.size) else many_products
        self._at_once = rule.kernel if self._alone else None
        self.present, self.settings = arrivals.present, _settings(rule.settings)
        self.kernel = None if self._alone else rule.kernel
        if rule.coefficients is None:
            self.kernel = weights_alone
        """The rule's choice of coefficients for a round that is one compiled call; None: there is none."""
        self._index, self._weight, self._held = arrivals.index, arrivals.weight, arrivals.present
        size, receivers = arrivals.size, len(arrivals.index)
        if rule.remembers:
            self._index, self._weight, self._held = anchored_slots(size, self._index, self._weight, self._held)
            size += receivers
        self._own, self._size, self._f, self._all_kept = arrivals.own, size, f, kept
        self._room = _unlimited(receivers) if arrivals.b is None else arrivals.b
        self._largest, self._tie = min(largest, HUGE[arrivals.dtype]), tie_tolerance(arrivals.dtype)
        self._none = _NO_ROWS[arrivals.dtype]
        self._combination = _NOTHING if arrivals.combination is None else arrivals.combination
        self._receiver, self._b = arrivals.receiver, arrivals.b

    def known(self) -> tuple[tuple[Any, ...], tuple[Any, ...], Integers]:
        """For rounds that are one compiled call (simulation/whole.py).

        slots  weight, present (R, K), f, kept, room (R,), and the relative difference that counts as a tie
        lies   combinations, and the largest number of a usual row
        index  (R, K) the pool row in each slot
        """
        weight = frozen(self._weight.view())  # whatever it is elsewhere, so that the kernel is compiled once
        slots = (weight, self._held, self._f, self._all_kept, self._room, self._tie)
        return slots, (*self._combination, self._largest), self._index

    @cached_property
    def _lift(self) -> tuple[Floats, bool]:
        """The matrix from basis to pool rows, and whether the centre is a row of the basis."""
        lift, centre_row = lifted(*self._combination, self._own, self._size)
        return lift, centre_row

    @property
    def centre_row(self) -> bool:
        """Whether the centre is a row of the basis."""
        return self._lift[1]

    @property
    def height(self) -> int:
        """Number of rows of the basis."""
        return self._lift[0].shape[1] or self._size

    @cached_property
    def _kept(self) -> Integers | None:
        """The receivers that keep their own model; None if nobody does."""
        return np.flatnonzero(self._all_kept) if np.count_nonzero(self._all_kept) else None

    @cached_property
    def _seen(self) -> Block:
        """What the rule sees of every round."""
        seen = Block.__new__(Block)
        facts = {"f": self._f, "receiver": self._receiver, "tie": self._tie, "b": self._b, "room": self._room}
        seen.__dict__.update(facts, weight=self._weight, present=self._held)
        return seen

    def refill(self, index: Integers) -> PreparedGram:
        """See `rules.prepared.Prepared`; this one is changed."""
        self._index = np.concatenate([index, self._index[:, -1:]], axis=1) if self.remembers else index
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
        anchors = state if self.remembers else self._none
        messages = self._none if messages is None else messages
        chosen = self._weight
        if self.choose is not None:
            inner = self._inner(own, messages, anchors, peak, message_peak)
            if inner is None:
                return None
            chosen = self._coefficients(inner, round)
        elif not usual(peak, *self._combination, self._others(messages, anchors, message_peak), self._largest, FAR):
            return None
        if self._kept is not None:
            chosen = chosen.copy()
            chosen[self._kept] = np.arange(chosen.shape[1]) == 0
        models = np.empty(own.shape, own.dtype) if out is None else out
        if not mixture(own, messages, anchors, self._index, chosen, *self._lift, self.height, models):
            return None  # the rule has no answer for an inbox
        if self._kept is not None:
            models[self._kept] = own[self._index[self._kept, 0]]
        return (models, chosen[:, :-1], models) if self.remembers else (models, chosen, state)

    def block(self, own: Array, messages: Array, anchors: Array, peak: Floats, round: Round) -> Block | None:
        """What the rule sees of these rows; None if they are not usual."""
        inner = self._inner(own, messages, anchors, peak, None)
        return None if inner is None else Block.alike(self._seen, inner, round)

    def _coefficients(self, inner: Floats, round: Round) -> Floats:
        """(R, K) the rule's choice."""
        if self._at_once is None:
            return checked(self.choose(Block.alike(self._seen, inner, round)), self._index.shape, self._name)
        chosen = np.empty(self._index.shape)
        self._at_once(inner, self._weight, self._held, self._f, self._room, self._tie, self.settings, chosen)
        return chosen

    def _inner(
        self, own: Array, messages: Array, anchors: Array, peak: Floats, message_peak: Floats | None
    ) -> Floats | None:
        """(R, K, K) the inner products of each receiver's slots; None if the rows are not usual."""
        inner = np.empty((*self._index.shape, self._index.shape[1]))
        if self._alone:
            gram = np.empty((self._size, self._size))
            if self._own_distances:
                own_gram(own, messages, gram)
            else:
                self._products(own, messages, anchors, False, 0, own.shape[1], gram)
            near = near_block(gram, float(peak[0]), self._largest, self._index, self._held, inner)
            return inner if near else None
        lift, centre_row = self._lift
        known = blocks(
            own,
            messages,
            anchors,
            peak,
            *self._combination,
            self._others(messages, anchors, message_peak),
            self._largest,
            FAR,
            centre_row,
            lift,
            self.height,
            self._index,
            self._held,
            inner,
        )
        return inner if known else None

    def _others(self, messages: Array, anchors: Array, message_peak: Floats | None) -> Floats:
        """The largest absolute values of the rows that are neither half steps nor combinations."""
        if not (len(anchors) or len(messages)):
            return _NO_PEAKS
        known = peaks(messages) if message_peak is None else message_peak
        return np.concatenate([known, peaks(anchors)]) if len(anchors) else known


_NOTHING = np.zeros((0, 1), np.int64), np.zeros((0, 1))
_NO_PEAKS = np.zeros(0)
_NO_ROWS = {dtype: np.zeros((0, 1), dtype) for dtype in HUGE}


@lru_cache(maxsize=64)
def _settings(values: tuple[float, ...]) -> Floats:
    return np.array(values, np.float64)


@lru_cache(maxsize=64)
def _unlimited(receivers: int) -> Floats:
    """`Block.room` where nothing but f limits what is cut; shared, so nobody may write to it."""
    return np.full(receivers, np.inf)
