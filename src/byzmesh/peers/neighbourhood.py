"""The neighbours of a peer: whom it listens to, who is lost, who still needs its last messages, and how they change."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from byzmesh.errors import ConfigError
from byzmesh.peers.encounters import Encounter
from byzmesh.peers.links import Links
from byzmesh.peers.rounds import borne
from byzmesh.peers.transport import Remote
from byzmesh.types import Floats, Integers

AHEAD = 3
"""On a network that changes: rounds for which links are opened in advance."""


class Neighbourhood(Links):
    """A peer's neighbours; `Peer` adds the exchange."""

    remotes: dict[int, Remote]
    weight: Floats
    f: int
    _bound: Integers
    meet: Callable[[int], Encounter] | None
    open_links: int
    lost: set[int]
    """Neighbours not heard lately."""
    _wanted: dict[int, int]

    def leave(self, seconds: float = 10.0, stop: Callable[[], bool] = lambda: False) -> None:
        """Wait up to `seconds` for slower neighbours that may still need the last messages, then close."""
        limit = self.world.now() + seconds
        self.pump(0.0)  # whoever joined and is not known yet has not got them
        while self.world.now() < limit and not stop() and not self._served():
            self.pump(0.05)
        # one who reads nothing must not keep a peer that was told to stop
        self.close(min(1.0 if stop() else seconds, max(0.0, limit - self.world.now())))

    def _served(self) -> bool:
        """Whether all who need the last messages have them, as far as can be known."""
        last, seen = self.round - 1, self.rounds.seen
        if self.meet is None:
            near = self.rounds.expected
            if self.screening is not None and not self.screening.all_answered(near):
                return False
            return all(seen[neighbour] >= last and neighbour in self.listening for neighbour in near)
        # whom it hears in the last round says nothing of its readers, who connect when they need a message: whoever
        # has sent one of a later round has ended this one
        return all(seen[reader] > last for reader in self._readers)

    @property
    def _readers(self) -> frozenset[int]:
        """Who reads one of the messages that are kept, on a network that changes."""
        return frozenset().union(*(readers for _, readers in self._sent if readers is not None))

    def close(self, linger: float = 0.0) -> None:
        """Close the sockets; the last messages may still be delivered for `linger` seconds."""
        self.transport.close(linger)

    def _notice(self, now: float) -> None:
        """Tell who was lost and who is back."""
        if not self.lost and self.rounds.all_lively(now):
            return
        for neighbour in self.neighbours:
            lost = not self.rounds.lively(neighbour, now)
            if lost != (neighbour in self.lost):
                (self.lost.add if lost else self.lost.discard)(neighbour)
                self.log(f"neighbour {'lost' if lost else 'back'}", neighbour=neighbour, round=self.round)

    @property
    def alone(self) -> bool:
        """Whether it has neighbours, and so few were heard lately that all of them may lie."""
        count = len(self.neighbours)
        return count > 0 and count - len(self.lost) <= borne(self.rounds.f, count)

    @property
    def alone_for(self) -> float:
        """Seconds since more neighbours were heard than may lie; 0 if they were heard lately, or there are none."""
        return self.world.now() - self.rounds.company if self.alone else 0.0

    def skip(self) -> None:
        """Sleep through a round."""
        self.round += 1

    def _reach_out(self, round: int) -> None:
        """Listen to those who are due in the next rounds, and to no more than `open_links` others."""
        if self.meet is None:
            return
        soon = dict.fromkeys(n for k in range(round, round + AHEAD) for n in self.meet(k).senders)
        connected = set(self.transport.connected)
        for neighbour in soon:
            self._wanted[neighbour] = round
            if neighbour not in connected and neighbour not in self.cut_off and neighbour not in self.blocked:
                self.transport.connect(neighbour)
        others = sorted(connected - set(soon), key=lambda neighbour: (self._wanted.get(neighbour, -1), neighbour))
        for neighbour in others[: max(0, len(others) - self.open_links)]:
            self.transport.disconnect(neighbour)

    def change(self, neighbours: Mapping[int, Remote], weights: Mapping[int, float], f: int, strange: set[int]) -> None:
        """Go on with other neighbours, weights or f, between two rounds; model and round stay.

        strange  neighbours that are new, or have another key: nothing is known of them
        """
        gone = (self.remotes.keys() - neighbours.keys()) | strange
        self.remotes, self.neighbours = dict(neighbours), sorted(neighbours)
        self.f, self._bound, self.weight = f, np.array([f]), mixing_weights(weights, self.neighbours)
        self.tally.keep(self.neighbours, gone)
        self.parts.forget(gone)
        self.budget.keep(self.neighbours, self.world.now())
        self.cut_off.forget(gone)
        for whom in (self.listening, self.lost):
            whom -= gone
        self.blocked &= neighbours.keys()  # of a drill, whatever their keys
        for neighbour in self.neighbours:
            if neighbour in self.cut_off or neighbour in self.blocked:
                self.transport.disconnect(neighbour)


def mixing_weights(weights: Mapping[int, float] | None, neighbours: list[int]) -> Floats:
    """(1, d + 1) mixing weights, own first."""
    if weights is None:
        return np.full((1, len(neighbours) + 1), 1.0 / (len(neighbours) + 1))
    if sorted(weights) != neighbours:
        raise ConfigError(f"weights must name exactly the neighbours {neighbours}, got {sorted(weights)}")
    others = np.array([float(weights[neighbour]) for neighbour in neighbours])
    if not np.isfinite(others).all() or others.min(initial=0.0) < 0.0 or others.sum() > 1.0 + 1e-9:
        raise ConfigError(f"weights must be at least 0 and sum to at most 1, got a sum of {others.sum():.6g}")
    return np.concatenate([[max(0.0, 1.0 - others.sum())], others])[None, :]
