"""How much each receiver trusted each sender over a run: the sums that forensics and certificates read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from byzmesh.compiled import exact
from byzmesh.simulation.exchange import Exchange
from byzmesh.types import Floats, Integers


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
    lying: npt.NDArray[np.bool_]

    @property
    def counts(self) -> Integers:
        """(E, 4) sender, receiver, cut, rounds: what a store keeps."""
        return np.stack([self.sender, self.receiver, self.cut, self.rounds], axis=1)

    @property
    def mistakes(self) -> float:
        """Fraction of honest neighbours' messages that were cut."""
        honest = ~self.lying
        came = int(self.rounds[honest].sum())
        return float(self.cut[honest].sum() / came) if came else 0.0


@exact
def _add(coefficient: Any, present: Any, trust: Any, cut: Any, came: Any) -> None:
    for receiver in range(coefficient.shape[0]):
        for slot in range(coefficient.shape[1]):
            if present[receiver, slot]:
                came[receiver, slot] += 1
                trust[receiver, slot] += coefficient[receiver, slot]
                if coefficient[receiver, slot] == 0.0:
                    cut[receiver, slot] += 1


class EdgeCounts:
    """Running sums (R, K) over the slots of an exchange."""

    def __init__(
        self, exchange: Exchange, trust: Floats | None = None, cut: Integers | None = None, came: Integers | None = None
    ) -> None:
        shape = exchange.sender.shape
        self.exchange = exchange
        self.trust = np.zeros(shape) if trust is None else trust
        self.cut = np.zeros(shape, np.int64) if cut is None else cut
        self.came = np.zeros(shape, np.int64) if came is None else came

    def add(self, coefficient: Floats, present: Any) -> None:
        """Count one round."""
        _add(coefficient, present, self.trust, self.cut, self.came)

    def arrays(self) -> dict[str, Any]:
        """The arrays for a checkpoint."""
        return {"trust": self.trust, "cut": self.cut, "came": self.came}

    def edges(self, byzantine: Integers) -> Edges:
        """The sums per edge; own slots and label-flipping receivers are left out."""
        exchange = self.exchange
        row, slot = np.nonzero(exchange.valid & ~np.isin(exchange.receiver, byzantine)[:, None])
        row, slot = row[slot > 0], slot[slot > 0]
        came = self.came[row, slot]
        return Edges(
            sender=exchange.sender[row, slot],
            receiver=exchange.receiver[row],
            cut=self.cut[row, slot],
            rounds=came,
            trust=self.trust[row, slot] / np.maximum(came, 1),
            lying=np.isin(exchange.sender[row, slot], byzantine),
        )
