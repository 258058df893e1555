"""Rounds of which it is known which rows arrive in which slots: a rule's `apply` without the bookkeeping of inboxes.

Where the same rows arrive in every round this is prepared once; else for a round at a time. A rule declares what its
`apply` consists of (`Rule.consists_of`); each kind has its own file.
"""

from __future__ import annotations

from typing import Any, Protocol

from byzmesh.round import Round
from byzmesh.rules.arrivals import Arrivals
from byzmesh.rules.base import Ranking, Rule, State
from byzmesh.rules.gram.prepared import prepare_gram
from byzmesh.rules.ranks.prepared import prepare_ranks
from byzmesh.types import Array, Booleans, Floats, Integers


class Prepared(Protocol):
    """A rule for rounds that are filled alike."""

    present: Booleans
    kernel: Any
    """The rule's choice for a round that is one compiled call, as in `Choosing`; None: there is none."""

    def refill(self, index: Integers) -> Prepared:
        """The same for rounds in which other rows (R, K) of as many messages arrive in the same slots."""

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
        """What `Rule.apply` would return: models, coefficients, next state; None: ask `Rule.apply`.

        out           (R, D) memory for the models that nobody reads any more; it is not written if the answer is None
        message_peak  (Q,) the `peaks` of the messages if they are known
        """


def prepare(rule: Rule, arrivals: Arrivals, columns: int, largest: float) -> Prepared | None:
    """What does not depend on the vectors that arrive; None if the rule or the pool is unusual.

    columns  D of the models to come, NumPy arrays
    largest  models with a larger number are left to `Rule.apply`
    """
    parts = rule.consists_of
    if parts is None or parts.apply is not rule.apply or rule.sends != "half":
        return None
    if isinstance(parts, Ranking):
        return prepare_ranks(parts, arrivals, largest)
    return prepare_gram(rule.name, parts, arrivals, columns, largest)
