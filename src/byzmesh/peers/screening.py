"""Sketches first: what peers say to each other before, and whether, a whole message travels (channels/sketch.py).

    1  A peer sends everybody the sketch of its message. Rounds (rounds.py) are about these sketches.
    2  It answers every sketch that it has at the end of the round: fetch, or no thanks.
    3  Whoever is asked sends the whole message to the one who asked, for this round and the two before.
    4  While it works a peer serves nobody. So before, it sends its message, and that it will not ask, to those who have
       not answered.

A round is over when what was fetched is there and the neighbours of this round have answered, so that nobody leaves
who will be asked; a grace period after all but 2 f neighbours have done so, or all but f of those who sent a sketch if
these are fewer, or after the others are so far ahead that this peer must move up; or at the timeout. Each of the two
waits of a round has half a grace period. What the first leaves of it is not given to the second: a peer that waits long
for sketches makes others wait for its answer, so liars would stretch the first wait of some and the second of others.

Who broke its word `SILENT_AFTER` times in a row is asked but not waited for. A message that comes after the end counts
in the next round, unless a newer one does. It is refused if it does not have the sketch that its sender sent.

Both frames have the header of a message (wire.py). A sketch has encoding 6, the number of its float32 in the place of
D, and these as payload; an answer has encoding 7, 1 (fetch) or 0 in that place, and no payload.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.channels.sizes import frame_bytes
from byzmesh.peers.rounds import SILENT_AFTER, borne
from byzmesh.peers.wire import _MAGIC, EVERYONE, HEADER, VERSION, Format, WireError
from byzmesh.types import Array

SKETCH, ANSWER = 6, 7
KEPT = 3
"""How many messages a peer keeps to be fetched: one who is a round behind when it asks may be two when it is heard."""
SERVED = 2
"""How often a neighbour gets the same message: once more, because the first may have been lost with its connection."""


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A sketch (W,), or an answer to one: whether to send the message."""

    round: int
    sketch: Array | None = None
    fetch: bool = False


def is_screening(data: bytes | bytearray | memoryview) -> bool:
    """Whether the frame claims to be a sketch or an answer."""
    return len(data) >= HEADER.size and data[5] in (SKETCH, ANSWER)


def encode_sketch(form: Format, sketch: Array, sender: int, round: int, destination: int = EVERYONE) -> bytearray:
    """The frame with this (W,) float32 sketch."""
    return _frame(form, SKETCH, len(sketch), sender, round, destination, np.ascontiguousarray(sketch).tobytes())


def encode_answer(form: Format, fetch: bool, sender: int, round: int, destination: int) -> bytearray:
    """The frame that asks for the message of a round, or declines it.

    >>> form = Format(run=7, dimension=3, stages="sketch")
    >>> decode_screening(form, encode_answer(form, True, sender=4, round=9, destination=5), sender=4)
    Frame(round=9, sketch=None, fetch=True)
    """
    return _frame(form, ANSWER, int(fetch), sender, round, destination, b"")


def _frame(form: Format, kind: int, number: int, sender: int, round: int, to: int, payload: bytes) -> bytearray:
    data = bytearray(frame_bytes(len(payload)))
    HEADER.pack_into(data, 0, to, _MAGIC, VERSION, kind, sender, round, form.run, number, 0, 0)
    data[HEADER.size : HEADER.size + len(payload)] = payload
    return data


def decode_screening(form: Format, data: bytes | bytearray | memoryview, sender: int) -> Frame:
    """The sketch or answer that `sender` sent; `WireError`, and no other error, if the bytes are not one."""
    _, magic, version, kind, said, round, run, number, _, zero = HEADER.unpack_from(data)
    if magic != _MAGIC or version != VERSION:
        raise WireError("version", f"frame starts with {magic!r} version {version}, not {_MAGIC!r} {VERSION}")
    screen = form.channel.screen
    if screen is None or kind not in (SKETCH, ANSWER) or (kind == SKETCH and number != screen.width):
        raise WireError("channel", "message is no sketch of this size: the channels of the network files differ")
    size = frame_bytes(4 * screen.width if kind == SKETCH else 0)
    if len(data) != size:
        raise WireError("size", f"sketch or answer has {len(data)} bytes, {size} expected")
    if said != sender:
        raise WireError("sender", f"message says it is from {said}, but {sender} sent it")
    if run != form.run:
        raise WireError("run", "message belongs to another run: the network files or --run differ")
    if zero != 0:
        raise WireError("header", f"message has {zero:x} where zeros belong")
    if kind == ANSWER:
        if number > 1:
            raise WireError("payload", f"answer must be 0 or 1, got {number}")
        return Frame(round=round, fetch=number == 1)
    sketch = np.frombuffer(data, np.float32, screen.width, HEADER.size)
    if not np.isfinite(sketch).all():
        raise WireError("finite", "sketch contains NaN or infinity")
    return Frame(round=round, sketch=sketch)


