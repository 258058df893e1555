"""Rules that work on each coordinate separately: medians and trimmed means.

    CooMed    median of the S = d + 1 values, own included
    TriMean   mean of own and the d - 2f neighbours' values without the f smallest and f largest: r_n = 1/(d-2f+1)
    MeaMed    mean of the S - f values nearest the median
    Bulyan    S - 2f vectors by repeated Krum, then MeaMed's mean of the S - 4f values nearest their median

They have no coefficients: which neighbour counts differs from coordinate to coordinate. The selection along the short
axis is the compiled network of `rules/ranks`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from byzmesh.rules.base import Inbox, Outcome, Ranking, Rule, State, settle
from byzmesh.rules.feasible import Feasible
from byzmesh.rules.gram.rule import keep_own
from byzmesh.rules.ranks import rank_mean
from byzmesh.types import Booleans, Floats, Integers


def coordinate_rule(
    name: str,
    models: Callable[[Inbox, Integers, Booleans], Any],
    *,
    feasible: Feasible | None = None,
    self_weight: Callable[[Inbox, Integers], Floats] | None = None,
    **facts: Any,
) -> Rule:
    """A rule from `models`(inbox, f (R,), present (R, K)) -> (R, D).

    For receivers that keep their own model, only that is present and f = 0.
    """

    def apply(inbox: Inbox, state: State) -> tuple[Outcome, State]:
        f, kept = settle(inbox, feasible)
        present = inbox.present
        if kept.any():
            f, present = np.where(kept, 0, f), present.copy()
            present[kept, 1:] = False
        weight = None if self_weight is None else self_weight(inbox, f)
        if weight is not None:
            weight[kept] = 1.0
        chosen = keep_own(inbox, models(inbox, f, present), kept)
        return Outcome(models=chosen, kept=kept, self_weight=weight), state

    return Rule(name, apply, coordinatewise=True, feasible=feasible, **facts)


def rank_rule(
    name: str,
    ranks: Callable[[Integers, Integers], tuple[Integers, Integers]],
    *,
    apart: bool = False,
    **facts: Any,
) -> Rule:
    """A rule that takes the mean of some ranks of each coordinate.

    ranks  (values (R,), f (R,)) -> the lowest rank (R,), and the one after the highest (R,)
    apart  its own value is not ranked but counts in the mean

    >>> import byzmesh as bm
    >>> bm.aggregate(rank_rule("smallest", lambda values, f: (0 * values, 0 * values + 1)), [3.0], [[1.0], [2.0]])
    array([1.])
    """

    def models(inbox: Inbox, f: Integers, present: Booleans) -> Any:
        return rank_mean(vectors(inbox), inbox.index, present, *ranks(present.sum(axis=1), f), apart=apart)

    rule = coordinate_rule(name, models, **facts)
    return replace(rule, consists_of=Ranking(rule.apply, ranks, apart, rule.feasible))


def vectors(inbox: Inbox) -> tuple[Any, Any]:
    """The pool as two consecutive arrays; nothing is copied unless messages are combinations."""
    return inbox.pool.own, inbox.pool.dense_messages()
