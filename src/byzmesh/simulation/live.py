"""The rounds of a simulation on a network that changes from round to round: links, sleepers and bounds of each.

The links of a round come from its processes (`networks.processes`). Nothing here is used by a run without a process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from byzmesh.compiled import exact
from byzmesh.errors import ConfigError
from byzmesh.networks.processes import Meetings, Process
from byzmesh.networks.processes.base import Meeting
from byzmesh.networks.processes.quantile import Quantile
from byzmesh.networks.weights import EXPLICIT
from byzmesh.rules.aggregate import check_feasible
from byzmesh.rules.base import UNBOUNDED, Choosing, Rule
from byzmesh.simulation.late import Past
from byzmesh.simulation.live_exchange import LiveExchange
from byzmesh.simulation.live_scene import Stage
from byzmesh.training.local_round import LocalRound
from byzmesh.types import Floats, Integers

SMALL = 4096
"""Graphs of at most this many links are kept."""
KNOWN = 256
"""So many graphs are kept at a time."""
AHEAD = 16
"""So many rounds of a small network are prepared at a time."""
NOBODY = np.zeros(0, np.int64)
"""Who sleeps in most rounds."""


class Live:
    """The rounds of a simulation on a changing network: `meet` goes to one of them.

    >>> import byzmesh as bm
    >>> run = bm.prepare(problem="quadratic", network={"name": "complete", "n": 6}, process="random-pull", rounds=3)
    >>> run.step(), run.exchange.sender.shape
    (True, (6, 4))
    """

    def __init__(self, chosen: Sequence[Process], stage: Stage, rule: Rule, f: Any, rounds: int, seed: int) -> None:
        network = stage.network
        self.meetings = Meetings(chosen, network.links, network.lies, seed)
        self.stage, self.network, self.acting, self.rule, self.f = stage, network, stage.acting, rule, f
        if network.weights == EXPLICIT and any(one.replaces for one in chosen):
            raise ConfigError(
                f"process {chosen[0].name} replaces the links, so weights cannot be numbers; name a scheme"
            )
        if network.samples is not None:
            raise ConfigError("weights by samples are for links that stay; leave out process, or objective: samples")
        self.past = Past(self.meetings.oldest)
        parts = rule.consists_of
        self.past.named = isinstance(parts, Choosing) and parts.apply is rule.apply
        self._same: LiveExchange | None = None
        self._known: dict[bytes, LiveExchange] | None = None
        if self.meetings.recurs and len(network.links.sender) <= SMALL:
            self._known = {}
        self._fixed = self._bounds(rounds)
        self.ahead = max(1, min(AHEAD, SMALL // max(1, len(network.links.sender))))
        """How many rounds are prepared at a time: in a row they cost less than one between two rounds."""

    def _bounds(self, rounds: int) -> Integers | None:
        """(R,) f of every receiver if it is the same in every round, checked where the number of messages is known."""
        if isinstance(self.f, str) and self.f in ("exact", "max"):
            return None
        if self.f == "tolerable" or self.network.weight_bounds(self.f) is not None:
            raise ConfigError("f tolerable and b follow from weights, which a process changes; give f, or quantile")
        network, honest, degree = self.network, self.network.honest, self.meetings.degree
        quantile = Quantile.of(self.f)
        if quantile is None:
            bound = network.bounds(self.f)
        else:
            feasible = self.rule.feasible
            resisted = (lambda count: UNBOUNDED) if feasible is None else feasible.resisted
            bound = quantile.bounds(self.meetings.processes, network, rounds, resisted, self.rule.name)
        if degree is not None:
            check_feasible(self.rule, bound, degree[honest], honest)
        whole = np.zeros(network.n, np.int64)
        whole[honest] = bound
        return whole[self.acting.honest]

    def meet(self, round: int) -> LiveExchange:
        """The inboxes of a round; `asleep` says who does not take part, `bound` how many may lie."""
        meeting = self.meetings.at(round)
        exchange = self._exchange(meeting)
        self.asleep = NOBODY
        if meeting.active is not self.meetings.everybody:
            asleep = np.empty(len(self.acting.honest), np.int64)
            self.asleep = asleep[: _sleepers(meeting.active, self.acting.honest, asleep)]
        lies = self.network.lies
        if self._fixed is not None:
            self.bound = self._fixed
            if self.acting is not self.network:  # liars that follow the protocol know each other
                self.bound = np.where(lies[exchange.receiver], exchange.liars, self._fixed)
        elif self.f == "max":
            self.bound = np.full(len(exchange.liars), exchange.liars[~lies[exchange.receiver]].max())
        else:
            self.bound = exchange.liars
        return exchange

    def _exchange(self, meeting: Meeting) -> LiveExchange:
        """The inboxes of a round; those of a graph that has come before, with all that was prepared for it."""
        if self._same is None or self._same.links is not meeting.links:
            self._same = self._of_graph(meeting)
        self._same.age = meeting.age
        return self._same

    def _of_graph(self, meeting: Meeting) -> LiveExchange:
        if self._known is None:
            return LiveExchange(self.stage, meeting, self.past)
        graph = meeting.links.start.tobytes() + meeting.links.sender.tobytes()
        if graph not in self._known:
            if len(self._known) == KNOWN:
                self._known.clear()
            self._known[graph] = LiveExchange(self.stage, meeting, self.past)
        return self._known[graph]

    def begin(self, round: int, local: LocalRound, models: Any) -> None:
        """Let the half steps from these models be written where they are kept, if messages may be late."""
        if self.past.oldest:
            place = self.past.begin(round, models)
            if self.rule.sends == "half":
                local.write_to(place)

    def remember(self, half: Any, peak: Floats | None, previous: Any) -> None:
        """Keep what was sent in this round, if messages may be late."""
        if self.past.oldest:
            sent = (previous, None) if self.rule.sends == "start" else (half, peak)
            self.past.remember(*sent)


@exact
def _sleepers(active: Any, receiver: Any, asleep: Any) -> Any:
    """Rows of the receivers that are not active, into `asleep`; how many there are."""
    count = 0
    for row in range(len(receiver)):
        if not active[receiver[row]]:
            asleep[count] = row
            count += 1
    return count
