"""Checks of user input. Each raises a `ConfigError` that names the argument, the bound and the value."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from byzmesh.errors import ConfigError, brief


def is_whole(value: Any) -> bool:
    """Whether a value is an integer (a bool is not).

    >>> is_whole(3), is_whole(True), is_whole(3.0)
    (True, False, False)
    """
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


_NUMBER = (int, float, np.integer, np.floating)


def is_number(value: Any) -> bool:
    """Whether a value is a real number (a bool is not; NaN and infinity are).

    >>> is_number(0.5), is_number(3), is_number(True), is_number("1")
    (True, True, False, False)
    """
    return isinstance(value, _NUMBER) and not isinstance(value, bool)


def require(condition: bool, message: str) -> None:
    """Raise `ConfigError` with the message unless the condition holds."""
    if not condition:
        raise ConfigError(message)


def whole(name: str, value: Any, least: int, most: int | None = None, why: str = "") -> int:
    """The value as an int, if it is a whole number of at least `least` (and at most `most`).

    >>> whole("topology ring: n", 2, 3)
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: topology ring: n must be a whole number of at least 3, got 2
    >>> whole("f", 5, 0, 3, "4 neighbours")
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: f must be a whole number from 0 to 3 (4 neighbours), got 5
    """
    if not is_whole(value) or value < least or (most is not None and value > most):
        bound = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ConfigError(f"{name} must be a whole number {bound}{f' ({why})' if why else ''}, got {brief(value)}")
    return int(value)


def positive(name: str, value: Any) -> float:
    """The value as a float, if it is a positive finite number.

    >>> positive("tau", 0)
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: tau must be a positive number, got 0
    """
    if not is_number(value) or not 0.0 < value < math.inf:
        raise ConfigError(f"{name} must be a positive number, got {brief(value)}")
    return float(value)


def at_least(name: str, value: Any, least: float) -> float:
    """The value as a float, if it is a finite number of at least `least`.

    >>> at_least("decay", -1, 0)
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: decay must be a number of at least 0, got -1
    """
    if not is_number(value) or not least <= value < math.inf:
        raise ConfigError(f"{name} must be a number of at least {least:g}, got {brief(value)}")
    return float(value)


def finite(name: str, value: Any) -> float:
    """The value as a float, if it is a finite number.

    >>> finite("attack IPM: eps", None)
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: attack IPM: eps must be a finite number, got None
    """
    if not is_number(value) or not math.isfinite(value):
        raise ConfigError(f"{name} must be a finite number, got {brief(value)}")
    return float(value)


def fraction(name: str, value: Any, *, zero: bool = True, one: bool = True) -> float:
    """The value as a float, if it is between 0 and 1; `zero` and `one` say whether the ends are allowed.

    >>> fraction("p", 0, zero=False)
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: p must be a number in (0, 1], got 0
    """
    inside = is_number(value) and (value >= 0.0 if zero else value > 0.0) and (value <= 1.0 if one else value < 1.0)
    if not inside:
        interval = f"{'[' if zero else '('}0, 1{']' if one else ')'}"
        raise ConfigError(f"{name} must be a number in {interval}, got {brief(value)}")
    return float(value)


def flag(name: str, value: Any) -> bool:
    """The value, if it is a truth value.

    >>> flag("own", "yes")
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: own must be true or false, got 'yes'
    """
    if not isinstance(value, bool | np.bool_):
        raise ConfigError(f"{name} must be true or false, got {brief(value)}")
    return bool(value)


def choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """The value, if it is one of the choices.

    >>> choice("dtype", "float16", ("float32", "float64"))
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: dtype must be float32 or float64, got 'float16'
    """
    known = list(choices)
    if value not in known:
        listed = ", ".join(known[:-1]) + (" or " if len(known) > 1 else "") + known[-1]
        raise ConfigError(f"{name} must be {listed}, got {brief(value)}")
    return str(value)
