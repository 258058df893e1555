"""Step sizes: a schedule is a function from the round k = 0, 1, ... to the step.

    constant      a                        a number alone means this
    inverse-sqrt  a / sqrt(k + b)          the paper's, with a = 0.9 and b = 1
    inverse       a / (k + b)
    step          a * factor^(k // every)

Written in a config as a number or as a mapping, e.g. {name: inverse-sqrt, a: 0.9, b: 1}.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from byzmesh.errors import ConfigError
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
    if isinstance(spec, (int, float)) and not isinstance(spec, bool):
        return constant(float(spec))
    if isinstance(spec, str):
        return schedules.make(spec)
    if not isinstance(spec, Mapping) or "name" not in spec:
        raise ConfigError(f"schedule must be a number, a name or a mapping with a name, got {spec!r}")
    options = dict(spec)
    return schedules.make(options.pop("name"), **options)


@schedules.register("constant")
def constant(a: float = 0.1) -> Schedule:
    """The same step in every round."""
    _check("constant", a=a)
    return lambda k: a


@schedules.register("inverse-sqrt", aliases=("sqrt",))
def inverse_sqrt(a: float = 0.9, b: float = 1.0) -> Schedule:
    """a / sqrt(k + b)."""
    _check("inverse-sqrt", a=a, b=b)
    return lambda k: a / math.sqrt(k + b)


@schedules.register("inverse")
def inverse(a: float = 1.0, b: float = 1.0) -> Schedule:
    """a / (k + b)."""
    _check("inverse", a=a, b=b)
    return lambda k: a / (k + b)


@schedules.register("step", aliases=("step-decay",))
def step(a: float = 0.1, factor: float = 0.1, every: int = 1000) -> Schedule:
    """a, multiplied by `factor` after each `every` rounds."""
    _check("step", a=a, factor=factor, every=every)
    if every != int(every):
        raise ConfigError(f"every of schedule step must be a whole number of rounds, got {every!r}")
    return lambda k: float(a * factor ** (k // int(every)))


def _check(name: str, **numbers: float) -> None:
    for option, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
            raise ConfigError(f"{option} of schedule {name} must be a positive number, got {value!r}")