class Screening:
    """What a peer was asked and asks for; no I/O.

    f  how many neighbours may break their word
    """

    def __init__(self, form: Format, neighbours: Collection[int], f: int) -> None:
        self.form, self.f = form, f
        self._bears = borne(f, len(neighbours))
        self._spared = self._bears
        self.own = np.zeros(0, np.float32)
        """The sketch of this peer's last message."""
        self.round = -1
        """The last round in which neighbours were asked."""
        self.asked: dict[int, tuple[int, Array]] = {}
        """Neighbour -> round and sketch of the message that it was asked for."""
        self.deadline = 0.0
        """When the waiting ends if nothing else comes."""
        self._kept: dict[int, bytearray] = {}
        self._answers: dict[int, bytearray] = {}
        self._served: Counter[tuple[int, int]] = Counter()
        self._answered = dict.fromkeys(neighbours, -1)
        self._broke: Counter[int] = Counter()
        """For how many rounds in a row a neighbour has not sent what it was asked for."""
        self._mute: Counter[int] = Counter()
        """For how many it has not answered."""
        self._came: dict[int, Array] = {}
        self._unasked: dict[int, tuple[int, Array, Array]] = {}
        """Round, sketch and vector of the last message that a neighbour sent before it was asked."""
        self._used: set[int] = set()
        """Of these, whose message was there at the end of the round."""
        self._late: dict[int, Array] = {}
        self._present: set[int] = set()
        """Who has something to answer or to send in this round."""
        self._awaited: set[int] = set()

    def say(self, message: bytearray, sender: int, round: int) -> bytearray:
        """Keep a message to be fetched; the frame with its sketch."""
        self.own = self.form.channel.sketches(self.form.decode(message, sender).vector[None])[0]
        self._kept = {number: kept for number, kept in self._kept.items() if round - KEPT < number < round}
        self._kept[round] = message
        return encode_sketch(self.form, self.own, sender, round)

    def answered(self, neighbour: int, answer: Frame) -> bytearray | None:
        """What to send to a neighbour that answered; None: nothing."""
        self._answered[neighbour] = max(self._answered[neighbour], answer.round)
        self._settle(neighbour)
        if not answer.fetch or answer.round not in self._kept:
            return None
        self._served[neighbour, answer.round] += 1
        return self._kept[answer.round] if self._served[neighbour, answer.round] <= SERVED else None

    def again(self, neighbour: int) -> list[bytearray]:
        """What a neighbour that has just joined may have missed besides the sketch: an answer, what it fetched."""
        told = [self._answers[neighbour]] if neighbour in self._answers else []
        return told + [kept for round, kept in self._kept.items() if (neighbour, round) in self._served]

    def begin(
        self, me: int, round: int, sketches: Mapping[int, tuple[int, Array]], deadline: float
    ) -> Iterable[tuple[int, bytearray]]:
        """Choose whom to ask, of the neighbours' sketches and their rounds; the answers to send, by neighbour."""
        screen = self.form.channel.screen
        assert screen is not None  # noqa: S101 (only then is there a Screening)
        rows = np.stack([self.own, *(sketch for _, sketch in sketches.values())])
        every = np.arange(len(rows))[None]
        passes = screen.passing(rows, every, np.ones(every.shape, bool), np.array([self.f]))[0, 1:]
        self._count_broken()
        # whoever owes a message and says nothing new may still send it: like any late message it counts when it comes
        owed = {j: ask for j, ask in self.asked.items() if j not in self._came and j not in sketches}
        self.round, self.deadline = round, deadline
        self._late = {j: vector for j, vector in self._came.items() if j not in self._used}
        self.asked, self._came = {j: sketches[j] for j, passed in zip(sketches, passes) if passed}, {}
        self._present = set(self.asked) | {j for j, (number, _) in sketches.items() if number == round}
        self._awaited = {j for j in self._present if min(self._broke[j], self._mute[j]) < SILENT_AFTER}
        # f may lie and f may be slow; whoever is not there is one of these
        self._spared = max(self._bears, 2 * self._bears - len(self._answered) + len(self._awaited))
        for neighbour, (number, sketch, vector) in self._unasked.items():
            wanted, asked = self.asked.get(neighbour, (-1, sketch))
            if wanted == number and asked.tobytes() == sketch.tobytes():
                self._came[neighbour] = vector
        self._unasked = {}
        self._answers = {
            j: encode_answer(self.form, self._owes(j), me, number, j) for j, (number, _) in sketches.items()
        }
        self.asked |= owed
        for neighbour in list(self._awaited):
            self._settle(neighbour)
        self._served = Counter({key: times for key, times in self._served.items() if key[1] > round - KEPT})
        return self._answers.items()

    def _count_broken(self) -> None:
        """Who broke its word in the last round; it had until now to keep it."""
        for neighbour in self._present:
            self._broke[neighbour] = self._broke[neighbour] + 1 if self._owes(neighbour) else 0
            self._mute[neighbour] = self._mute[neighbour] + 1 if self._may_ask(neighbour) else 0

    def _owes(self, neighbour: int) -> bool:
        return neighbour in self.asked and neighbour not in self._came

    def _may_ask(self, neighbour: int) -> bool:
        late = neighbour in self.asked and self.asked[neighbour][0] < self.round  # it is behind, and answers later
        return self._answered[neighbour] < self.round and not late

    def _settle(self, neighbour: int) -> None:
        """No longer wait for a neighbour if there is nothing to wait for."""
        owes = self._owes(neighbour) and self._broke[neighbour] < SILENT_AFTER
        if not owes and not (self._may_ask(neighbour) and self._mute[neighbour] < SILENT_AFTER):
            self._awaited.discard(neighbour)

    def take(self, neighbour: int, data: Any, largest: float) -> None:
        """Take a message, or keep it until it is asked for; `WireError` if it is none, or not the one sketched."""
        message = self.form.decode(data, neighbour)
        made = self.form.channel.sketches(message.vector[None])[0]
        round, sketch = self.asked.get(neighbour, (-1, made))
        if message.round < round:
            return  # too late: that is no lie
        if message.round == round and made.tobytes() != sketch.tobytes():
            raise WireError("sketch", "message is not the one whose sketch was sent")
        vector = self.form.decode(data, neighbour, largest).vector
        if message.round == round:
            self._came[neighbour] = vector
            self._settle(neighbour)
        elif message.round >= self.round:
            self._unasked[neighbour] = message.round, made, vector

    def ready(self, now: float, grace: float, left_behind: bool = False) -> bool:
        """Whether to go on with what came; whoever was left behind by the others need not wait for them to end."""
        if left_behind or len(self._awaited) <= self._spared:
            self.deadline = min(self.deadline, now + grace)
        return not self._awaited or now >= self.deadline

    def end(self) -> dict[int, Array]:
        """What came, by neighbour; if nothing did, what came too late for the round before."""
        self._used = set(self._came)
        return self._late | self._came

    def leave(self, me: int, seen: Mapping[int, int]) -> Iterable[tuple[int, list[bytearray]]]:
        """What to send, unasked, to neighbours that have not answered: while this peer works it serves nobody.

        seen  the round of each neighbour's newest sketch; whoever is further behind will move up
        """
        for neighbour, round in self._answered.items():
            if round < self.round and seen[neighbour] >= self.round - 1 and self.round in self._kept:
                self._served[neighbour, self.round] += 1
                no_thanks = encode_answer(self.form, False, me, self.round, neighbour)
                yield neighbour, [self._kept[self.round], no_thanks]

    def all_answered(self, neighbours: Collection[int]) -> bool:
        """Whether these neighbours have answered this peer's last sketch."""
        return all(self._answered[neighbour] >= self.round for neighbour in neighbours)
