"""Step sizes: a schedule is a function from the round k = 0, 1, ... to the step.

    constant      a                        a number alone means this
    inverse-sqrt  a / sqrt(k + b)          the paper's, with a = 0.9 and b = 1
    inverse       a / (k + b)
    step          a * factor^(k // every)
    cosine        from a down to `least` over `rounds` rounds along half a cosine, after `warmup` rounds of rising
    pulsed        a / sqrt(k // every + b) in the rounds 0, every, 2 every, ...; 0 in the others

In a round whose step is 0 no gradient is computed: the workers only exchange. `pulsed` is `every` exchanges per step,
in which the models of honest workers come closer together, so that a lie has less to hide in (docs/recommendation.md).

Written in a config as a number or as a mapping, e.g. {name: inverse-sqrt, a: 0.9, b: 1}.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from byzmesh.checks import at_least, is_number, positive, whole
from byzmesh.registry import Registry

Schedule = Callable[[int], float]
schedules: Registry[Schedule] = Registry("schedule", "byzmesh.schedules")


def schedule(spec: float | str | Mapping[str, Any]) -> Schedule:
    """The schedule of a number, a name or a mapping with a name and options.

    >>> schedule({"name": "inverse-sqrt", "a": 0.9, "b": 1})(3)
    0.45
    >>> schedule(0.1)(7)
    0.1
    """
    return schedules.build(as_spec(spec))


def as_spec(spec: Any) -> Any:
    """A number alone as the constant schedule.

    >>> as_spec(0.1), as_spec("inverse")
    ({'name': 'constant', 'a': 0.1}, 'inverse')
    """
    return {"name": "constant", "a": float(spec)} if is_number(spec) else spec


@schedules.register("constant")
def constant(a: float = 0.1) -> Schedule:
    """The same step in every round."""
    positive("schedule constant: a", a)
    return lambda k: a


@schedules.register("inverse-sqrt", aliases=("sqrt",))
def inverse_sqrt(a: float = 0.9, b: float = 1.0) -> Schedule:
    """a / sqrt(k + b)."""
    positive("schedule inverse-sqrt: a", a)
    positive("schedule inverse-sqrt: b", b)
    return lambda k: a / math.sqrt(k + b)


@schedules.register("inverse")
def inverse(a: float = 1.0, b: float = 1.0) -> Schedule:
    """a / (k + b)."""
    positive("schedule inverse: a", a)
    positive("schedule inverse: b", b)
    return lambda k: a / (k + b)


@schedules.register("step", aliases=("step-decay",))
def step(a: float = 0.1, factor: float = 0.1, every: int = 1000) -> Schedule:
    """a, multiplied by `factor` after each `every` rounds."""
    positive("schedule step: a", a)
    positive("schedule step: factor", factor)
    whole("schedule step: every", every, 1)
    return lambda k: float(a * factor ** (k // every))


@schedules.register("cosine")
def cosine(a: float = 0.1, rounds: int = 1000, warmup: int = 0, least: float = 0.0) -> Schedule:
    """Rises to a in `warmup` rounds, then falls to `least` at round `rounds` along half a cosine, and stays there."""
    positive("schedule cosine: a", a)
    whole("schedule cosine: rounds", rounds, 1)
    whole("schedule cosine: warmup", warmup, 0, rounds - 1)
    at_least("schedule cosine: least", least, 0)

    def size(k: int) -> float:
        if k < warmup:
            return a * (k + 1) / (warmup + 1)
        done = min(1.0, (k - warmup) / (rounds - warmup))
        return least + (a - least) * 0.5 * (1.0 + math.cos(math.pi * done))

    return size


@schedules.register("pulsed")
def pulsed(a: float = 0.9, b: float = 1.0, every: int = 4) -> Schedule:
    """a / sqrt(k // every + b) in every `every`-th round, no step in the others: so many exchanges per step.

    >>> [round(pulsed(a=1.0, every=3)(k), 3) for k in range(7)]
    [1.0, 0.0, 0.0, 0.707, 0.0, 0.0, 0.577]
    """
    positive("schedule pulsed: a", a)
    positive("schedule pulsed: b", b)
    whole("schedule pulsed: every", every, 1)
    return lambda k: 0.0 if k % every else a / math.sqrt(k // every + b)
