"""Rounds in which the same messages arrive in the same slots: what a rule's `apply` does in all of them alike.

A rule declares what its `apply` consists of (`Rule.consists_of`); each kind has its own file.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from byzmesh.round import Round
from byzmesh.rules.base import Inbox, Ranking, Rule, State
from byzmesh.rules.gram.prepared import prepare_gram
from byzmesh.rules.ranks.prepared import prepare_ranks
from byzmesh.types import Array, Booleans, Floats


class Prepared(Protocol):
    """A rule for rounds that are filled alike."""

    present: Booleans

    def apply(
        self, own: Array, peak: Floats, round: Round, state: State, messages: Array | None = None
    ) -> tuple[Array, Floats | None, State] | None:
        """What `Rule.apply` would return: models, coefficients, next state; None: ask `Rule.apply`."""


def prepare(rule: Rule, inbox: Inbox, columns: int, largest: float) -> Prepared | None:
    """What does not change in rounds whose messages arrive as in this inbox; None if the rule or the pool is unusual.

    inbox    of models that are all zero, of any number of columns
    columns  D of the models to come
    largest  models with a larger number are left to `Rule.apply`
    """
    parts = rule.consists_of
    if parts is None or parts.apply is not rule.apply or rule.sends != "half":
        return None
    if not isinstance(inbox.pool.own, np.ndarray):
        return None
    if isinstance(parts, Ranking):
        return prepare_ranks(parts, inbox, largest)
    return prepare_gram(rule.name, parts, inbox, columns, largest)
