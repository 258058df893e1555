"""Rounds of a coordinate-wise rule of which it is known which rows arrive in which slots.

From it follow the values that are ranked and the ranks that count. The results are those of `Rule.apply`, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from byzmesh.round import Round
from byzmesh.rules.arrivals import Arrivals
from byzmesh.rules.base import Ranking, State, settle
from byzmesh.rules.gram.pool import Pool
from byzmesh.rules.ranks import LARGEST_NETWORK
from byzmesh.rules.ranks.selection import Selection
from byzmesh.types import Array, Floats, Integers


def prepare_ranks(rule: Ranking, arrivals: Arrivals, largest: float) -> PreparedRanks | None:
    """See `rules.prepared.prepare`."""
    f, kept = settle(arrivals, rule.feasible)
    if kept.any() or arrivals.index.shape[1] > LARGEST_NETWORK:
        return None
    ranks = rule.ranks(arrivals.present.sum(axis=1), f)

    def select(index: Integers) -> Selection:
        return Selection(index, arrivals.present, *ranks, apart=rule.apart)

    return PreparedRanks(arrivals, select, largest)


class PreparedRanks:
    """A mean of ranks with everything that does not depend on the vectors."""

    kernel = None

    def __init__(self, arrivals: Arrivals, select: Callable[[Integers], Selection], largest: float) -> None:
        self.present, self._combination = arrivals.present, arrivals.combination
        self._select, self._largest = select, largest
        self._selection = select(arrivals.index)

    def refill(self, index: Integers) -> PreparedRanks:
        """See `rules.prepared.Prepared`; this one is changed."""
        self._selection = self._select(index)
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
        """The new models (R, D), no coefficients and the state, or None if a message is too large.

        own, peak  the half steps (R, D) and their largest absolute values (R,)
        messages   (Q, D) the messages that are no combinations, if there are any
        out        (R, D) memory for the new models that nobody reads any more, if there is any
        message_peak  (Q,) the `peaks` of the messages if they are known
        """
        pool = Pool(own, messages, self._combination, own_peak=peak, message_peak=message_peak)
        if not pool.top <= self._largest:
            return None
        own = np.ascontiguousarray(own)
        return self._selection.mean(own, pool.dense_messages(), out), None, state
