"""Rounds without a shared clock: how long to wait, and when to move up. Pure logic, no I/O.

With d neighbours of which at most f lie, a neighbour has *answered* when its newest message is of this round or a later
one. A round ends

    as soon as all expected neighbours have answered, or
    a grace period after all but 2 f have answered (f may lie and f may be slow), or
    after all but f of those that were heard lately or have answered, if these are fewer, or
    at the timeout.

At least f + 1 must have answered, one honest neighbour among them, or the round lasts until the timeout: liars alone
cannot hurry a peer (see `borne` for few neighbours). Those that missed three rounds in a row are not expected until
they are back. So nobody waits long for silence, garbage and dead neighbours.

The grace period is a third of the peer's usual round, the smaller of mean and median over the last `WINDOW` ones, by
round number.
Because this factor is below one, waits that cause waits add up to a geometric series: liars make the mean round at most
1 / (1 - 1/3) = 1.5 times as long (docs/peers.md has the proof).

Which message of a neighbour counts, of this round or another, is in letters.py.

A peer that fell behind moves up to the (f + 1)-th largest round among the newest messages of its neighbours: at least
one honest neighbour has reached it, so f liars can neither drag the peer ahead nor hold it back. Honest neighbours are
often one round apart, so a difference of one moves nobody. The round left behind counts as missed by those who did not
answer, and its time is not started anew.

`rounds` may differ between peers, and a network file that a peer does not know yet may raise it. So neighbours may be
beyond this peer's last round: they are heard and have answered, but the peer moves up to its last round only, and what
they say counts only if more of them are there than may lie.

On a network that changes, `due` names the neighbours whose messages belong to a round; all of the above is about these.
Peers that rarely hear each other are often a few rounds apart: a difference of up to `APART` moves nobody.
"""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from byzmesh.peers.letters import APART, ENDLESS, Due, Letters, stacked
from byzmesh.peers.patience import Patience
from byzmesh.types import Array

SILENT_AFTER = 3
"""After this many missed rounds a neighbour is no longer expected."""
WINDOW = 64
"""Rounds over which the usual round is measured."""
GRACE = 1.0 / 3.0
"""The grace period as a part of the usual round."""


