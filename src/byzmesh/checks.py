"""Checks that the topologies share."""

from __future__ import annotations

from typing import Any

from byzmesh.errors import ConfigError
from byzmesh.network.byzantine import is_whole


def at_least(topology: str, option: str, value: Any, least: int) -> None:
    """Raise unless the option is a whole number of at least `least`.

    >>> at_least("ring", "n", 2, 3)
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: topology ring: n must be a whole number of at least 3, got 2
    """
    if not is_whole(value) or value < least:
        raise ConfigError(f"topology {topology}: {option} must be a whole number of at least {least}, got {value!r}")


def within(topology: str, option: str, value: Any, low: int, high: int, why: str) -> None:
    """Raise unless the option is a whole number from low to high."""
    if not is_whole(value) or not low <= value <= high:
        raise ConfigError(
            f"topology {topology}: {option} must be a whole number from {low} to {high} ({why}), got {value!r}"
        )


def probability(topology: str, option: str, value: Any, *, zero: bool = False) -> None:
    """Raise unless the option is in (0, 1], or [0, 1] where zero is allowed."""
    number = isinstance(value, float) or is_whole(value)
    if not number or not (0.0 <= value <= 1.0 if zero else 0.0 < value <= 1.0):
        interval = "[0, 1]" if zero else "(0, 1]"
        raise ConfigError(f"topology {topology}: {option} must be a number in {interval}, got {value!r}")
