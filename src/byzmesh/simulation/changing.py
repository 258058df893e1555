"""The rounds of a changing network, prepared some at a time as far as they do not depend on the models."""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.attacks.state import renewed
from byzmesh.round import Round
from byzmesh.rules.interop import to_host
from byzmesh.simulation.aggregating import Aggregating
from byzmesh.simulation.live import Live
from byzmesh.simulation.live_exchange import LiveExchange
from byzmesh.types import Integers


class Changing(Aggregating):
    """Which links a round has, who sleeps in it, and what is known of it before its half steps."""

    _met: dict[int, tuple[LiveExchange, Integers, Integers, Any, Any, Any]]
    """Rounds that are prepared: inboxes, bounds, who sleeps, `LiveExchange.age` and `late`, `_arguments`."""

    def _meet(self, live: Live, k: int) -> Integers:
        """Go to the links of a round; who sleeps in it. An attack's plan is made anew, what it remembers is kept."""
        if k not in self._met:
            self._look_ahead(live, k)
        exchange, self.bound, asleep, age, late, self._ready = self._met.pop(k)
        exchange.age, exchange.late = age, late
        self.exchange, live.bound, live.asleep = exchange, self.bound, asleep
        live.begin(k, self.local_round, self.models)
        self.prepared = exchange.prepared.get(0) if exchange.age is None else None
        if exchange.lies:
            scene = self.scene = exchange.scene
            if exchange.plan is None:
                self.attack_state = renewed(self.attack_state, lambda: self.attack.init(scene))
            else:
                self.attack_state = exchange.plan
            self.trials = self._trials()
        return asleep

    def _look_ahead(self, live: Live, k: int) -> None:
        """Prepare the next rounds as far as they do not depend on the models; an error waits for its round."""
        self._met.clear()
        self.half, first = np.zeros_like(to_host(self.models[:, :1])), Round(total=self.rounds, seed=self.seed)
        for number in range(k, max(k + 1, min(k + live.ahead, self.rounds))):
            try:
                exchange = live.meet(number)
                late, ready = self._plan(live, exchange, first, number), None
                if exchange.age is None and 0 in exchange.prepared:
                    ready = self._arguments((exchange.prepared[0], None, None), live.asleep, 1, number)
            except Exception:
                if number == k:
                    raise
                return
            self._met[number] = exchange, live.bound, live.asleep, exchange.age, late, ready

    def _plan(self, live: Live, exchange: LiveExchange, round: Round, number: int) -> tuple[Integers, Integers] | None:
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
        if exchange.age is not None:
            return exchange.find_late(self._fresh(exchange, round), len(self.half), number)
        if 0 not in exchange.prepared:
            self._prepared_for(self._deliver(round))
        return None