def borne(f: int, neighbours: int) -> int:
    """How many liars the waiting bears: with fewer than 2 f + 1 neighbours, fewer than f.

    If it took f + 1 answers there, a liar that says nothing would make every round last until the timeout.
    """
    return min(f, max(0, neighbours - 1) // 2)


class Rounds:
    """Who has answered, and the decision when a round ends.

    >>> rounds = Rounds([3, 5, 8], f=1, patience=Patience(timeout=5.0, start=5.0, start_grace=0.5))
    >>> rounds.begin(0, now=0.0)
    >>> rounds.offer(3, 0, np.zeros(2), now=0.1), rounds.offer(5, 0, np.ones(2), now=0.2), rounds.ready(0.3)
    ('current', 'current', False)
    >>> rounds.ready(0.8), rounds.gather(2)[1]
    (True, array([ True,  True, False]))
    """

    def __init__(self, neighbours: Collection[int], f: int, patience: Patience, due: Due | None = None) -> None:
        self.neighbours = sorted(neighbours)
        self.f = f
        self._due_in = due
        self.due: Sequence[int] = self.neighbours
        """The neighbours whose messages belong to this round."""
        self.patience = patience
        self.waits = 1
        """How many waits of a round share the grace period: two if sketches travel first (screening.py)."""
        self.round = 0
        self.last = ENDLESS
        """The last round of this peer."""
        self.lengths: deque[float] = deque(maxlen=WINDOW)
        """Seconds of the last rounds, local work included; those passed over while waiting count as rounds."""
        self._skipped: deque[int] = deque(maxlen=WINDOW)
        """For each of these, how many rounds were passed over after it, before the next message was sent."""
        self.seen = dict.fromkeys(self.neighbours, -1)
        """The round of each neighbour's newest message."""
        self.heard: dict[int, float] = {}
        """When each neighbour was last heard; the start for those never heard."""
        self.verdicts: dict[int, Counter[str]] = {neighbour: Counter() for neighbour in self.neighbours}
        self._bears = borne(self.f, len(self.due))
        self.tops: list[float] = []
        """Of the round that ended last: the largest absolute value of each message, 0 if it is missing."""
        self.letters = Letters(self.neighbours, due)
        self._missed = dict.fromkeys(self.neighbours, 0)
        self._answered: dict[int, float] = {}
        self._begun = 0
        self._passed = 0
        self._usual = 0.0
        self._patient_for = patience.start
        self._trusted = -1
        self._open = False
        self._moved = False
        self._started = 0.0
        self._needed: int | None = None
        self._awaited: set[int] = set()
        self._deadline = 0.0
        self._grace = 0.0

    def change(
        self, neighbours: Collection[int], f: int, patience: Patience, strange: Collection[int], now: float
    ) -> None:
        """Go on with other neighbours.

        Nothing is kept of those who are gone, nor of the `strange` ones: new, or with another key. Nobody waits for a
        strange one before it is heard.
        """
        fresh = Rounds(neighbours, f, patience)
        # strangers are no company: whoever heard too few before is still as long alone
        silent_since = min(now - self._patient_for, self.company) if self.heard else now - self._patient_for
        for name in ("seen", "heard", "verdicts", "_missed", "_answered"):
            table = getattr(fresh, name)
            table |= {j: known for j, known in getattr(self, name).items() if j in fresh.seen and j not in strange}
            setattr(self, name, table)
        self.letters.keep(fresh.neighbours, strange)
        self.neighbours = self.due = fresh.neighbours
        self.f, self.patience, self._bears = f, patience, fresh._bears
        self._trusted = self._honest_round()
        for neighbour in strange:
            self.heard[neighbour] = silent_since
            self._missed[neighbour] = SILENT_AFTER

    def begin(self, round: int, now: float) -> None:
        """Start waiting for the messages of `round`, or move up to it; those that came early count at once."""
        if self._open:
            for neighbour in self.due:
                self._missed[neighbour] += neighbour not in self._answered
            self._passed += round - self.round
        else:
            if self._begun and not self._starting:
                # moved up while waiting, it took part in one round while the others made several: each has its part
                count = 1 + self._passed
                self.lengths.extend([(now - self._started) / count] * min(count, WINDOW))
                self._skipped.extend([0] * min(count - 1, WINDOW) + [max(0, round - self.round - 1)])
                middle = sorted(self.lengths)[len(self.lengths) // 2]
                self._usual = min(middle, sum(self.lengths) / len(self.lengths))
            self._begun += 1
            self._passed = 0
            self._started = now
            self._patient_for = max(self._timeout, SILENT_AFTER * self._usual)
        self._moved = self._moved or (self._begun > 1 and round > self.round + 1)
        self.round, self._open = round, True
        if self._due_in is not None:
            self.due = self._due_in(round)
            self._bears = borne(self.f, len(self.due))
        self.letters.begin(round)
        if len(self.heard) < len(self.neighbours):
            for neighbour in self.neighbours:
                self.heard.setdefault(neighbour, now)
        self._answered = {neighbour: now for neighbour in self.due if self.seen[neighbour] >= round}
        self._awaited = {neighbour for neighbour in self.expected if neighbour not in self._answered}
        self._grace = self._grace_period()
        self._needed = self._answers_needed(now)
        self._set_deadline()

    def offer(self, sender: int, round: int, vector: Array, now: float, top: float = np.inf) -> str:
        """Accept a message ("current", "early" or "late") or drop it ("repeated").

        top  the largest absolute value in it, if that is known
        """
        counted_out = not self.lively(sender, now)
        self.heard[sender] = now
        before = self.seen[sender]
        if before != round:
            self.seen[sender] = round
            # the (f + 1)-th largest stays where it is unless one moves past it
            if round < before or before <= self._trusted < round:
                self._trusted = self._honest_round()
        if counted_out:
            self._needed = self._answers_needed(now)
        verdict = self.letters.place(sender, round, (vector, top))
        self.verdicts[sender][verdict] += 1
        if round >= self.round and sender not in self._answered and (self._due_in is None or sender in self.due):
            self._answered[sender] = now
            self._awaited.discard(sender)
        if counted_out or len(self._answered) == self._needed:
            self._set_deadline()
        return verdict

    @property
    def expected(self) -> list[int]:
        """The neighbours whose messages usually arrive in time."""
        return [neighbour for neighbour in self.due if self._missed[neighbour] < SILENT_AFTER]

    @property
    def usual(self) -> float:
        """Seconds of a usual round, 0 before any: the smaller of mean and median, so that one stall does not count."""
        return self._usual

    @property
    def grace(self) -> float:
        """Seconds to wait for the rest after enough neighbours have answered."""
        return self._grace

    def _grace_period(self) -> float:
        least = self.patience.start_grace if self._starting or not self.lengths else 0.0
        usual = self.usual
        if self._due_in is None and usual:
            # by round number, so that whoever is slow does not wait longer than the others
            usual *= len(self.lengths) / (len(self.lengths) + sum(self._skipped))
        return min(max(least, max(self.patience.grace, GRACE * usual) / self.waits), self._timeout)

    @property
    def _starting(self) -> bool:
        """Whether connections may still be opening: in the first rounds, unless the others are further ahead."""
        return self._begun <= SILENT_AFTER and not self._moved

    @property
    def _timeout(self) -> float:
        return self.patience.start if self._begun <= 1 else self.patience.timeout

    def lively(self, neighbour: int, now: float) -> bool:
        """Whether a neighbour was heard lately, whatever it said; one that is rarely due, whenever it was."""
        if self._due_in is not None:
            return self._missed[neighbour] < SILENT_AFTER
        return now - self.heard.get(neighbour, now) < self._patient_for

    @property
    def company(self) -> float:
        """When more neighbours had been heard than may lie; there must be neighbours."""
        return sorted(self.heard.values(), reverse=True)[borne(self.f, len(self.heard))]

    def all_lively(self, now: float) -> bool:
        """Whether every neighbour was heard lately, as far as a quick look can tell."""
        return self._due_in is None and len(self.heard) > 0 and now - min(self.heard.values()) < self._patient_for

    def _answers_needed(self, now: float) -> int | None:
        """After how many answers the grace period starts; None if so few speak that all of them may lie."""
        # whoever claimed a far round and went silent has answered, and must not make fewer answers enough besides
        lively = len(self.due)
        if not self.all_lively(now):
            lively = sum(self.seen[neighbour] >= self.round or self.lively(neighbour, now) for neighbour in self.due)
        if lively <= self._bears:
            return None
        spared = self._bears if self._starting else 2 * self._bears
        return max(self._bears + 1, min(len(self.due) - spared, lively - self._bears))

    def ready(self, now: float) -> bool:
        """Whether to end the round with what arrived."""
        if not self.due or now >= self._deadline:
            return True
        return not self._awaited and self._needed is not None and len(self._answered) >= self._needed

    @property
    def deadline(self) -> float:
        """When the round ends if no further message arrives."""
        return self._deadline

    def _set_deadline(self) -> None:
        self._deadline = self._started + self._timeout
        if self._needed is not None and len(self._answered) >= self._needed:
            enough = next(itertools.islice(self._answered.values(), self._needed - 1, None))
            self._deadline = min(self._deadline, enough + self._grace)

    def ahead_of(self, round: int) -> int | None:
        """The round to move up to, if a peer in this round fell behind."""
        target = self.target
        return target if target > round + (1 if self._due_in is None else APART) else None

    @property
    def target(self) -> int:
        """The round in which this peer belongs: `trusted`, but not beyond its last."""
        return min(self.trusted, self.last)

    @property
    def outrun(self) -> bool:
        """Whether some honest neighbour is beyond the last round, in which this peer is."""
        return self.round >= self.last < self.trusted

    @property
    def trusted(self) -> int:
        """The (f + 1)-th largest round seen: some honest neighbour has reached it. -1 before any message."""
        return self._trusted

    def _honest_round(self) -> int:
        order = sorted(self.seen.values(), reverse=True)
        return order[self.f] if self.f < len(order) else -1

    def gather(self, dimension: int, dtype: Any = np.float64) -> tuple[Array, npt.NDArray[np.bool_]]:
        """End the round: messages (d, D) by sender id, zero if missing, and which arrived (d,)."""
        return stacked(self.collect(), dimension, dtype)

    @property
    def collected(self) -> Mapping[int, int]:
        """The round of the message of each neighbour that was last collected."""
        return self.letters.used

    def collect(self) -> list[Array | None]:
        """End the round: the messages by sender id, None if missing; they are not copied."""
        self._open = False
        vectors: list[Array | None] = [None] * len(self.neighbours)
        self.tops = [0.0] * len(self.neighbours)
        due = None if self._due_in is None else set(self.due)
        beyond = sum(seen > self.last for seen in self.seen.values())
        self.letters.forget_beyond(self.last, newest=beyond > self._bears)
        for slot, neighbour in enumerate(self.neighbours):
            if due is not None and neighbour not in due:
                continue
            letter, in_time = self.letters.take(neighbour)
            self._missed[neighbour] = 0 if in_time else self._missed[neighbour] + 1
            if letter is None:
                self.verdicts[neighbour]["silent"] += 1
            else:
                vectors[slot], self.tops[slot] = letter
        return vectors
