"""From half steps to the next models: what the rule makes of a round's messages, in the cheapest way that is known.

    in one call    several rounds, or one of a changing network, as one kernel (whole.py)
    prepared       the rule without the bookkeeping of inboxes (rules/prepared.py)
    whole          `Rule.apply` on inboxes, for any round

All three give the same numbers, bit for bit.
"""

from __future__ import annotations

from dataclasses import replace
from sys import getrefcount
from types import SimpleNamespace
from typing import Any

import numpy as np

from byzmesh.problems.base import StepKernel
from byzmesh.round import Round
from byzmesh.rules.base import Choosing
from byzmesh.rules.gram.pool import peaks
from byzmesh.rules.interop import from_host, to_host
from byzmesh.rules.prepared import Prepared, prepare
from byzmesh.simulation.counting import Counting
from byzmesh.simulation.exchange import Delivery
from byzmesh.simulation.live import NOBODY
from byzmesh.simulation.live_exchange import LiveExchange
from byzmesh.simulation.lying import Lying
from byzmesh.simulation.parts import LOST
from byzmesh.simulation.whole import rounds_kernel
from byzmesh.training.metrics import BYTES
from byzmesh.types import Booleans, Integers

Ready = tuple[int, tuple[Any, ...]]
"""The number of the first of some rounds that can be one compiled call, and their `_arguments`."""
Found = tuple[Any, Any, Any, Any]
"""The outcome of a round: models, coefficients or None, which slots counted, the rule's next state."""
NOTHING_OLD = np.zeros(0, np.int64), np.zeros(2, np.int64)
"""No old messages in any round."""
LONG = 200
"""From so many rounds it pays to compile all of a round as one kernel."""


def _holders(owner: Any, name: str) -> int:
    """How many references there are to what an attribute holds, those of this call among them."""
    value = getattr(owner, name)
    return getrefcount(value)


HELD_ONCE = _holders(SimpleNamespace(alone=object()), "alone")
"""`_holders` of something that nothing but its owner holds."""


