"""How much each receiver trusted each sender over a run: the sums that forensics and certificates read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.compiled import exact
from byzmesh.simulation.exchange import Exchange
from byzmesh.types import Booleans, Floats, Integers


@dataclass(frozen=True, kw_only=True)
class Edges:
    """Sums over all rounds, per directed edge into an honest worker.

    sender, receiver  (E,) ids
    cut               (E,) rounds in which the message arrived but did not count
    rounds            (E,) rounds in which it arrived
    trust             (E,) mean coefficient over the rounds in which it arrived
    lying             (E,) whether the sender is a liar, which only the simulator knows
    """

    sender: Integers
    receiver: Integers
    cut: Integers
    rounds: Integers
    trust: Floats
    lying: Booleans

    @property
    def counts(self) -> Integers:
        """(E, 4) sender, receiver, cut, rounds: what a store keeps."""
        return np.stack([self.sender, self.receiver, self.cut, self.rounds], axis=1)

    def cut_rates(self, n: int) -> Floats:
        """(n, n) fraction of the rounds with a message in which the row's worker cut the column's; 0 without one."""
        rates = np.zeros((n, n))
        rates[self.receiver, self.sender] = self.cut / np.maximum(self.rounds, 1)
        return rates

    @property
    def mistakes(self) -> float:
        """Fraction of honest neighbours' messages that were cut."""
        honest = ~self.lying
        came = int(self.rounds[honest].sum())
        return float(self.cut[honest].sum() / came) if came else 0.0


class _Sums:
    """Running sums (R, C) over the rounds, from zero or from the arrays of a checkpoint."""

    def __init__(
        self,
        shape: tuple[int, ...],
        trust: Floats | None = None,
        cut: Integers | None = None,
        came: Integers | None = None,
    ) -> None:
        self.trust = np.zeros(shape) if trust is None else trust
        self.cut = np.zeros(shape, np.int64) if cut is None else cut
        self.came = np.zeros(shape, np.int64) if came is None else came

    def arrays(self) -> dict[str, Any]:
        """The arrays for a checkpoint."""
        return {"trust": self.trust, "cut": self.cut, "came": self.came}

    def columns(self, exchange: Exchange) -> Integers:
        """(R, K) the column of each slot of a round's inboxes."""
        raise NotImplementedError

    def add(self, coefficient: Floats, present: Booleans, exchange: Exchange) -> None:
        """Count one round."""
        add_counts(coefficient, present, *self.sums(exchange))

    def sums(self, exchange: Exchange) -> tuple[Integers, Floats, Integers, Integers]:
        """The last arguments of `add_counts`."""
        return self.columns(exchange), self.trust, self.cut, self.came

    def _edges(self, receiver: Integers, row: Integers, column: Integers, sender: Integers, liars: Integers) -> Edges:
        came = self.came[row, column]
        return Edges(
            sender=sender,
            receiver=receiver[row],
            cut=self.cut[row, column],
            rounds=came,
            trust=self.trust[row, column] / np.maximum(came, 1),
            lying=np.isin(sender, liars),
        )


class EdgeCounts(_Sums):
    """Running sums over the slots of an exchange that is the same in every round."""

    def __init__(self, exchange: Exchange, **counted: Any) -> None:
        super().__init__(exchange.sender.shape, **counted)
        self._exchange = exchange
        self._slot = np.tile(np.arange(exchange.sender.shape[1]), (len(exchange.sender), 1))

    def columns(self, exchange: Exchange) -> Integers:
        """(R, K) the column of each slot."""
        return self._slot

    def edges(self, byzantine: Integers) -> Edges:
        """The sums per edge; own slots and label-flipping receivers are left out."""
        exchange = self._exchange
        row, slot = np.nonzero(exchange.valid & ~np.isin(exchange.receiver, byzantine)[:, None])
        row, slot = row[slot > 0], slot[slot > 0]
        return self._edges(exchange.receiver, row, slot, exchange.sender[row, slot], byzantine)


class PairCounts(_Sums):
    """Running sums over pairs (R, n), for networks in which a worker may hear anybody."""

    def __init__(self, receiver: Integers, n: int, **counted: Any) -> None:
        super().__init__((len(receiver), n), **counted)
        self._receiver = receiver

    def columns(self, exchange: Exchange) -> Integers:
        """(R, K) the column of each slot."""
        return exchange.sender

    def edges(self, byzantine: Integers) -> Edges:
        """The sums per pair of which a message arrived; receivers that lie are left out."""
        row, sender = np.nonzero((self.came > 0) & ~np.isin(self._receiver, byzantine)[:, None])
        return self._edges(self._receiver, row, sender, sender, byzantine)


@exact
def add_counts(coefficient: Any, present: Any, column: Any, trust: Any, cut: Any, came: Any) -> None:
    """Add slots to the columns they belong to; a receiver's own slot does not count."""
    for receiver in range(present.shape[0]):
        for slot in range(1, present.shape[1]):
            if present[receiver, slot]:
                place = column[receiver, slot]
                came[receiver, place] += 1
                trust[receiver, place] += coefficient[receiver, slot]
                if coefficient[receiver, slot] == 0.0:
                    cut[receiver, place] += 1
