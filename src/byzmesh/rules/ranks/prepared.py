"""Rounds of a coordinate-wise rule in which the same messages arrive in the same slots: prepared once.

Which values are ranked and which ranks count does not change where lies are fixed combinations of honest models
(`Attack.fixed`) or nobody lies. The results are those of `Rule.apply`, bit for bit.
"""

from __future__ import annotations

import numpy as np

from byzmesh.round import Round
from byzmesh.rules.base import Inbox, Ranking, State, settle
from byzmesh.rules.gram.pool import Pool
from byzmesh.rules.ranks import LARGEST_NETWORK
from byzmesh.rules.ranks.selection import Selection
from byzmesh.types import Array, Floats


def prepare_ranks(rule: Ranking, inbox: Inbox, largest: float) -> PreparedRanks | None:
    """See `rules.prepared.prepare`."""
    f, kept = settle(inbox, rule.feasible)
    several = inbox.pool.messages is not None and len(inbox.pool.own) != 1
    if kept.any() or several or inbox.index.shape[1] > LARGEST_NETWORK:
        return None
    ranks = rule.ranks(inbox.present.sum(axis=1), f)
    return PreparedRanks(inbox, Selection(inbox.index, inbox.present, *ranks, apart=rule.apart), largest)


class PreparedRanks:
    """A mean of ranks with everything that is the same in every round."""

    def __init__(self, inbox: Inbox, selection: Selection, largest: float) -> None:
        self.present, self._combination = inbox.present, inbox.pool.combination
        self._selection, self._largest = selection, largest

    def apply(
        self, own: Array, peak: Floats, round: Round, state: State, messages: Array | None = None
    ) -> tuple[Array, Floats | None, State] | None:
        """The new models (R, D), no coefficients and the state, or None if a message is too large.

        own, peak  the half steps (R, D) and their largest absolute values (R,)
        messages   (d, D) what a single receiver got, if it was prepared for messages that are no combinations
        """
        pool = Pool(own, messages, self._combination, own_peak=peak)
        if not pool.top <= self._largest:
            return None
        own = np.ascontiguousarray(own)
        return self._selection.mean(own, pool.dense_messages()), None, state
