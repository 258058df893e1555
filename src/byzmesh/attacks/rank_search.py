"""Lies tried on a rule that takes the mean of some ranks of each coordinate, without filling an inbox for each.

If k liars tell a victim the same value v and its honest values are h_0 <= ... <= h_{J-1}, the value of rank i among the
J + k is

    max(h_{i-k}, min(h_i, v)),        h_i = -infinity for i < 0 and +infinity for i >= J,

so the honest values are sorted once for all lies that are tried. Ranks i, i + k, ..., l move v into intervals that
touch: together they are v moved into [h_{i-k}, h_l], plus h_i + h_{i+k} + ... + h_{l-k}. Only the first part depends on
the lie, so that a trial costs O(k D), whatever the number of ranks that count. All values are relative to the honest
average xbar_n: what is asked is how far from it the rule's output comes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.attacks.base import Ranks
from byzmesh.attacks.parts import BLOCK
from byzmesh.compiled import exact, fast
from byzmesh.types import Floats, Integers

MOST = 32
"""Honest values up to which every pair is compared to sort them; more are left to the rule itself."""


def ranked_damage(
    models: Any, ranks: Ranks, centre: Any, messages: Any, goal: int | None, which: Integers, factor: Floats
) -> Floats:
    """(T, V) how far the output is from `centre` (V, D) if victim v is told centre + factor (message - centre).

    messages  (P, V, D), of which trial t uses which[t, v] with factor[t, v]
    goal      number of the message towards which the output shall move: its inner product with that; None: the length
    """
    out = np.empty(which.shape)
    place = -1 if goal is None else goal
    _try_all(
        *(models, ranks.own, ranks.honest, ranks.count, ranks.lies, ranks.lower, ranks.upper, ranks.apart),
        *(centre, messages, place, which, factor.astype(models.dtype), out),
    )
    return np.sqrt(out) if goal is None else out


@exact
def _relative(line: Any, base: Any, out: Any) -> None:
    for lane in range(base.size):
        out[lane] = line[lane] - base[lane]


@exact
def _order(a: Any, b: Any) -> None:
    for lane in range(a.size):
        x, y = a[lane], b[lane]
        a[lane] = x if x < y else y
        b[lane] = x if x > y else y


@exact
def _add(total: Any, a: Any) -> None:
    for lane in range(total.size):
        total[lane] += a[lane]


@fast
def _add_between(total: Any, factor: Any, push: Any, low: Any, high: Any) -> None:
    """Add factor push, moved into [low, high]."""
    for lane in range(total.size):
        x = factor * push[lane]
        x = x if x < high[lane] else high[lane]
        total[lane] += x if x > low[lane] else low[lane]


@fast
def _product_between(along: Any, factor: Any, push: Any, low: Any, high: Any) -> Any:
    """The inner product of factor push, moved into [low, high], with `along`."""
    total = along.dtype.type(0.0)
    for lane in range(along.size):
        x = factor * push[lane]
        x = x if x < high[lane] else high[lane]
        total += (x if x > low[lane] else low[lane]) * along[lane]
    return total


@fast
def _product(a: Any, b: Any) -> Any:
    total = a.dtype.type(0.0)
    for lane in range(a.size):
        total += a[lane] * b[lane]
    return total


@exact
def _try_all(
    models: Any,
    own: Any,
    honest: Any,
    count: Any,
    lies: Any,
    lower: Any,
    upper: Any,
    apart: bool,
    centre: Any,
    messages: Any,
    goal: int,
    which: Any,
    factor: Any,
    out: Any,
) -> None:
    """`ranked_damage`, squared if there is no goal; victims with lower = upper keep their own model."""
    width = min(BLOCK, models.shape[1])
    values = np.empty((honest.shape[1] + 2, width), models.dtype)
    above, below = honest.shape[1], honest.shape[1] + 1
    values[above], values[below] = np.inf, -np.inf
    push = np.empty((messages.shape[0], width), models.dtype)
    constant, total = np.empty(width, models.dtype), np.empty(width, models.dtype)
    out[:] = 0.0
    for victim in range(len(own)):
        ranks, told, known = upper[victim] - lower[victim], lies[victim], count[victim]
        share = 1.0 / (ranks + int(apart or ranks == 0))
        for left in range(0, models.shape[1], width):
            size = min(width, models.shape[1] - left)
            base = centre[victim, left : left + size]
            for slot in range(known):
                _relative(models[honest[victim, slot], left : left + size], base, values[slot])
                for place in range(slot, 0, -1):
                    _order(values[place - 1, :size], values[place, :size])
            for number in range(len(push)):
                _relative(messages[number, victim, left : left + size], base, push[number])
            constant[:] = 0.0
            if apart or ranks == 0:
                _relative(models[own[victim], left : left + size], base, constant)
            for rank in range(lower[victim], upper[victim] - told):
                _add(constant[:size], values[rank])
            along = push[goal, :size]
            fixed = _product(constant[:size], along)
            for trial in range(len(which)):
                lie, times = push[which[trial, victim]], factor[trial, victim]
                if goal >= 0:
                    done = float(fixed)
                    for first in range(lower[victim], min(lower[victim] + told, upper[victim])):
                        last = first + (upper[victim] - 1 - first) // told * told
                        low = values[first - told if first >= told else below]
                        high = values[last if last < known else above]
                        done += _product_between(along, times, lie, low, high)
                    out[trial, victim] += share * done
                else:
                    total[:size] = constant[:size]
                    for first in range(lower[victim], min(lower[victim] + told, upper[victim])):
                        last = first + (upper[victim] - 1 - first) // told * told
                        low = values[first - told if first >= told else below]
                        high = values[last if last < known else above]
                        _add_between(total[:size], times, lie, low, high)
                    out[trial, victim] += share * share * _product(total[:size], total[:size])
