"""Metrics: what an evaluation records, and how a series is shown."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from byzmesh.errors import ConfigError, UnknownName
from byzmesh.problems import problem
from byzmesh.training.evaluation import Evaluation
from byzmesh.training.metrics import (
    ALWAYS,
    Metric,
    asked_for,
    canonical_measures,
    metric_of,
    metrics,
    register_metric,
    summarise,
)

TASK = problem("quadratic", dimension=2).bind(workers=2)
ALL_WAYS = [metrics.build(name) for name in ALWAYS]


def evaluation(**measures: list[float]) -> Evaluation:
    found = {name: np.array(values) for name, values in measures.items()}
    return Evaluation(round=3, models=np.array([[0.0, 0.0], [2.0, 0.0]]), measures=found, task=TASK)


def test_what_is_recorded_unasked_and_in_which_order() -> None:
    summary = summarise(evaluation(accuracy=[0.2, 0.8], loss=[1.0, 3.0], backdoor=[0.0, 1.0]), ALL_WAYS)
    assert list(summary.items()) == [
        ("accuracy", 0.5),
        ("loss", 2.0),
        ("backdoor", 0.5),
        ("worst_accuracy", 0.2),
        ("consensus_error", 1.0),
        ("disagreement", 1.0),
    ]
    assert list(summarise(evaluation(loss=[1.0]), ALL_WAYS)) == ["loss", "consensus_error", "disagreement"]


def test_a_metric_may_give_several_series_and_must_give_numbers() -> None:
    at = evaluation(loss=[1.0, 3.0])

    def metric(value: Any) -> Metric:
        return Metric(name="mine", compute=lambda at: value)

    assert asked_for(at, [metric(2), metric({"mine_a": 1, "mine_b": np.float32(0.5)})]) == {
        "mine": 2.0,
        "mine_a": 1.0,
        "mine_b": 0.5,
    }
    with pytest.raises(ConfigError, match="metric mine has no value for this problem and rule; take it out of measure"):
        asked_for(at, [metric(None)])
    with pytest.raises(ConfigError, match="metric mine must give a number, a mapping of names to numbers, or None"):
        asked_for(at, [metric([1.0, 2.0])])


def test_shared_work_is_done_once_and_only_if_asked_for() -> None:
    calls: list[str] = []

    def exchange() -> tuple[Any, Any]:
        calls.append("exchange")
        return np.ones((2, 2)), None

    at = Evaluation(round=1, models=np.zeros((2, 2)), measures={}, task=TASK, exchange=exchange)
    assert not calls
    assert at.sent is not None and at.coefficients is None and at.sent is at.sent
    assert calls == ["exchange"]
    assert at.average.dtype == np.float64 and at.average.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "my-metric"}, "name 'my-metric' must be letters, digits and underscores"),
        ({"name": "round"}, "not 'round'"),
        ({"unit": "%"}, "metric mine: unit must be percent or none, got '%'"),
        ({"direction": "left"}, "direction must be up, down or none, got 'left'"),
        ({"scale": "logarithmic"}, "scale must be linear or log, got 'logarithmic'"),
    ],
)
def test_mistakes_in_a_metric_are_named(change: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        register_metric(**{"name": "mine", **change})(lambda at: 0.0)  # type: ignore[arg-type]


def test_the_code_of_a_metric_is_its_function() -> None:
    with metrics.temporary():

        @register_metric("mine")
        def mine(at: Evaluation) -> float:
            """A metric for this test."""
            return 1.0

        entry = metrics.entry("mine")
        assert inspect.unwrap(entry.factory) is mine and entry.options == {}
        assert entry.summary == "A metric for this test."


def test_showing_metrics_loads_no_kernels() -> None:
    code = "import sys; from byzmesh.training.metrics import metric_of; metric_of('gradient'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numba", "scipy", "torch", "networkx"} & set(done.stdout.split())


def test_names_in_a_config() -> None:
    assert canonical_measures(["gradient", "Class-Accuracy", "loss", "gradient"]) == ["class_accuracy", "gradient"]
    with pytest.raises(UnknownName, match="unknown metric 'gradiant': did you mean 'gradient'"):
        canonical_measures(["gradiant"])


def test_how_series_are_shown() -> None:
    assert metric_of("accuracy").text(0.91666) == "91.67%"
    assert metric_of("consensus_error").text(3.214e-8) == "3.214e-08"
    assert metric_of("class_accuracy_7").unit == "percent"
    unknown = metric_of("novelty")
    assert (unknown.label, unknown.scale, unknown.direction, unknown.unit) == ("novelty", "linear", "none", "none")
    assert metric_of("lossy").unit == "none" and not metric_of("lossy").overview, "no family of a metric called loss"
