"""The inboxes of one round of a changing network: slots, weights and the liars in them, filled by compiled code.

Weights are those of the network's scheme on the round's own links: Metropolis-Hastings with the degrees of this round,
equal weights over what arrives. Explicit weights are kept on the links that are left, the rest is the receiver's own.
A round costs O(E + R K).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from byzmesh.attacks.base import Forged, Scene
from byzmesh.compiled import exact
from byzmesh.networks import Links, Network
from byzmesh.networks.processes.base import Meeting
from byzmesh.networks.weights import EXPLICIT, mixing_weights
from byzmesh.records import made
from byzmesh.rules.gram import strategy
from byzmesh.rules.gram.pool import peaks, stacked
from byzmesh.rules.prepared import Prepared
from byzmesh.simulation.exchange import Delivery, Exchange
from byzmesh.simulation.late import Past, late_slots
from byzmesh.simulation.live_scene import Stage, round_scene
from byzmesh.types import Floats, Integers

METROPOLIS = 0
_KERNEL = {"metropolis-hastings": METROPOLIS, "equal": 1, "max-degree": 2, "lazy": 3}
"""Weight schemes that are computed while the slots are filled."""
_GIVEN = 4
_NONE, _NO_AGES = np.zeros(0), np.zeros(0, np.int64)


class LiveExchange(Exchange):
    """The inboxes of one round; an `Exchange` for the links of that round.

    liars     (R,) how many of the senders of each inbox lie
    plan      state of an attack that is fixed by these links, once it is known
    fresh     what arrives if nothing is late, once it is known and the same in every round with these links
    prepared  what a rule does in every round with these links, fixed lies and so many old messages, once it is known
    age       (E,) of the round's messages, None if nothing can be late: it and `late` differ between the rounds
    late      what `find_late` says of the round, once it is known
    """

    plan: Any = None
    fresh: Delivery | None = None
    prepared: dict[int, Prepared | None]
    late: tuple[Integers, Integers] | None = None
    _scene: Scene | None = None

    def __init__(self, stage: Stage, meeting: Meeting, past: Past) -> None:
        links, acting = meeting.links, stage.acting
        self.network, self.links, self.row, self._stage, self._past = acting, links, stage.row, stage, past
        self.receiver = acting.honest
        shape = (len(self.receiver), 1 + _most(links.start, self.receiver))
        self.sender, self.honest_row = np.empty(shape, np.int64), np.empty(shape, np.int64)
        self.valid, self.lying = np.empty(shape, np.bool_), np.empty(shape, np.bool_)
        self.weight, self.liars = np.empty(shape), np.empty(len(self.receiver), np.int64)
        code = _KERNEL.get(acting.weights, _GIVEN)
        given = _link_weights(stage.network, links) if code == _GIVEN else _NONE
        self.lies, self.victims, self.near = _fill(
            links.start, links.sender, self.row, stage.network.lies, self.receiver, code, given, self.sender,
            self.honest_row, self.valid, self.lying, self.liars, self.weight,
        )  # fmt: skip
        self.age: Integers | None = meeting.age
        self.prepared = {}

    @cached_property
    def degree(self) -> Integers:  # type: ignore[override]
        """(R,) number of messages of each receiver."""
        return self.links.degree[self.receiver]

    @property
    def metropolis(self) -> Floats:
        """(R, K) Metropolis-Hastings weights of the round's links, whatever the receivers use."""
        if self.network.weights == "metropolis-hastings":
            return self.weight
        weight = np.empty(self.weight.shape)
        _weigh(self.links.start, self.links.sender, self.receiver, METROPOLIS, _NONE, weight)
        return weight

    @property
    def scene(self) -> Scene:
        """The round's links as liars know them."""
        if self._scene is None:  # without the lock of a cached_property
            slots = (self.sender, self.honest_row, self.valid, self.lying)
            sizes = (self.lies, self.victims, self.near)
            self._scene = round_scene(self._stage, self.receiver, slots, self.weight, self.metropolis, sizes)
        return self._scene

    def deliver(self, forged: Forged | None, half: Any) -> Delivery:
        """As `Exchange.deliver`; messages that are late are older rows."""
        return self.with_late(super().deliver(forged, half), half)

    def find_late(self, fresh: Delivery, rows: int, round: int) -> tuple[Integers, Integers]:
        """(R, K) the pool row in each slot, and which rows of the past are those of the late ones, in a round.

        fresh  what would arrive if nothing were late; rows  half steps in front of it in the pool
        """
        index, turn, age = fresh.index.copy(), round % (self._past.oldest + 1), np.asarray(self.age)
        before = rows + (0 if fresh.messages is None else len(fresh.messages))
        before += 0 if fresh.combination is None else len(fresh.combination[0])
        slots = (self.receiver, self.lying, self.honest_row)
        return index, late_slots(self.links.start, age, *slots, self._past.oldest, turn, before, index)

    def with_late(self, fresh: Delivery, half: Any) -> Delivery:
        """What arrives in this round, given what would if nothing were late."""
        past, messages, combination = self._past, fresh.messages, fresh.combination
        if self.age is None or not past.count:
            return fresh
        index, numbers = self.find_late(fresh, len(half), past.turn) if self.late is None else self.late
        if not len(numbers):
            return fresh
        peak = past.peak
        if past.named and messages is None and peak is not None and isinstance(half, np.ndarray):
            receivers, slots = index.shape
            before = len(half) + (0 if combination is None else len(combination[0]))
            if strategy.blocks_cost_less(before + len(numbers), len(half) + len(numbers), receivers, slots + 1):
                old, index = index >= before, index.copy()
                index[old] = before + numbers[index[old] - before]
                return Delivery(index, fresh.present, past.flat, combination=combination, peak=peak)
        if messages is not None and messages.dtype != half.dtype:
            return Delivery(index, fresh.present, stacked(messages, past.rows(numbers)), combination=combination)
        known = None
        if peak is not None:
            known = peak[numbers] if messages is None else np.concatenate([peaks(messages), peak[numbers]])
        told = {"messages": past.rows(numbers, messages), "combination": combination, "peak": known}
        return made(Delivery, index=index, present=fresh.present, **told)