class Aggregating(Lying, Counting):
    """The exchange of a round and what the rule makes of it."""

    _former: Any
    _delivery: Delivery | None
    _overwrites: bool
    _whole: StepKernel | None
    _nobody: Booleans
    _ready: Ready | None
    """What is known of this round and perhaps those after it, if that is all that a compiled call needs."""

    def _begin(self) -> None:
        """Prepare the rounds of a run."""
        self._former, self._delivery = None, None
        parts = self.rule.consists_of
        mixes = parts is not None and parts.apply is self.rule.apply and self.rule.sends == "half"
        self._overwrites = mixes and not (self.live or self.local_round.needs_former or self.rule.needs_previous)
        """Whether nobody reads the models any more once there are half steps and lies."""
        self.prepared = None if self.live else self._prepare()
        plain = isinstance(self.models, np.ndarray) and not self.channel and self.rounds >= LONG
        chooses = mixes and isinstance(parts, Choosing) and (parts.coefficients is None or parts.kernel is not None)
        usual = plain and chooses and (self.live is not None or self.prepared is not None)
        self._whole = self.local_round.step_kernel() if usual else None
        self._nobody, self._ready = np.zeros(len(self.models), np.bool_), None

    def _in_one_call(self, steps: StepKernel, count: int) -> int:
        """Compute up to so many rounds as one compiled call; how many: if none, the next is to be computed by parts."""
        ready, self._ready = self._ready, None
        if not self.live:
            ready = self._arguments(self.prepared, self.round, count)
        if ready is None:
            return 0
        first, (rounds, prepared, size, resting, slots, lies, arriving, sums) = ready
        start, stop = self.round - first, self.round - first + count
        sent, peak, turns = self._places()
        chosen, out = np.empty(slots[0].shape), self.models if self._alone("models") else np.empty_like(self.models)
        remembers = prepared.remembers
        memory, spare = (self.rule_state, np.empty_like(out)) if remembers else (self.models[:0], out)
        done: int = rounds(
            steps.data, self.task_row, self.round, start, size[start:stop], self.local.decay, self.models, resting,
            sent, peak, slots, lies, arriving, memory, prepared.settings, sums, chosen, out, spare,
        )  # fmt: skip
        if done:
            self.round += done
            half = sent[(self.round - 1) % turns]
            self.models, self.half = out if done % 2 else spare, half
            self.last = half, chosen[:, :-1] if remembers else chosen
            if remembers:
                self._remember(self.models, self.live.asleep if self.live else NOBODY)
            if self.live:
                self.live.past.went_on(self.round - 1, done)
            for _ in range(done if BYTES in self.measure else 0):
                self._count_bytes()
        return done

    def _remember(self, state: Any, asleep: Integers) -> None:
        """The rule's state after a round; a receiver that slept has its row of it, if there are such, as it was."""
        if len(asleep) and hasattr(state, "shape"):  # perhaps the models themselves
            state = from_host(to_host(state).copy(), state)
            state[asleep] = self.rule_state[asleep]
        self.rule_state = state

    def _places(self) -> tuple[Any, Any, int]:
        """Where half steps and their peaks are written, a round after the other, and how many such places there are."""
        if self.live and self.live.past.oldest:
            return self.live.past.ring, self.live.past.peak, self.live.past.oldest + 1
        return self.local_round.place[None], self.local_round.peak, 1

    def _arguments(
        self,
        prepared: Any,
        first: int,
        count: int,
        arriving: tuple[Integers, Integers, Integers] | None = None,
        asleep: Integers = NOBODY,
    ) -> Ready | None:
        """The kernel of so many rounds from `first`, and what it needs to know of them.

        arriving  as the kernel needs it; None: in all of them what is prepared
        """
        if prepared is None or prepared.kernel is None or self._whole is None:
            return None
        size = [self.schedule(number) for number in range(first, first + count)]
        counts = self.counts = self.start_counts() if self.counts is None else self.counts
        if counts is None or 0.0 in size:
            return None
        resting = self._nobody
        if len(asleep):
            resting = self._nobody.copy()
            resting[asleep] = True
        slots, lies, index = prepared.known()
        arriving = (index[None], *NOTHING_OLD) if arriving is None else arriving
        rounds = rounds_kernel(self._whole.kernel, prepared.kernel, prepared.remembers)
        return first, (rounds, prepared, np.array(size), resting, slots, lies, arriving, counts.sums(self.exchange))

    def _prepared_round(self, round: Round) -> Found | None:
        """The outcome of a usual round; None: `_whole_round` decides."""
        prepared, messages, message_peak, self._delivery = self.prepared, None, None, None
        if prepared is None:
            self._delivery = self._deliver(round)
            messages, message_peak = self._delivery.messages, self._delivery.peak
            if not self._may_prepare or (messages is not None and messages.dtype != self.half.dtype):
                return None
            prepared = self._prepared_for(self._delivery)
        if prepared is None:
            return None
        peak = peaks(self.half) if self.local_round.peak is None else self.local_round.peak
        spare = self._spare()
        found = prepared.apply(self.half, peak, round, self.rule_state, messages, spare, message_peak)
        if found is None:
            return None
        if not self._overwrites:
            self._former = self.models
        return found[0], found[1], prepared.present, found[2]

    def _prepared_for(self, delivery: Delivery) -> Prepared | None:
        """What can be prepared for a round in which this arrives: much of it, if the links and lies are known."""
        old = 0 if delivery.messages is None else len(delivery.messages)
        known = self.exchange.prepared if isinstance(self.exchange, LiveExchange) and self._same_lies else {}
        if old in known:
            prepared = known[old]
            return prepared if prepared is None else prepared.refill(delivery.index)
        arrivals = self.exchange.arrivals(delivery, self.half, self.bound, self.weight_bound)
        known[old] = prepare(self.rule, arrivals, self.models.shape[1], LOST)
        return known[old]

    def _whole_round(self, round: Round) -> Found | None:
        """The outcome of any round; None if an honest model is beyond `LOST`."""
        delivery = self._deliver(round) if self._delivery is None else self._delivery
        spare = self._spare()
        inbox = replace(self._inbox(delivery, round), out=spare)
        pool = inbox.pool
        if not pool.top <= LOST and not (pool.peak[: len(pool.own)] <= LOST).all():
            return None
        outcome, state = self.rule.apply(inbox, self.rule_state)
        self._former = None if spare is self.models else self.models
        return self.local_round.apart(outcome.models), outcome.coefficients, inbox.present, state

    def _prepare(self) -> Prepared | None:
        """What is the same in every round, if the lies are; None: every round is new."""
        if not self._may_prepare or self.channel or (self._lies and not self.attack.fixed):
            return None
        self.half = np.zeros_like(self.models[:, :1])
        delivery = self._deliver(Round(total=self.rounds, seed=self.seed))
        arrivals = self.exchange.arrivals(delivery, self.half, self.bound, self.weight_bound)
        return prepare(self.rule, arrivals, self.models.shape[1], LOST)

    @property
    def _may_prepare(self) -> bool:
        """Whether a round may be computed from what is known before its vectors."""
        return isinstance(self.models, np.ndarray) and self.rule.consists_of is not None

    def _spare(self) -> Any:
        """Memory for the next models that nobody holds any more: fresh pages cost time, and long models memory.

        That of the current models if the rule only mixes what was sent, otherwise of those before them.
        """
        name = "models" if self._overwrites else "_former"
        return getattr(self, name) if self._alone(name) else None

    def _alone(self, name: str) -> bool:
        """Whether nobody but this attribute holds an array, nor a part of it."""
        models = getattr(self, name)
        alone = isinstance(models, np.ndarray) and models.base is None
        del models
        return alone and _holders(self, name) == HELD_ONCE
