"""A network that changes from round to round, as the simulator sees it: inboxes, lies and bounds of one round.

The links of a round come from its processes (`networks.processes`); the slots, the weights and the number of liars in
each inbox are then filled by compiled code, in O(E + R K). Nothing here is used by a run without a process.

Weights are those of the network's scheme on the round's own links: Metropolis-Hastings with the degrees of this round,
equal weights over what arrives. Explicit weights are kept on the links that are left, the rest is the receiver's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from byzmesh.attacks.base import Forged, Scene
from byzmesh.compiled import exact
from byzmesh.errors import ConfigError
from byzmesh.networks import Links, Network, fiedler_vector
from byzmesh.networks.processes import Meetings, Process
from byzmesh.networks.processes.base import Meeting
from byzmesh.networks.processes.quantile import Quantile
from byzmesh.networks.weights import EXPLICIT, mixing_weights
from byzmesh.round import Round
from byzmesh.rules.aggregate import check_feasible
from byzmesh.rules.base import UNBOUNDED, Inbox, Rule
from byzmesh.rules.gram.pool import Pool
from byzmesh.rules.inbox import make_inbox, sent_by
from byzmesh.rules.interop import from_host, to_host
from byzmesh.simulation.edges import Edges
from byzmesh.simulation.exchange import Exchange
from byzmesh.sparse import DENSE
from byzmesh.types import Booleans, Floats, Integers

_KERNEL = {"metropolis-hastings": 0, "equal": 1, "max-degree": 2, "lazy": 3}
"""Weight schemes that are computed while the slots are filled."""
_GIVEN = 4
NOBODY = np.zeros(0, np.int64)
"""Who sleeps in most rounds."""


class LiveExchange(Exchange):
    """The inboxes of one round; as an `Exchange`, for the links of that round."""

    def __init__(self, live: Live, meeting: Meeting) -> None:
        links, acting = meeting.links, live.acting
        self.network, self.links, self.live = acting, links, live
        self.receiver = acting.honest
        shape = (len(self.receiver), 1 + _most(links.start, self.receiver))
        self.sender, self.honest_row = np.empty(shape, np.int64), np.empty(shape, np.int64)
        self.valid, self.lying = np.empty(shape, np.bool_), np.empty(shape, np.bool_)
        self.weight, self.liars = np.empty(shape), np.empty(len(self.receiver), np.int64)
        self.age = None if meeting.age is None else np.zeros(shape, np.int64)
        code = _KERNEL.get(acting.weights, _GIVEN)
        _fill(
            links.start,
            links.sender,
            live.row,
            live.lies,
            self.receiver,
            code,
            live.link_weights(links) if code == _GIVEN else _NONE,
            _NO_AGES if meeting.age is None else meeting.age,
            (self.sender, self.honest_row, self.valid, self.lying, self.weight, self.liars),
            _NO_SLOTS if self.age is None else self.age,
        )

    @cached_property
    def degree(self) -> Integers:  # type: ignore[override]
        """(R,) number of messages of each receiver."""
        return self.links.degree[self.receiver]

    @cached_property
    def scene(self) -> Scene:
        """The round's links as liars know them. The Fiedler vector stays that of the network itself."""
        network = self.live.network
        pairs, count, near = _scene_sizes(self.valid, self.lying)
        liar, victim, place = (np.empty(pairs, np.int64) for _ in range(3))
        victims, neighbour = np.empty(count, np.int64), np.empty((count, near), np.int64)
        weights = []
        for table in (self.weight, self.metropolis):
            around, own, lie = np.empty((count, near)), np.empty(count), np.empty(count)
            slots = (self.sender, self.honest_row, self.valid, self.lying, table)
            _scene(slots, self.receiver, (liar, victim, place, victims, neighbour, around, own, lie))
            weights.append((around, own, lie))
        return Scene(
            honest=network.honest,
            byzantine=network.byzantine,
            liar=liar,
            victim=victim,
            place=place,
            victims=victims,
            neighbour=neighbour,
            weight=weights[0][0],
            own_weight=weights[0][1],
            lie_weight=weights[0][2],
            metropolis_weight=weights[1][0],
            metropolis_own=weights[1][1],
            metropolis_lie=weights[1][2],
            fiedler=self.live.fiedler,
        )

    @cached_property
    def metropolis(self) -> Floats:
        """(R, K) Metropolis-Hastings weights of the round's links, whatever the receivers use."""
        if self.network.weights == "metropolis-hastings":
            return self.weight
        weight = np.empty(self.weight.shape)
        kinds = (self.sender, self.honest_row, self.valid, self.lying)
        out = (*(np.empty_like(slots) for slots in kinds), weight, np.empty_like(self.liars))
        live, links = self.live, self.links
        _fill(links.start, links.sender, live.row, live.lies, self.receiver, 0, _NONE, _NO_AGES, out, _NO_SLOTS)
        return weight

    def slots(self, forged: Forged | None) -> tuple[Integers, Booleans]:
        """(index, present) (R, K): the pool row in each slot, and whether a message arrived."""
        if len(self.receiver) == self.network.n:
            return self.honest_row, self.valid
        if forged is not None and forged.liar is self.scene.liar and forged.victim is self.scene.victim:
            index = np.empty_like(self.honest_row)
            _with_lies(self.honest_row, self.lying, forged.row, index)
            return index, self.valid
        index, present = np.where(self.lying, 0, self.honest_row), self.valid & ~self.lying
        if forged is None or not len(forged):
            return index, present
        row, slot = np.nonzero(self.lying)
        order = np.lexsort((forged.liar, forged.victim))
        keys = (forged.victim * self.network.n + forged.liar)[order]
        wanted = self.receiver[row] * self.network.n + self.sender[row, slot]
        spot = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        told = keys[spot] == wanted
        index[row[told], slot[told]] = len(self.receiver) + forged.row[order[spot[told]]]
        present[row[told], slot[told]] = True
        return index, present

    def inbox(
        self,
        rule: Rule,
        half: Any,
        forged: Forged | None,
        *,
        f: Integers,
        b: Floats | None = None,
        round: Round,
        previous: Any = None,
        loss: Callable[[Any], Floats] | None = None,
        peak: Floats | None = None,
    ) -> Inbox:
        """As `Exchange.inbox`; messages that are late are older rows."""
        index, present = self.slots(forged)
        messages = combination = None
        if forged is not None and len(forged):
            messages, mixed = forged.rows, forged.combination
            combination = None if mixed is None else (mixed.index, mixed.coefficient)
        if self.age is not None and (late := (self.age > 0) & ~self.lying).any():
            sent = sent_by(rule, half, previous)
            fresh = None if messages is combination is None else Pool(sent, messages, combination).dense_messages()
            rows, place = np.unique(self.age[late] * len(half) + self.honest_row[late], return_inverse=True)
            older = self.live.sent_before(rows // len(half), rows % len(half), half)
            index = index.copy()
            index[late] = len(half) + (0 if fresh is None else len(fresh)) + place
            messages, combination = older if fresh is None else _stacked(fresh, older), None
        return make_inbox(
            rule,
            half,
            weight=self.weight,
            f=f,
            b=b,
            receiver=self.receiver,
            messages=messages,
            combination=combination,
            index=index,
            expected=self.valid,
            present=present,
            round=round,
            previous=previous,
            loss=loss,
            peak=peak,
        )


class Live:
    """The rounds of a simulation on a changing network: `meet` goes to one of them.

    network  with its liars
    acting   the network of the workers that aggregate: everybody, if the liars follow the protocol

    >>> import byzmesh as bm
    >>> run = bm.prepare(problem="quadratic", network={"name": "complete", "n": 6}, process="random-pull", rounds=3)
    >>> run.step(), run.exchange.sender.shape
    (True, (6, 4))
    """

    def __init__(
        self, chosen: Sequence[Process], network: Network, acting: Network, rule: Rule, f: Any, rounds: int, seed: int
    ) -> None:
        self.meetings = Meetings(chosen, network.links, network.lies, seed)
        self.network, self.acting, self.rule, self.f = network, acting, rule, f
        self.lies = network.lies
        if network.weights == EXPLICIT and any(one.replaces for one in chosen):
            raise ConfigError(
                f"process {chosen[0].name} replaces the links, so weights cannot be numbers; name a scheme"
            )
        self.row = np.full(network.n, -1, np.int64)
        self.row[acting.honest] = np.arange(len(acting.honest))
        self.past: list[Any] = []
        self.fiedler = lambda: fiedler_vector(network.sparse_mixing(network.honest))
        self._fixed = self._bounds(rounds)

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
        exchange = LiveExchange(self, meeting)
        self.asleep = NOBODY if meeting.active.all() else np.flatnonzero(~meeting.active[self.acting.honest])
        if self._fixed is not None:
            self.bound = self._fixed
            if self.acting is not self.network:  # liars that follow the protocol know each other
                self.bound = np.where(self.lies[exchange.receiver], exchange.liars, self._fixed)
        elif self.f == "max":
            honest = exchange.liars[~self.lies[exchange.receiver]]
            self.bound = np.full(len(exchange.liars), honest.max())
        else:
            self.bound = exchange.liars
        return exchange

    def link_weights(self, links: Links) -> Floats:
        """(E,) weights of a round's links under a scheme that no kernel computes, or explicit ones."""
        if self.network.weights != EXPLICIT:
            return mixing_weights(links, self.network.weights).link
        return self.network.link_weight[self.network.links.find(links.receiver, links.sender)]

    def remember(self, half: Any, previous: Any) -> None:
        """Keep what was sent in this round for as long as a message may be late."""
        if self.meetings.oldest:
            sent = sent_by(self.rule, half, previous)
            kept = sent.copy() if isinstance(sent, np.ndarray) else sent.clone()
            self.past = [kept, *self.past[: self.meetings.oldest - 1]]

    def sent_before(self, age: Integers, row: Integers, like: Any) -> Any:
        """(Q, D) what these workers sent so many rounds ago, 1 or more."""
        older = like[:0] if not self.past else self.past[0][:0]
        rows = np.empty((len(age), older.shape[1]), to_host(older).dtype)
        for ago, sent in enumerate(self.past, 1):
            rows[age == ago] = to_host(sent)[row[age == ago]]
        return from_host(rows, like)

    def arrays(self) -> dict[str, Any]:
        """What the next round needs of earlier ones, for a checkpoint."""
        return {"process/past": np.stack([to_host(sent) for sent in self.past])} if self.past else {}

    def resume(self, arrays: dict[str, Any], like: Any) -> None:
        """Continue from what `arrays` returned."""
        self.past = [from_host(sent, like) for sent in arrays.get("process/past", ())]


def _stacked(first: Any, second: Any) -> Any:
    if isinstance(first, np.ndarray):
        return np.concatenate([first, second])
    from array_api_compat import array_namespace

    return array_namespace(first).concat([first, second], axis=0)


@dataclass
class LiveCounts:
    """Running sums over pairs (R, n), for networks in which a worker may hear anybody; `EdgeCounts` has the words."""

    receiver: Integers
    trust: Floats
    cut: Integers
    came: Integers

    @classmethod
    def start(cls, live: Live, **counted: Any) -> LiveCounts | None:
        """Zeros, or the arrays of a checkpoint; None for networks too large for (n, n) arrays."""
        receiver, n = live.acting.honest, live.network.n
        if n > DENSE:
            return None
        shape = (len(receiver), n)
        zero = {"trust": np.zeros(shape), "cut": np.zeros(shape, np.int64), "came": np.zeros(shape, np.int64)}
        return cls(receiver, **(counted or zero))

    def add(self, coefficient: Floats, present: Booleans, sender: Integers) -> None:
        """Count one round."""
        _add(coefficient, present, sender, self.trust, self.cut, self.came)

    def arrays(self) -> dict[str, Any]:
        """The arrays for a checkpoint."""
        return {"trust": self.trust, "cut": self.cut, "came": self.came}

    def edges(self, byzantine: Integers) -> Edges:
        """The sums per pair of which a message arrived; receivers that lie are left out."""
        row, sender = np.nonzero((self.came > 0) & ~np.isin(self.receiver, byzantine)[:, None])
        came = self.came[row, sender]
        return Edges(
            sender=sender,
            receiver=self.receiver[row],
            cut=self.cut[row, sender],
            rounds=came,
            trust=self.trust[row, sender] / came,
            lying=np.isin(sender, byzantine),
        )


_NONE, _NO_AGES = np.zeros(0), np.zeros(0, np.int64)
_NO_SLOTS = np.zeros((0, 0), np.int64)


@exact
def _fill(
    start: Any,
    senders: Any,
    row: Any,
    lies: Any,
    receivers: Any,
    code: Any,
    given: Any,
    ages: Any,
    out: Any,
    age: Any,
) -> None:
    """Slots (R, K) of the receivers: own first, then senders ascending, -1 where padded; weights; liars (R,)."""
    sender, place, valid, lying, weight, liars = out
    slots = sender.shape[1]
    most = 0
    for node in range(len(start) - 1):
        most = max(most, start[node + 1] - start[node])
    for r in range(len(receivers)):
        node = receivers[r]
        degree = start[node + 1] - start[node]
        sender[r, 0], place[r, 0], valid[r, 0], lying[r, 0] = node, row[node], True, False
        count, total = 0, 0.0
        for slot in range(1, slots):
            entry = start[node] + slot - 1
            if slot > degree:
                sender[r, slot], place[r, slot], valid[r, slot], lying[r, slot] = -1, 0, False, False
                weight[r, slot] = 0.0
                continue
            other = senders[entry]
            sender[r, slot], place[r, slot], valid[r, slot] = other, max(row[other], 0), True
            lying[r, slot] = row[other] < 0
            count += lies[other]
            if code == 4:
                share = given[entry]
            elif code == 1:
                share = 1.0 / (1.0 + degree)
            elif code == 2:
                share = 1.0 / (1.0 + most)
            else:
                share = 1.0 / (1.0 + max(degree, start[other + 1] - start[other]))
                if code == 3:
                    share /= 2.0
            weight[r, slot] = share
            total += share
            if len(ages):
                age[r, slot] = ages[entry]
        weight[r, 0] = max(1.0 - total, 0.0)
        liars[r] = count


@exact
def _most(start: Any, receivers: Any) -> Any:
    """The largest number of messages in an inbox."""
    most = 0
    for receiver in receivers:
        most = max(most, start[receiver + 1] - start[receiver])
    return most


@exact
def _with_lies(place: Any, lying: Any, row: Any, index: Any) -> None:
    """Pool rows of all slots; pairs and lying slots are both sorted by receiver, then by sender."""
    pair = 0
    for r in range(place.shape[0]):
        for slot in range(place.shape[1]):
            index[r, slot] = place[r, slot]
            if lying[r, slot]:
                index[r, slot] = place.shape[0] + row[pair]
                pair += 1


@exact
def _scene_sizes(valid: Any, lying: Any) -> Any:
    """Number of pairs of a liar and a victim, of victims, and of the most honest neighbours of a victim."""
    pairs, victims, near = 0, 0, 0
    for r in range(valid.shape[0]):
        lies, heard = 0, 0
        for slot in range(1, valid.shape[1]):
            lies += lying[r, slot]
            heard += valid[r, slot]
        if lies:
            pairs, victims, near = pairs + lies, victims + 1, max(near, heard - lies)
    return pairs, victims, near


@exact
def _scene(slots: Any, receivers: Any, out: Any) -> None:
    """A `Scene` from the slots of the inboxes: see there."""
    sender, row, valid, lying, weight = slots
    liar, victim, place, victims, neighbour, around, own, lie = out
    pair, spot = 0, 0
    for r in range(sender.shape[0]):
        first, heard, total = pair, 0, 0.0
        for slot in range(1, sender.shape[1]):
            if lying[r, slot]:
                liar[pair], victim[pair], place[pair] = sender[r, slot], receivers[r], spot
                total += weight[r, slot]
                pair += 1
        if pair == first:
            continue
        for slot in range(1, sender.shape[1]):
            if valid[r, slot] and not lying[r, slot]:
                neighbour[spot, heard], around[spot, heard] = row[r, slot], weight[r, slot]
                heard += 1
        for rest in range(heard, neighbour.shape[1]):
            neighbour[spot, rest], around[spot, rest] = -1, 0.0
        victims[spot], own[spot], lie[spot] = r, weight[r, 0], total
        spot += 1


@exact
def _add(coefficient: Any, present: Any, sender: Any, trust: Any, cut: Any, came: Any) -> None:
    for receiver in range(present.shape[0]):
        for slot in range(1, present.shape[1]):
            if present[receiver, slot]:
                other = sender[receiver, slot]
                came[receiver, other] += 1
                trust[receiver, other] += coefficient[receiver, slot]
                if coefficient[receiver, slot] == 0.0:
                    cut[receiver, other] += 1
