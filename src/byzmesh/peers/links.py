"""What comes in: each message is charged to its sender, checked, and placed in its round; who floods is cut off, who
has just joined gets the newest messages again."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from byzmesh.channels.sizes import frame_bytes
from byzmesh.peers.budget import Budget, CutOffs
from byzmesh.peers.letters import ENDLESS
from byzmesh.peers.parts import Parts
from byzmesh.peers.rounds import Rounds
from byzmesh.peers.screening import Frame, Screening, decode_screening, is_screening
from byzmesh.peers.tally import Tally
from byzmesh.peers.transport import Transport, World
from byzmesh.peers.wire import Format, WireError, carries_file, decode_file, encode_file

if TYPE_CHECKING:
    from byzmesh.channels.base import State
    from byzmesh.peers.membership import Membership
    from byzmesh.types import Array

LARGEST = 1e6
"""A message's largest coordinate may be this many times that of the peer's own vector, or of 1; beyond, it is scaled
down."""


class Links:
    """A peer's side of its links; `Peer` adds rounds and the rule.

    rounds  where messages are placed
    parts   what a message is, and in how many frames it comes
    total   rounds of the run, 0 if unknown
    """

    transport: Transport

    def __init__(
        self,
        me: int,
        rounds: Rounds,
        parts: Parts,
        start: State,
        *,
        total: int,
        log: Callable[..., None],
        world: World,
        membership: Membership | None,
    ) -> None:
        self.me, self.rounds, self.parts, self.total = me, rounds, parts, total
        self.form: Format = parts.form
        self._cost, self._usual = 1.0 / parts.count, parts.total
        self.log, self.world, self.membership = log, world, membership
        self.neighbours = list(rounds.neighbours)
        self.round = 0
        """The next round to exchange."""
        self.budget = Budget(self.neighbours, world.now(), parts.total)
        self.tally = Tally(self.neighbours)
        self.listening: set[int] = set()
        """Neighbours that have subscribed to this peer."""
        self.cut_off = CutOffs()
        """Neighbours that flooded."""
        self.blocked: set[int] = set()
        self.listened = 0.0
        """Seconds spent waiting for messages."""
        self.said = start
        """The channel's state after this peer's last message."""
        self.heard = dict.fromkeys(self.neighbours, (-1, start))
        """Round and channel's state of each neighbour's last message, if the channel remembers any."""
        self._remembers = bool(self.form.channel.remembers)
        self.screening = None if self.form.channel.screen is None else Screening(self.form, self.neighbours, rounds.f)
        if self.screening is not None:
            rounds.waits = 2
        self._one_kind = parts.count == 1 and self.screening is None
        self._kind = bytes([self.form.encoding])
        """Whether every message is one frame that counts as it is, and the byte that tells it from other frames."""
        self.sent_bytes = 0
        """Bytes of all messages, to everybody who hears them."""
        self._start = start
        self._largest = math.inf  # until there is a vector of its own to compare with
        self._sent: list[tuple[bytearray, frozenset[int] | None]] = []
        """The newest messages, and who reads each; None: everybody."""
        self._resent: dict[int, int] = {}

    def pump(self, seconds: float) -> bool:
        """Receive messages for `seconds`, and serve neighbours that have just joined; whether any message came."""
        began = self.world.now()
        messages, joined = self.transport.receive(seconds)
        now = self.world.now()
        self.listened += now - began
        for neighbour, data in messages:
            self._take(neighbour, data, now)
        if self.cut_off.until:
            self._end_cut_offs(now)
        for neighbour in joined:
            self.listening.add(neighbour)
            if self.membership is not None:
                self.membership.joined(neighbour)
            self._send_again(neighbour)
        return bool(messages)

    def _end_cut_offs(self, now: float) -> None:
        for neighbour in self.cut_off.ended(now):
            self.budget.renew(neighbour, now)
            if neighbour not in self.blocked:
                self.transport.connect(neighbour)

    def _send_again(self, neighbour: int) -> None:
        """Send a neighbour that has just joined what it reads of the newest messages.

        A neighbour that keeps reconnecting must not make this peer send endlessly. Twice a round is enough where links
        stay. A reader that connects on demand leaves once it has what it waited for, and what was on the way is lost:
        with every connection but one it has read a message more, however long this peer's round takes.
        """
        kept = [message for message, readers in self._sent if readers is None or neighbour in readers]
        times = self._resent.setdefault(neighbour, 0)
        on_demand = all(readers is not None for _, readers in self._sent)
        if times < (max(2, 1 + len(kept)) if on_demand else 2):
            self._resent[neighbour] = times + 1
            for message in kept if self.screening is None else kept + self.screening.again(neighbour):
                self._send(message, neighbour)

    def _send(self, message: bytearray, destination: int | None = None) -> None:
        if is_screening(message):
            self.transport.send(message if destination is None else self.form.readdress(message, destination))
            return
        for frame in self.parts.frames(message, destination):
            self.transport.send(frame)

    def _take(self, neighbour: int, data: Any, now: float) -> None:
        if neighbour in self.cut_off.until or neighbour in self.blocked:
            return
        cost = self._cost if len(data) <= self._usual else min(len(data) / self._usual, self.budget.per_second / 4.0)
        if not self.budget.spend(neighbour, max(self.rounds.trusted, self.round), now, cost):
            self._cut(neighbour, "floods")
            return
        try:
            if not self._one_kind or data[5:6] != self._kind:
                data = self._message_of(neighbour, data, now)
                if data is None:
                    return
            last, state = self.heard.get(neighbour, (-1, self._start)) if self._remembers else (-1, self._start)
            message = self.form.decode(data, neighbour, self._largest, state)
        except WireError as error:
            if self.tally.refuse(neighbour, error.reason):
                self.log("refused", neighbour=neighbour, reason=error.reason, text=str(error), round=self.round)
            return
        if self._remembers and message.round >= last:
            self.heard[neighbour] = message.round, message.state
        self.rounds.offer(neighbour, message.round, message.vector, now, message.top)
        if self.membership is not None and message.epoch != self.membership.tag:
            self._tell(neighbour, now)

    def _message_of(self, neighbour: int, data: Any, now: float) -> Any:
        """The message that a frame is, or that it completes; None if it is something else, which is then taken."""
        if self.membership is not None and carries_file(data):
            self.membership.receive(decode_file(data, self.form.run, neighbour), neighbour)
            self._find_last()
            return None
        if self.screening is not None and is_screening(data):
            self._screen(self.screening, neighbour, decode_screening(self.form, data, neighbour), now)
            return None
        whole = self.parts.add(neighbour, data)
        if whole is not None and self.screening is not None:
            self.screening.take(neighbour, whole, self._largest)
            return None
        return whole

    def _find_last(self) -> None:
        """The last round, by all network files that are known: one that is not in force yet may raise it."""
        rounds = self.total if self.membership is None else max(file.rounds for file in self.membership.epochs.files)
        self.rounds.last = rounds - 1 if rounds else ENDLESS

    def _screen(self, screening: Screening, neighbour: int, frame: Frame, now: float) -> None:
        """Take a neighbour's sketch, or send it the message that it asks for."""
        if frame.sketch is not None:
            self.rounds.offer(neighbour, frame.round, frame.sketch, now)
            return
        message = screening.answered(neighbour, frame)
        if message is not None:
            self.sent_bytes += self.parts.total
            self._send(message, neighbour)

    def _fetch(self, screening: Screening, sketches: list[Array | None]) -> list[Array | None]:
        """The messages worth fetching, of the neighbours in order, by the sketches that they sent."""
        rounds = self.rounds.collected
        known = {j: (rounds[j], sketch) for j, sketch in zip(self.neighbours, sketches) if sketch is not None}
        deadline = self.world.now() + self.rounds.patience.timeout
        for _, answer in screening.begin(self.me, self.round, known, deadline):
            self._send(answer)
        self.sent_bytes += len(known) * frame_bytes(0)
        self.tally.decline(known.keys() - screening.asked.keys())
        while not screening.ready(
            now := self.world.now(), self.rounds.grace, left_behind=self.rounds.ahead_of(self.round) is not None
        ):
            self.pump(screening.deadline - now)
        came = screening.end()
        for neighbour, messages in screening.leave(self.me, self.rounds.seen):
            for message in messages:
                self._send(message, neighbour)
            self.sent_bytes += self.parts.total + frame_bytes(0)
        return [came.get(neighbour) for neighbour in self.neighbours]

    def _tell(self, neighbour: int, now: float) -> None:
        """Send a network file to a neighbour that knows others."""
        text = self.membership.for_neighbour(neighbour, now) if self.membership is not None else None
        if text is not None:
            self.transport.send(encode_file(text, self.form.run, self.me, neighbour))

    def _cut(self, neighbour: int, reason: str) -> None:
        if neighbour in self.cut_off:
            return
        seconds = self.cut_off.begin(neighbour, self.world.now())
        self.transport.disconnect(neighbour)
        self.log("cut off", neighbour=neighbour, reason=reason, seconds=seconds, round=self.round)

    def block(self, neighbours: set[int]) -> None:
        """Close the connections to these neighbours until told otherwise (drills: a partition of the network)."""
        for neighbour in neighbours - self.blocked:
            self.transport.disconnect(neighbour)
        for neighbour in self.blocked - neighbours:
            if neighbour not in self.cut_off:
                self.transport.connect(neighbour)
        self.blocked = set(neighbours)

    @property
    def suspects(self) -> list[int]:
        """Neighbours that flood, send malformed messages, or are mostly ignored by the rule; the worst first."""
        return self.tally.suspects(self.cut_off.times)
