"""Many `Rounds` on a virtual clock: honest peers with their work and links, and liars who choose every moment.

No peers and no bytes, so a search may try hundreds of schedules. The liars see everything, the deadlines of their
victims too, and decide for every victim and round when their message arrives.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from byzmesh.peers.patience import Patience
from byzmesh.peers.rounds import Rounds

V = np.zeros(1)
PATIENCE = Patience(timeout=5.0, start=5.0, grace=0.0005, start_grace=0.05)
PROMPT, BRINK, JUST_LATE, SILENT = "prompt", "brink", "just late", "silent"
"""When a lie arrives: at once, just before the victim would end its round, just after, never; or a number: that many
milliseconds after the victim began to wait."""
MOVES: tuple[Any, ...] = (PROMPT, BRINK, JUST_LATE, SILENT, 2.0, 8.0, 30.0)
Lie = Callable[[int, int, int], Any]
"""(liar, victim, round) -> one of `MOVES`."""
Neighbours = Mapping[int, Iterable[int]]


def complete(n: int) -> Neighbours:
    return {i: [j for j in range(n) if j != i] for i in range(n)}


def ring(n: int, reach: int) -> Neighbours:
    """Everybody is linked to the nearest on both sides."""
    return {i: sorted({(i + step) % n for step in range(-reach, reach + 1)} - {i}) for i in range(n)}


def castles(k: int = 6) -> Neighbours:
    """Two complete halves; every peer is linked to the other half except for one peer."""
    return {i: [j for j in range(2 * k) if j != i and j != (i + k) % (2 * k)] for i in range(2 * k)}


def steps_to_all(neighbours: Neighbours, f: int, liars: frozenset[int] = frozenset()) -> int | None:
    """In how many steps a round spreads (docs/peers.md, "How far honest peers drift apart"); None if it does not.

    From any honest peer and any d - 3 f of its honest neighbours; each step adds who has more than f of them.
    """
    honest = {i: set(neighbours[i]) - liars for i in neighbours if i not in liars}
    longest = 0
    for i, near in honest.items():
        for first in itertools.combinations(sorted(near), max(0, len(list(neighbours[i])) - 3 * f)):
            reached, steps = {i, *first}, 0
            while len(reached) < len(honest):
                more = {j for j, others in honest.items() if j not in reached and len(others & reached) > f}
                if not more:
                    return None
                reached, steps = reached | more, steps + 1
            longest = max(longest, steps)
    return longest


@dataclass
class Play:
    """A network at work; `ends[i]` are the times at which honest peer i ended its rounds."""

    neighbours: Neighbours
    f: int | Mapping[int, int]
    liars: frozenset[int] = frozenset()
    dead: frozenset[int] = frozenset()
    lie: Lie = lambda liar, victim, round: PROMPT
    work: Callable[[int, int], float] = lambda peer, round: 0.008
    delay: Callable[[int, int, int], float] = lambda sender, receiver, round: 0.001
    patience: Patience = PATIENCE
    ends: dict[int, list[float]] = field(default_factory=dict)
    used: dict[tuple[int, int], int] = field(default_factory=dict)
    """(receiver, sender) -> rounds in which the sender's message counted."""
    sent: dict[int, int] = field(default_factory=dict)
    reached: dict[int, int] = field(default_factory=dict)
    gap: int = 0
    """Largest difference of rounds between two honest neighbours, measured when either ends a round after the start."""
    began: dict[int, list[float]] = field(default_factory=dict)
    """When each peer sent its first message of each round or a later one."""
    left_out: int = 0
    """Honest messages that came within a third of a usual round after enough answers, from an expected neighbour, and
    did not count in their round. Enough are d - 2 f, or all but f of those who answered or were heard lately."""

    def run(self, rounds: int = 200, seconds: float = 600.0) -> Play:
        """Until the first peer has ended that many rounds."""
        self.honest = [i for i in self.neighbours if i not in self.liars and i not in self.dead]
        self.queue: list[tuple[float, int, Callable[[float], None]]] = []
        self.count = 0
        self.rounds = {i: Rounds(list(self.neighbours[i]), self.bound(i), self.patience) for i in self.honest}
        self.waiting = dict.fromkeys(self.honest, False)
        self.ends = {i: [] for i in self.honest}
        self.sent = dict.fromkeys(self.honest, 0)
        self.reached = dict.fromkeys(self.honest, 0)
        self.began = {i: [] for i in self.honest}
        self.heard = {(i, j): 0.0 for i in self.honest for j in self.neighbours[i]}
        self.lately: dict[int, set[int]] = {}
        self.lied: dict[tuple[int, int], int] = {}
        self.promised: dict[tuple[int, int], tuple[float, list[int]]] = {}
        self.alarms: dict[int, tuple[int, float]] = {}
        self.longest = 0
        for i in self.honest:
            self._at(self.work(i, 0), lambda now, i=i: self._enter(i, now))  # type: ignore[misc]
        while self.queue and self.queue[0][0] < seconds and self.longest < rounds:
            now, _, act = heapq.heappop(self.queue)
            act(now)
        return self

    def bound(self, i: int) -> int:
        return self.f if isinstance(self.f, int) else self.f[i]

    def _at(self, when: float, act: Callable[[float], None]) -> None:
        self.count += 1
        heapq.heappush(self.queue, (when, self.count, act))

    def _enter(self, i: int, now: float) -> None:
        """Local work is done: move up if the others are ahead, send, wait."""
        mine = self.rounds[i]
        number = self.reached[i]
        self._begin(i, mine.ahead_of(number) or number, now)

    def _begin(self, i: int, number: int, now: float) -> None:
        self.reached[i] = number
        self.rounds[i].begin(number, now)
        self.began[i] += [now] * (number + 1 - len(self.began[i]))
        limit = max(self.patience.timeout, 3 * self.rounds[i].usual)
        seen = self.rounds[i].seen
        self.lately[i] = {j for j in seen if now - self.heard[i, j] < limit or seen[j] >= number}
        self.waiting[i] = True
        self.sent[i] += 1
        for j in self.neighbours[i]:
            if j in self.rounds:
                when = now + self.delay(i, j, number)
                self._at(when, lambda now, j=j: self._offer(j, i, number, now))  # type: ignore[misc]
        for liar in self.neighbours[i]:
            if liar in self.liars:
                move = self.lie(liar, i, number)
                if move == PROMPT or isinstance(move, float):
                    self._lie(liar, i, number, now + (1e-3 * move if isinstance(move, float) else 1e-9))
        self._look(i, now)

    def _lie(self, liar: int, victim: int, number: int, when: float) -> None:
        if self.lied.get((liar, victim), -1) < number:
            self.lied[liar, victim] = number
            self._at(when, lambda now: self._offer(victim, liar, number, now))

    def _offer(self, i: int, sender: int, number: int, now: float) -> None:
        until, whom = self.promised.get((i, number), (0.0, []))
        self.left_out += sender in self.rounds and sender in whom and now <= until
        self.rounds[i].offer(sender, number, V, now)
        self.heard[i, sender] = now
        if i in self.lately:
            self.lately[i].add(sender)
        if self.waiting[i]:
            self._look(i, now)

    def _look(self, i: int, now: float) -> None:
        """End the round, move up, or wait until the deadline; the liars look too."""
        mine = self.rounds[i]
        if mine.ready(now):
            self._end(i, now)
            return
        target = mine.ahead_of(mine.round)
        if target is not None:
            self._begin(i, target, now)
            return
        deadline, number = mine.deadline, mine.round
        if deadline < mine._started + self.patience.timeout:
            for liar in self.neighbours[i]:
                if liar in self.liars:
                    move = self.lie(liar, i, number)
                    if move in (BRINK, JUST_LATE):
                        self._lie(liar, i, number, deadline + (1e-6 if move == JUST_LATE else -1e-6))
        if self.alarms.get(i) != (number, deadline):
            self.alarms[i] = number, deadline
            self._at(deadline, lambda now: self._again(i, number, now))

    def _again(self, i: int, number: int, now: float) -> None:
        if self.waiting[i] and self.rounds[i].round == number:
            self._look(i, now)

    def _end(self, i: int, now: float) -> None:
        mine = self.rounds[i]
        answers, f = sorted(mine._answered.values()), self.bound(i)
        enough = max(f + 1, min(len(mine.neighbours) - 2 * f, len(self.lately[i]) - f))
        if len(answers) >= enough and len(self.ends[i]) > 10:
            missing = [j for j in mine.expected if j not in mine._answered]
            taken = len(mine.lengths) + sum(mine._skipped)
            self.promised[i, mine.round] = answers[enough - 1] + mine.usual * len(mine.lengths) / taken / 3, missing
        _, present = mine.gather(1)
        for place, j in enumerate(mine.neighbours):
            self.used[i, j] = self.used.get((i, j), 0) + bool(present[place])
        self.waiting[i] = False
        self.ends[i].append(now)
        self.longest = max(self.longest, len(self.ends[i]))
        if len(self.ends[i]) > 10:
            for j in self.neighbours[i]:
                if j in self.rounds and len(self.ends[j]) > 10:
                    self.gap = max(self.gap, abs(self.reached[i] - self.reached[j]))
        self.reached[i] += 1
        self._at(now + self.work(i, self.reached[i]), lambda now: self._enter(i, now))

    def skew(self, leave_out: Iterable[int] = ()) -> float:
        """The largest difference between the times at which two of the others sent a message of the same round."""
        times = [began[20:] for i, began in self.began.items() if i not in leave_out]
        return max((max(row) - min(row) for row in zip(*times)), default=0.0)

    def lengths(self, skip: int = 20) -> np.ndarray[Any, Any]:
        """Seconds of all rounds of all honest peers after the start."""
        return np.concatenate([np.diff(times[skip:]) for times in self.ends.values()])

    @property
    def median(self) -> float:
        return float(np.median(self.lengths()))

    @property
    def mean(self) -> float:
        """The mean round of the peer whose rounds are longest."""
        return max(float(np.mean(np.diff(times[20:]))) for times in self.ends.values())
