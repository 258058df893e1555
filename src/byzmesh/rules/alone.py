"""A worker that aggregates call after call: what does not depend on the vectors is made once, and kept.

`bm.aggregate` on a few thousand numbers takes a twentieth of a millisecond, most of it for what is decided anew.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from byzmesh.checks import whole
from byzmesh.compiled import divided
from byzmesh.round import Round
from byzmesh.rules.arrivals import Arrivals
from byzmesh.rules.base import Rule, rules
from byzmesh.rules.gram import strategy
from byzmesh.rules.gram.pool import peaks
from byzmesh.rules.inbox import FARTHEST, own_slots
from byzmesh.rules.prepared import Prepared, prepare
from byzmesh.types import Floats


def equal_weights(neighbours: int) -> Floats:
    """(1, d + 1) the weights if none are given."""
    return np.full((1, neighbours + 1), 1.0 / (neighbours + 1))


_DTYPES = np.dtype(np.float32), np.dtype(np.float64)


class _Kept(threading.local):
    """What earlier calls of a thread have made; a prepared rule has room for one call at a time."""

    most = 64

    def __init__(self) -> None:
        self.rules: dict[str, tuple[object, Rule]] = {}
        self.prepared: dict[tuple[Any, ...], tuple[Rule, Prepared | None]] = {}


_kept = _Kept()


def named_rule(name: str) -> Rule:
    """The rule of a name without options, made once for as long as the name stands for the same."""
    entry, _ = rules.options_of(name, {})
    if name not in _kept.rules or _kept.rules[name][0] is not entry:
        _kept.rules[name] = entry, rules.build(name)
    return _kept.rules[name][1]


def prepared_alone(rule: Rule, weight: Floats, f: int, own: Any) -> Prepared | None:
    """What does not change from call to call for a rule, its f, and a worker with so many neighbours of these weights.

    None if f is too large for the rule, which is then said, where a rule cannot be prepared, and for vectors so long
    that threads divide them.
    """
    if divided(own.shape[1], strategy.COLUMNS):
        return None
    key = id(rule), f, weight.tobytes(), own.dtype.char, own.shape[1]
    if key not in _kept.prepared:
        if len(_kept.prepared) >= _kept.most:
            _kept.prepared.clear()
        _kept.prepared[key] = rule, _prepare(rule, weight, f, own)  # with the rule, so that its id stays its own
    return _kept.prepared[key][1]


def aggregate_at_once(rule: Rule, own: Any, received: Any, f: int | None, round: Round) -> Any:
    """The usual call, equal weights and arrays that need no conversion; None if it is another, or not prepared."""
    if type(own) is not np.ndarray or type(received) is not np.ndarray or own.dtype not in _DTYPES:
        return None
    if own.dtype != received.dtype or own.ndim != 1 or received.ndim != 2 or received.shape[1] != own.shape[0]:
        return None
    if not (own.flags.c_contiguous and received.flags.c_contiguous) or not (f is None or type(f) is int):
        return None
    if own.shape[0] > strategy.COLUMNS and divided(own.shape[0], strategy.COLUMNS):
        return None
    mine, bound = own[None], 1 if f is None else whole("f", f, 0)
    key = id(rule), bound, own.dtype.char, received.shape
    if key not in _kept.prepared:
        weight = equal_weights(len(received))
        _kept.prepared[key] = rule, prepared_alone(rule, weight, bound, mine)
    prepared = _kept.prepared[key][1]
    found = None if prepared is None else prepared.apply(mine, peaks(mine), round, None, received)
    return None if found is None else found[0][0]


def _prepare(rule: Rule, weight: Floats, f: int, own: Any) -> Prepared | None:
    neighbours = weight.shape[1] - 1
    if rule.consists_of is None or rule.sends != "half" or rule.needs_previous or rule.needs_loss or not neighbours:
        return None
    if rule.feasible is not None and f > min(rule.largest_f(neighbours), max(0, rule.feasible.resisted(neighbours))):
        return None
    if rule.init(np.zeros((1, 1), own.dtype)) is not None:
        return None
    arrivals = Arrivals(
        own=1,
        messages=neighbours,
        index=own_slots(*weight.shape),
        weight=weight,
        present=np.ones(weight.shape, bool),
        f=np.array([f], np.int64),
        receiver=np.zeros(1, np.int64),
        dtype=own.dtype,
    )
    return prepare(rule, arrivals, own.shape[1], FARTHEST)
