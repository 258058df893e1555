"""A rule on a server: the clients' models in, the next global model out.

Our rules are for a worker with a model of its own and d messages. A server has n clients and no training of its own,
only the global model x that it sent out. What takes the place of "its own model" follows from what a rule declares:

    symmetric      the n models are the S vectors, and x is none of them. Which of them the rule calls its own does not
                   matter; we take the first that is no farther from x than half of them are, because distances are
                   computed about that vector: a lie at 1e30 would round all others away.
    uses_weights   its own model is x, with weight 0; the clients' weights sum to 1. So x has no vote, but the rules
                   that measure from their own model (SCC, GTS, ...) measure from x, and weight that is not used
                   (LazyIOS) leaves the model where it is.
    neither        its own model is x, which counts as one honest vector (TriMean, FABA, NNA, CC): the step is shorter
                   than without it, e.g. by the factor (d - 2f) / (d - 2f + 1) for TriMean.

A rule with a memory (CC with centre="memory") remembers x, its previous output. A rule that needs the receiver's own
gradient step (SimRew, ByRDiE, DRSA with at="start") has no meaning here and is refused.

f bounds the lies among the n models of a round. With fewer than 2f + 1 of them, or fewer than the rule needs for f, the
model stays as it is: nothing could tell the lies from the rest. So if clients may be silent, n must be larger than 3f.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from byzmesh.checks import is_number, require, whole
from byzmesh.errors import ConfigError, InfeasibleBound
from byzmesh.round import FIRST, Round
from byzmesh.rules.aggregate import BadMessage, aggregate, rule
from byzmesh.rules.base import Rule
from byzmesh.types import Array, Floats

make_rule = rule


class ServerRule:
    """A rule and its f, ready for round after round.

    rule     a name, a mapping with `name` and options, or a `Rule`; options of the rule may follow by keyword
    f        how many of a round's models may be lies
    loss     vector -> loss on data of the server's own, for the rules that need it (UBAR, Zeno)

    >>> import numpy as np
    >>> ios = ServerRule("ios", f=1)
    >>> ios(np.zeros(2), [np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([1.0, 1.0]), np.array([90.0, -90.0])])
    array([0.66666667, 0.66666667])
    >>> ios(np.zeros(2), [np.array([1.0, 0.0]), None, None, np.array([90.0, -90.0])]) is None  # which of two lies?
    True
    """

    def __init__(
        self,
        rule: str | Rule | Mapping[str, Any] | Callable[..., Any],
        f: int = 1,
        *,
        loss: Callable[[Any], float] | None = None,
        **options: Any,
    ) -> None:
        self.rule = make_rule(rule, **options)
        self.f = whole("f", f, 0)
        self.loss = loss
        name = self.rule.name
        if self.rule.needs_previous or self.rule.sends != "half":
            raise ConfigError(f"rule {name} needs a gradient step of its own, and a server takes none; use e.g. ios")
        if self.rule.needs_loss and loss is None:
            raise ConfigError(f"rule {name} needs the loss on data of the server: pass loss=, a function of a vector")
        self.remembers = self.rule.init(np.zeros((1, 1))) is not None

    def check(self, clients: int) -> None:
        """Raise if f is too large for this many clients even if all of them answer: to be called before a round.

        >>> ServerRule("krum", f=2).check(4)
        Traceback (most recent call last):
        byzmesh.errors.ConfigError: f must be less than half of the 4 clients, got 2; use f <= 1 or more clients
        """
        require(
            2 * self.f < clients or self.f == 0,
            f"f must be less than half of the {clients} clients, got {self.f}; "
            f"use f <= {max(0, (clients - 1) // 2)} or more clients",
        )
        neighbours = self._neighbours(clients)
        largest = self.rule.largest_f(neighbours)
        if self.f > largest:
            raise InfeasibleBound(rule=self.rule.name, worker=0, f=self.f, largest=largest, neighbours=neighbours)

    def __call__(
        self,
        model: Any,
        updates: Sequence[Any] | Array,
        counts: Sequence[float] | Array | None = None,
        round: Round = FIRST,
    ) -> Array | None:
        """The next global model (D,), or None if too few models arrived: then it stays as it is.

        model    (D,) the global model that the clients started from
        updates  n vectors (D,), their models after training, in the order of the clients' ids; None for a missing one.
                 A vector of another shape, or that is not finite, counts as missing.
        counts   n numbers, e.g. of samples, that weigh the clients for rules that use weights (default: equal). They
                 are the clients' own claims: none counts more than the f + 1st largest, which an honest client has.
        """
        model = np.asarray(model)
        here = [place for place, update in enumerate(updates) if usable(update, model.shape)]
        shares = np.ones(len(updates)) if counts is None else self._shares(counts, len(updates))
        here = [place for place in here if shares[place] > 0.0]
        neighbours = self._neighbours(len(here))
        if len(here) <= 2 * self.f or not here or self.f > self.rule.largest_f(neighbours):
            return None
        rows = np.stack([np.asarray(updates[place], dtype=model.dtype) for place in here])
        own, weights = model, None
        if self.rule.symmetric:
            first = nearest_half(rows, model)
            own, rows = rows[first], np.delete(rows, first, axis=0)
        elif self.rule.uses_weights:
            weights = np.concatenate([[0.0], shares[here] / shares[here].sum()])
        facts: dict[str, Any] = {"centre": model} if self.remembers else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BadMessage)
            mixed: Array = aggregate(
                self.rule, own, rows, weights=weights, f=self.f, round=round, loss=self.loss, **facts
            )
        return mixed

    def _neighbours(self, clients: int) -> int:
        """How many messages the rule sees if this many clients answer."""
        return clients - 1 if self.rule.symmetric else clients

    def _shares(self, counts: Sequence[float] | Array, clients: int) -> Floats:
        """(n,) the claims, at most the f + 1st largest; 0 for what is not a positive finite number."""
        require(len(counts) == clients, f"counts must have one entry per client, {clients}, got {len(counts)}")
        claims = [float(count) if is_number(count) else 0.0 for count in counts]
        shares = np.array([claim if np.isfinite(claim) and claim > 0.0 else 0.0 for claim in claims])
        capped: Floats = np.minimum(shares, np.sort(shares)[::-1][min(self.f, clients - 1)])
        return capped


def usable(update: Any, shape: tuple[int, ...]) -> bool:
    """Whether an update is a vector of this shape with finite real numbers.

    >>> usable(np.zeros(2), (2,)), usable([np.nan, 0.0], (2,)), usable("lie", (2,))
    (True, False, False)
    """
    if update is None or np.shape(update) != shape:
        return False
    vector = np.asarray(update)
    return vector.dtype.kind in "fiu" and bool(np.isfinite(vector).all())


def nearest_half(rows: Array, model: Array) -> int:
    """The first row that is no farther from the model than half of the rows are.

    >>> nearest_half(np.array([[9.0], [2.0], [1.0]]), np.zeros(1))
    1
    """
    with np.errstate(over="ignore"):
        distance = np.array([np.linalg.norm(row.astype(np.float64) - model) for row in rows])
    middle = np.sort(distance)[(len(rows) - 1) // 2]
    return int(np.flatnonzero(distance <= middle)[0])
