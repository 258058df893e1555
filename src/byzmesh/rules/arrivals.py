"""What is known of the inboxes of a round before any vector: which rows of the pool arrive in which slots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.types import Booleans, Floats, Integers


@dataclass(frozen=True, kw_only=True)
class Arrivals:
    """The inboxes of R receivers, without their vectors.

    own, messages  numbers N and Q of the pool's own models and dense messages; see `rules.gram.pool`
    combination    messages that are combinations of own models, as in `Pool`
    index, weight, present, f, receiver, b  as in `Inbox`
    dtype          precision of the vectors
    """

    own: int
    messages: int = 0
    combination: tuple[Integers, Floats] | None = None
    index: Integers
    weight: Floats
    present: Booleans
    f: Integers
    receiver: Integers
    b: Floats | None = None
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """Rows P of the pool."""
        return self.own + self.messages + (0 if self.combination is None else len(self.combination[0]))
