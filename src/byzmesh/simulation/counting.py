"""What a run counts and measures: who was trusted, bytes, and the metrics of an evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.channels import sent_bytes
from byzmesh.errors import ConfigError
from byzmesh.rules.interop import to_host
from byzmesh.simulation.edges import EdgeCounts, PairCounts
from byzmesh.simulation.live_exchange import LiveExchange
from byzmesh.simulation.parts import DIVERGED, Parts
from byzmesh.sparse import DENSE
from byzmesh.training.evaluation import Evaluation
from byzmesh.training.metrics import BYTES, asked_for, summarise


class Counting(Parts):
    """Sums over the rounds, and evaluations."""

    def _count(self, sent: Any, coefficients: Any, present: Any) -> None:
        """End a round in which the receivers gave these coefficients to what arrived."""
        self.last = (sent, coefficients)
        if BYTES in self.measure:
            self._count_bytes()
        if coefficients is not None:
            if self.counts is None:
                self.counts = self.start_counts()
            if self.counts is not None:
                self.counts.add(coefficients, present, self.exchange)
        self.round += 1

    def _count_bytes(self) -> None:
        """Add what the workers sent in this round: a message to everybody who hears them."""
        links = self.exchange.links if isinstance(self.exchange, LiveExchange) else self.network.links
        heard = np.bincount(links.sender, minlength=self.network.n)[self.exchange.receiver]
        if self.courier is None:
            models = to_host(self.models[:0])
            self.sent_bytes += heard * sent_bytes(models.itemsize * models.shape[1])
        else:
            self.sent_bytes += self.courier.sent_bytes(self.exchange, heard)

    def start_counts(self, **counted: Any) -> EdgeCounts | PairCounts | None:
        """Sums over the edges, from zero or from those of a checkpoint; None: too many pairs to count."""
        if not self.live:
            return EdgeCounts(self.exchange, **counted)
        return PairCounts(self.exchange.receiver, self.network.n, **counted) if self.network.n <= DENSE else None

    def evaluate(self) -> dict[str, float]:
        """Measure the current honest models and append the metrics to the series."""
        honest = self._honest(self.models)
        measures = self.task.evaluate(honest)
        at = Evaluation(
            round=self.round,
            models=to_host(honest),
            measures=measures,
            task=self.task,
            setting=self.setting,
            exchange=self._exchanged,
            arrival=self._arrived,
            sent_bytes=self._honest(self.sent_bytes),
        )
        record = {"round": float(self.round), **summarise(at, self.always)}
        if not all(np.isfinite(value) for value in record.values()):
            self.status = DIVERGED
            return {}
        record |= asked_for(at, self.asked)
        for name, value in record.items():
            self.series.setdefault(name, []).append(value)
        for name, values in measures.items():
            self.per_worker.setdefault(name, []).append(np.asarray(values, np.float64))
        if BYTES in self.measure:
            self.per_worker.setdefault(BYTES, []).append(self._honest(self.sent_bytes).astype(np.float64))
        return record

    def _exchanged(self) -> tuple[Any, Any]:
        """The models that honest workers sent in the last round, and how much each slot of their inboxes counted."""
        if self.live:
            raise ConfigError("this metric compares a round with the theory of one graph; leave it out with a process")
        sent, coefficients = (part if part is None else self._honest(to_host(part)) for part in self.last)
        return sent, coefficients

    def _arrived(self) -> Any:
        """What arrived of the honest workers' messages in the last round; None without a channel."""
        if self.courier is None or self.last[0] is None:
            return None
        return self._honest(to_host(self.courier.arrived))

    def _honest(self, rows: Any) -> Any:
        """The rows of the honest workers; a copy only if there are others."""
        return rows[self.honest_row] if self.attack.poisons_data else rows