def _link_weights(network: Network, links: Links) -> Floats:
    """(E,) weights of a round's links under a scheme that no kernel computes, or explicit ones."""
    if network.weights != EXPLICIT:
        return mixing_weights(links, network.weights).link
    return network.link_weight[network.links.find(links.receiver, links.sender)]


@exact
def _most(start: Any, receivers: Any) -> Any:
    """The largest number of messages in an inbox."""
    most = 0
    for receiver in receivers:
        most = max(most, start[receiver + 1] - start[receiver])
    return most


@exact
def _fill(
    start: Any,
    senders: Any,
    row: Any,
    lies: Any,
    receivers: Any,
    code: Any,
    given: Any,
    sender: Any,
    honest_row: Any,
    valid: Any,
    lying: Any,
    liars: Any,
    weight: Any,
) -> Any:
    """Slots (R, K) of the receivers: own first, then senders ascending; liars (R,); weight (R, K) as in `_weigh`.

    Returns the number of lying slots, of receivers with one, and of the most honest senders to one of these.
    """
    _weigh(start, senders, receivers, code, given, weight)
    pairs, victims, near = 0, 0, 0
    for r in range(len(receivers)):
        node = receivers[r]
        degree = start[node + 1] - start[node]
        sender[r, 0], honest_row[r, 0], valid[r, 0], lying[r, 0] = node, row[node], True, False
        known, told = 0, 0
        for slot in range(1, sender.shape[1]):
            heard = slot <= degree
            other = senders[start[node] + slot - 1] if heard else -1
            false = heard and row[other] < 0
            sender[r, slot], valid[r, slot], lying[r, slot] = other, heard, false
            honest_row[r, slot] = row[other] if heard and not false else 0
            known += heard and lies[other]
            told += false
        liars[r] = known
        if told:
            pairs, victims, near = pairs + told, victims + 1, max(near, degree - told)
    return pairs, victims, near


@exact
def _weigh(start: Any, senders: Any, receivers: Any, code: Any, given: Any, weight: Any) -> None:
    """weight (R, K) of the slots under a scheme of `_KERNEL`, or as `given` (E,)."""
    most = 0
    for node in range(len(start) - 1):
        most = max(most, start[node + 1] - start[node])
    for r in range(len(receivers)):
        node = receivers[r]
        degree = start[node + 1] - start[node]
        total = 0.0
        for slot in range(1, weight.shape[1]):
            if slot > degree:
                weight[r, slot] = 0.0
                continue
            entry = start[node] + slot - 1
            if code == 4:
                share = given[entry]
            elif code == 1:
                share = 1.0 / (1.0 + degree)
            elif code == 2:
                share = 1.0 / (1.0 + most)
            else:
                share = 1.0 / (1.0 + max(degree, start[senders[entry] + 1] - start[senders[entry]]))
                if code == 3:
                    share /= 2.0
            weight[r, slot] = share
            total += share
        weight[r, 0] = max(1.0 - total, 0.0)
