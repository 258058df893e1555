"""The input of a metric: the honest workers after a round, and what stays the same over a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from byzmesh.networks import Network
    from byzmesh.problems.base import Task
    from byzmesh.rules.base import Rule
    from byzmesh.types import Array, Floats, Integers

T = TypeVar("T")


@dataclass(frozen=True, eq=False, kw_only=True)
class Setting:
    """What stays the same over a run: the network, the rule, and the bound f (N,) of each honest worker.

    weight_bound  (N,) what the rule is told that lies weigh at most (b); None: f alone
    """

    network: Network
    rule: Rule
    bound: Integers
    weight_bound: Floats | None = None
    known: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def once(self, function: Callable[[Setting], T]) -> T:
        """function(self), computed once per run."""
        if function not in self.known:
            self.known[function] = function(self)
        value: T = self.known[function]
        return value


@dataclass(frozen=True, eq=False, kw_only=True)
class Evaluation:
    """The input of a metric. Everything here is computed only when used.

    round     rounds done
    models    (N, D) the honest models, in the order of `network.honest`; for a real peer, its own (1, D)
    measures  what the task measures of each model, by name: `loss` (N,) and, where it makes sense, `accuracy` (N,)
    task      the problem, bound to the workers' data
    setting   network, rule and bounds; None for a real peer, which knows only itself
    exchange  () -> (`sent`, `coefficients`) of the last round
    arrival   () -> `arrived` of the last round
    sent_bytes  (N,) bytes of all messages that each worker sent since round 0
    rows      (N,) the rows of the task whose models these are; None: 0 .. N-1

    >>> import byzmesh as bm
    >>> task = bm.problem("quadratic").bind(workers=2)
    >>> at = Evaluation(round=0, models=np.array([[1.0], [3.0]]), measures={"loss": np.zeros(2)}, task=task)
    >>> at.average
    array([2.])
    """

    round: int
    models: Array
    measures: Mapping[str, Floats]
    task: Task
    setting: Setting | None = None
    exchange: Callable[[], tuple[Array | None, Array | None]] = field(default=lambda: (None, None), repr=False)
    arrival: Callable[[], Array | None] = field(default=lambda: None, repr=False)
    sent_bytes: Integers | None = None
    rows: Integers | None = None
    known: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def average(self) -> Array:
        """(D,) mean of the honest models, summed in float64."""
        average: Array = self.models.mean(axis=0, dtype=np.float64).astype(self.models.dtype)
        return average

    @property
    def arrived(self) -> Array | None:
        """(N, D) what arrived of it, if there is a channel; None without one, and before the first round."""
        return self.once(_arrived)

    @property
    def sent(self) -> Array | None:
        """(N, D) what the honest workers sent in the last round; None before the first."""
        return self.once(_exchanged)[0]

    @property
    def coefficients(self) -> Array | None:
        """(N, K) how much each slot of an inbox counted; None before the first round and for coordinate-wise rules."""
        return self.once(_exchanged)[1]

    def once(self, function: Callable[[Evaluation], T]) -> T:
        """function(self), computed once per evaluation: for metrics that share work."""
        if function not in self.known:
            self.known[function] = function(self)
        value: T = self.known[function]
        return value


def _arrived(at: Evaluation) -> Array | None:
    return at.arrival()


def _exchanged(at: Evaluation) -> tuple[Array | None, Array | None]:
    return at.exchange()
