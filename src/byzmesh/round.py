"""The context of a round: what rules and attacks may know besides the vectors."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Round:
    """One round of a run.

    number     0, 1, ...: how many rounds came before
    total      how many rounds the run has; 0 if unknown
    step_size  of the gradient step at the start of the round
    seed       of the run: every draw is a function of the seed, a purpose, the worker and the round's number

    >>> Round(number=3, total=100, step_size=0.45, seed=7).progress
    0.03
    """

    number: int = 0
    total: int = 0
    step_size: float = 1.0
    seed: int = 0

    @property
    def progress(self) -> float:
        """Fraction of the run that is over; 0 if its length is unknown."""
        return self.number / self.total if self.total else 0.0


FIRST = Round()
"""The default: the first round of a run of unknown length, with a step of size 1."""
