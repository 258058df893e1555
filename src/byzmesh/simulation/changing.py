"""The rounds of a changing network, prepared some at a time as far as they do not depend on the models."""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.attacks.state import renewed
from byzmesh.round import Round
from byzmesh.rules.interop import to_host
from byzmesh.simulation.aggregating import Aggregating, Ready
from byzmesh.simulation.exchange import Delivery
from byzmesh.simulation.live import NOBODY, Live
from byzmesh.simulation.live_exchange import LiveExchange
from byzmesh.types import Integers

Late = tuple[Integers, Integers]
"""What `LiveExchange.find_late` says of a round."""
Met = tuple[LiveExchange, Integers, Integers, Any, Late | None]
"""A round that is prepared: inboxes, bounds, who sleeps, `LiveExchange.age` and `late`."""


class Changing(Aggregating):
    """Which links a round has, who sleeps in it, and what is known of it before its half steps."""

    _met: dict[int, tuple[LiveExchange, Integers, Integers, Any, Late | None, Ready | None]]
    """Rounds that are prepared, with what a compiled call of them needs."""

    def _meet(self, live: Live, k: int) -> Integers:
        """Go to the links of a round; who sleeps in it. An attack's plan is made anew, what it remembers is kept."""
        if k not in self._met:
            self._look_ahead(live, k)
        exchange, self.bound, asleep, age, late, self._ready = self._met.pop(k)
        exchange.age, exchange.late = age, late
        self.exchange, live.bound, live.asleep = exchange, self.bound, asleep
        live.begin(k, self.local_round, self.models)
        self.prepared = exchange.prepared.get(0) if exchange.age is None else None
        if exchange.lies or self._watches:
            scene = self.scene = exchange.scene
            if exchange.plan is None:
                self.attack_state = renewed(self.attack_state, lambda: self.attack.init(scene))
            else:
                self.attack_state = exchange.plan
        if exchange.lies:
            self.trials = self._trials()
        return asleep

    def _look_ahead(self, live: Live, k: int) -> None:
        """Prepare the next rounds as far as they do not depend on the models; an error waits for its round."""
        self._met, met = {}, []
        self.half, first = np.zeros_like(to_host(self.models[:, :1])), Round(total=self.rounds, seed=self.seed)
        for number in range(k, max(k + 1, min(k + live.ahead, self.rounds))):
            try:
                exchange = live.meet(number)
                late = self._plan(live, exchange, first, number)
            except Exception:
                if number == k:
                    raise
                break
            met.append((exchange, live.bound, live.asleep, exchange.age, late))
        while met:
            count = 1 if self._whole is None else self._alike(met, k)
            ready = self._in_a_row(met[:count], k)
            self._met |= {k + number: (*met[number], ready) for number in range(count)}
            met, k = met[count:], k + count

    def _alike(self, met: list[Met], first: int) -> int:
        """How many rounds, from `first` on, have the same inboxes and sleepers, so that they may be one call."""
        exchange, _, asleep, _, _ = met[0]
        for count in range(1, len(met)):
            if met[count][0] is not exchange or self._known(*met[count]) is None:
                return count
            if met[count][2] is not asleep and not np.array_equal(met[count][2], asleep):
                return count
            if 0.0 in (self.schedule(first), self.schedule(first + count)):
                return count
        return len(met)

    def _known(self, exchange: LiveExchange, bound: Any, asleep: Any, age: Any, late: Late | None) -> Any:
        """What is prepared for a round."""
        return None if late is None else exchange.prepared.get(len(late[1]))

    def _in_a_row(self, met: list[Met], first: int) -> Ready | None:
        """What a compiled call of these rounds needs."""
        self.exchange, _, asleep, age, _ = met[0]
        prepared = self._known(*met[0])
        if prepared is None or prepared.kernel is None or self._whole is None:
            return None
        if age is None:
            return self._arguments(prepared, first, len(met), None, asleep)
        late = [each[4] for each in met if each[4] is not None]
        index = [self._known(*each).refill(one[0]).known()[2] for each, one in zip(met, late, strict=True)]
        numbers = [one[1] for one in late]
        begin = np.cumsum([0, *map(len, numbers)])
        return self._arguments(prepared, first, len(met), (np.stack(index), np.concatenate(numbers), begin), asleep)

    def _plan(self, live: Live, exchange: LiveExchange, round: Round, number: int) -> Late | None:
        """What is known from the links alone: the lies of a fixed attack, the same in any round, and what arrives.

        Returns what is late in the round of this number, if that is known.
        """
        self.exchange, self.bound = exchange, live.bound
        if exchange.lies:
            scene = self.scene = exchange.scene
            if exchange.plan is None and self.attack.fixed:
                exchange.plan = renewed(self.attack_state, lambda: self.attack.init(scene))
            self.attack_state = self.attack_state if exchange.plan is None else exchange.plan
        if not (self._may_prepare and self._same_lies):
            return None
        fresh = self._fresh(exchange, round)
        if exchange.age is None:
            if 0 not in exchange.prepared:
                self._prepared_for(fresh)
            return fresh.index, NOBODY
        index, numbers = exchange.find_late(fresh, len(self.half), number)
        if self._whole is not None and len(numbers) not in exchange.prepared:
            rows = self.half[:1].repeat(len(numbers), axis=0)  # so many of them
            self._prepared_for(Delivery(index, fresh.present, rows, combination=fresh.combination))
        return index, numbers
