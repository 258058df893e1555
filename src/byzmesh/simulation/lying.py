"""What arrives in a round: the honest workers' half steps and what the liars make of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from byzmesh.attacks.base import Attack, Forged, Ranks, State, Weigh, forged_by, unchanged
from byzmesh.attacks.parts import planned, send_as_planned
from byzmesh.attacks.scene import make_view
from byzmesh.round import Round
from byzmesh.rules.base import Inbox
from byzmesh.rules.inbox import sent_by
from byzmesh.rules.interop import from_host, to_host
from byzmesh.simulation.exchange import Delivery, Exchange
from byzmesh.simulation.live_exchange import LiveExchange
from byzmesh.simulation.parts import RUNNING, Parts
from byzmesh.simulation.trials import ranks_of, trials


class Lying(Parts):
    """The messages of a round."""

    @property
    def _lies(self) -> bool:
        """Whether messages are forged."""
        return self.exchange.lies > 0

    @property
    def _same_lies(self) -> bool:
        """Whether the same links bring the same lies, as combinations of honest models, and no attack has to watch."""
        return self.courier is None and (self.attack.fixed or not (self._lies or self._watches))

    @property
    def _watches(self) -> bool:
        """Whether the attack remembers something of rounds in which nobody hears a liar."""
        return self.live is not None and self.attack.observe is not unchanged

    def _deliver(self, round: Round) -> Delivery:
        """What arrives in a round, with its lies."""
        exchange = self.exchange
        if not isinstance(exchange, LiveExchange) or not self._same_lies:
            if self._watches and not self._lies:
                self._watch(round)
            return self._delivered(self._forge(round) if self._lies else None)
        return exchange.with_late(self._fresh(exchange, round), self.half)

    def _fresh(self, exchange: LiveExchange, round: Round) -> Delivery:
        """What would arrive in a round if nothing were late, where the same links bring the same lies."""
        if exchange.fresh is None:
            if not self._lies:
                told = None
            elif self.attack.forge is send_as_planned:  # whatever the models are
                told = planned(self.scene, self.attack_state, self.half)
            else:
                told = self._forge(round)
            exchange.fresh = Exchange.deliver(exchange, told, self.half)
        return exchange.fresh

    def _delivered(self, forged: Forged | None) -> Delivery:
        if self.courier is None:
            return self.exchange.deliver(forged, self.half)
        return self.courier.deliver(self.exchange, forged, self.half, self.bound)

    def _inbox(self, delivery: Delivery, round: Round) -> Inbox:
        """The inboxes of the workers after their half steps."""
        return self.exchange.inbox(
            self.rule,
            self.half,
            delivery,
            f=self.bound,
            b=self.weight_bound,
            round=round,
            previous=self.local_round.shown(self.models),
            loss=self.local_round.losses(round.number) if self.rule.needs_loss else None,
            peak=self.local_round.peak,
        )

    def _watch(self, round: Round) -> None:
        """Let the attack see a round of a changing network in which nobody hears a liar."""
        before = self.local_round.shown(self.models)
        view = make_view(to_host(self._sent(before)), self.scene, round, before=to_host(before))
        self.attack_state = self.attack.observe(view, self.attack_state)

    def _sent(self, before: Any) -> Any:
        """(N, D) what the honest workers send, as it arrives."""
        return sent_by(self.rule, self.half, before) if self.courier is None else self.courier.arrived

    def _forge(self, round: Round) -> Forged:
        before = self.local_round.shown(self.models)
        sent = self._sent(before)
        respond = self._responder(sent, round) if self.attack.needs_response else None
        ranks = self.trials if isinstance(self.trials, Ranks) else None
        weigh = None if self.trials is None or isinstance(self.trials, Ranks) else self.trials(round)
        looks = self.attack.horizon and round.number % self.attack.horizon == 0
        foresee = self._foresee if looks else None
        view = make_view(to_host(sent), self.scene, round, respond, weigh, foresee, to_host(before), ranks)
        forged, self.attack_state = forged_by(self.attack, view, self.attack_state)
        if forged.rows is not None and not isinstance(sent, np.ndarray):
            return Forged(forged.liar, forged.victim, forged.row, sent, rows=from_host(forged.rows, sent))
        return forged

    def _responder(self, sent: Any, round: Round) -> Callable[[Any], Any]:
        """For attacks that try their messages on the rule: (F, D), a row per pair, or (V, D) -> models (N, D)."""
        scene = self.scene
        pairs = np.arange(len(scene.liar))

        def respond(messages: Any) -> Any:
            row = scene.place if len(messages) == len(scene.victims) else pairs
            forged = Forged(scene.liar, scene.victim, row, sent, rows=from_host(messages, sent))
            outcome, _ = self.rule.apply(self._inbox(self._delivered(forged), round), self.rule_state)
            return to_host(outcome.models)

        return respond

    def _trials(self) -> Callable[[Round], Weigh] | Ranks | None:
        if not self.attack.needs_response or self.channel:
            return None
        if isinstance(self.exchange, LiveExchange) and self.exchange.age is not None:
            return None  # trials know the models of this round only
        dtype = to_host(self.models[:0]).dtype
        by_rank = ranks_of(self.rule, self.exchange, self.scene, self.bound)
        return by_rank or trials(self.rule, self.exchange, self.scene, self.bound, dtype, self.weight_bound)

    def _foresee(self, attack: Attack, state: State, rounds: int) -> float:
        """`View.foresee`: a copy of the simulation as it was before this round's half steps runs ahead."""
        if id(attack) not in self.futures:
            self.futures[id(attack)] = replace(self, attack=attack)
        ahead = self.futures[id(attack)]
        ahead.models, ahead.round, ahead.status = self.models, self.round, RUNNING
        ahead.rule_state, ahead.attack_state = self.rule_state, state
        if self.live and ahead.live:
            ahead.live.past.like(self.live.past, self.round)
        if self.courier and ahead.courier:
            ahead.courier.state = self.courier_before
        ahead.local_round.start(ahead.models)
        ahead.local_round.resume({name: values.copy() for name, values in self.before.items()})
        for _ in range(rounds):  # past the end of the run too: a longer run must choose alike
            if not ahead.step():
                return np.inf
        measures = self.task.evaluate(ahead.models)
        harm = 1.0 - np.mean(measures["accuracy"]) if "accuracy" in measures else np.mean(measures["loss"])
        return float(harm)
