"""Schedules against their formulas."""

from __future__ import annotations

import math
from typing import Any

import pytest

from byzmesh.errors import ConfigError
from byzmesh.training.schedules import schedule, schedules


@pytest.mark.parametrize(
    ("spec", "formula"),
    [
        (0.3, lambda k: 0.3),
        (2, lambda k: 2.0),
        ({"name": "constant", "a": 0.2}, lambda k: 0.2),
        ("inverse-sqrt", lambda k: 0.9 / math.sqrt(k + 1)),
        ({"name": "inverse-sqrt", "a": 0.5, "b": 4}, lambda k: 0.5 / math.sqrt(k + 4)),
        ({"name": "inverse", "a": 3, "b": 10}, lambda k: 3 / (k + 10)),
        ({"name": "step-decay", "a": 1.0, "factor": 0.5, "every": 10}, lambda k: 0.5 ** (k // 10)),
        ({"name": "pulsed", "a": 2, "b": 3}, lambda k: 0.0 if k % 4 else 2 / math.sqrt(k // 4 + 3)),
        ({"name": "pulsed", "every": 1}, lambda k: 0.9 / math.sqrt(k + 1)),
    ],
)
def test_schedules_follow_their_formulas(spec: Any, formula: Any) -> None:
    rate = schedule(spec)
    for k in (0, 1, 9, 10, 11, 25, 49_999):
        assert rate(k) == pytest.approx(formula(k))


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (0, "schedule constant: a must be a positive number, got 0"),
        (float("nan"), "schedule constant: a must be a positive number, got nan"),
        (True, "schedule must be a name or a mapping"),
        ({"a": 1}, "a mapping needs the key 'name'"),
        ({"name": "inverse-sqrt", "b": -1}, "schedule inverse-sqrt: b must be a positive number, got -1"),
        ({"name": "step", "every": 2.5}, "schedule step: every must be a whole number of at least 1, got 2.5"),
        ({"name": "pulsed", "every": 0}, "schedule pulsed: every must be a whole number of at least 1, got 0"),
        ({"name": "invers"}, "unknown schedule 'invers': did you mean 'inverse'"),
        ({"name": "inverse", "c": 1}, "schedule inverse has no option 'c'"),
    ],
)
def test_schedule_mistakes_are_named(spec: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        schedule(spec)


def test_schedules_are_listed() -> None:
    assert schedules.names() == ["constant", "cosine", "inverse", "inverse-sqrt", "pulsed", "step"]


def test_cosine_rises_then_falls_to_the_least_and_stays() -> None:
    size = schedule({"name": "cosine", "a": 0.8, "rounds": 12, "warmup": 4, "least": 0.1})
    assert [round(size(k), 6) for k in (0, 3, 4, 8, 12, 99)] == [0.16, 0.64, 0.8, 0.45, 0.1, 0.1]
    with pytest.raises(ConfigError, match="warmup"):
        schedule({"name": "cosine", "rounds": 5, "warmup": 5})
