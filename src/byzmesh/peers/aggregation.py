"""The rule of a peer: what a round's messages make of its model.

Whoever answered in one round mostly answers in the next. What depends on that alone is prepared when it changes
(rules/prepared.py); the results are those of `Rule.apply`, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from byzmesh.compiled import divided
from byzmesh.round import Round
from byzmesh.rules.arrivals import Arrivals
from byzmesh.rules.base import Outcome, Rule, State, settle
from byzmesh.rules.gram import strategy
from byzmesh.rules.inbox import FARTHEST, make_inbox, own_slots, silence
from byzmesh.rules.prepared import Prepared, prepare
from byzmesh.types import Array, Booleans, Floats, Integers


class Aggregation:
    """A rule for one receiver, round after round.

    >>> import byzmesh as bm
    >>> mean, half = Aggregation(bm.rule("mean"), me=4), np.zeros(1, np.float32)
    >>> bounds = {"weight": np.full((1, 3), 1 / 3), "f": np.array([1]), "round": Round(), "peak": 0.0}
    >>> messages, came = np.array([[3.0], [6.0]], np.float32), np.array([True, True])
    >>> mean.apply(half, messages, came, None, **bounds)[0].models
    array([[3.]], dtype=float32)
    """

    def __init__(self, rule: Rule, me: int) -> None:
        self.rule, self._receiver = rule, np.array([me])
        self._key: tuple[Any, ...] = ()
        self._prepared: Prepared | None = None
        self._kept = np.zeros(1, bool)

    def apply(
        self,
        half: Array,
        messages: Array,
        came: Booleans,
        state: State,
        *,
        weight: Floats,
        f: Integers,
        round: Round,
        peak: float,
        message_peak: Floats | None = None,
        previous: Array | None = None,
        loss: Callable[[Any], Floats] | None = None,
    ) -> tuple[Outcome, State]:
        """The outcome and the next state, of its own half step (D,), messages (d, D) and which of them came (d,).

        weight  (1, d + 1) mixing weights as if every message came, own first
        peak    largest absolute value of the half step; message_peak (d,) those of the messages, if they are known

        The others are those of `make_inbox`.
        """
        own, peaks = np.ascontiguousarray(half)[None], np.array([peak])
        key = weight, f, own.dtype, came.tobytes()
        if not (self._key and key[0] is self._key[0] and key[1] is self._key[1] and key[2:] == self._key[2:]):
            self._key = key
            self._prepare(own, came, weight, f)
        if self._prepared is not None:
            found = self._prepared.apply(own, peaks, round, state, messages, None, message_peak)
            if found is not None:
                return Outcome(models=found[0], coefficients=found[1], kept=self._kept), found[2]
        inbox = make_inbox(
            self.rule,
            own,
            weight=weight,
            f=f,
            receiver=self._receiver,
            messages=messages,
            message_peak=message_peak,
            present=_with_own(came),
            round=round,
            previous=None if previous is None else previous[None],
            loss=loss,
            peak=peaks,
        )
        return self.rule.apply(inbox, state)

    def _prepare(self, own: Array, came: Booleans, weight: Floats, f: Integers) -> None:
        self._prepared = None
        if divided(own.shape[1], strategy.COLUMNS):
            return
        present = _with_own(came)
        arrivals = Arrivals(
            own=1,
            messages=len(came),
            index=own_slots(*weight.shape),
            weight=weight if came.all() else silence(weight, present),
            present=present,
            f=f,
            receiver=self._receiver,
            dtype=own.dtype,
        )
        self._kept = settle(arrivals, self.rule.feasible)[1]
        self._prepared = prepare(self.rule, arrivals, own.shape[1], FARTHEST)


def _with_own(came: Booleans) -> Booleans:
    """(1, d + 1) the slots that are filled: its own, and those of the messages that came."""
    present = np.ones((1, len(came) + 1), bool)
    present[0, 1:] = came
    return present
