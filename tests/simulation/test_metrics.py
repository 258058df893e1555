"""What a run records by default and on request, against numbers computed by hand from the final models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.errors import ConfigError, UnknownName
from byzmesh.networks import network
from byzmesh.problems.base import KnowsItsData
from byzmesh.problems.linear.task import LinearTask
from byzmesh.rules.base import rules
from byzmesh.theory.contraction import proved_contraction
from byzmesh.theory.measured import round_report
from byzmesh.theory.mixing import virtual_mixing
from tests.simulation.small import config, write_data

UNASKED = ["round", "accuracy", "loss", "worst_accuracy", "consensus_error", "disagreement"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("data"))


def right_answers(models: np.ndarray[Any, Any], data: Path) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """(K, T) whether each softmax model (K, D) is right about each test sample, and the labels (T,)."""
    with np.load(data) as held:
        x, y = held["test_x"], held["test_y"]
    weights, bias = models[:, :-4].reshape(len(models), 8, 4), models[:, -4:]
    return (x @ weights + bias[:, None]).argmax(axis=2) == y, y


def test_metrics_on_request_equal_those_by_hand(data: Path) -> None:
    run = bm.simulate(**config(data, measure=["average_accuracy", "class_accuracy", "gradient"], attack="gaussian"))
    asked = ["average_accuracy", *(f"class_accuracy_{label}" for label in range(4)), "gradient"]
    assert list(run.metrics) == [*UNASKED, *asked]
    right, labels = right_answers(run.models, data)
    assert run.metrics["accuracy"][-1] == pytest.approx(right.mean())
    assert run.metrics["worst_accuracy"][-1] == pytest.approx(right.mean(axis=1).min())
    assert run.metrics["average_accuracy"][-1] == right_answers(run.models.mean(axis=0)[None], data)[0].mean()
    for label in range(4):
        assert run.metrics[f"class_accuracy_{label}"][-1] == pytest.approx(right[:, labels == label].mean())
    plain = bm.simulate(**config(data, attack="gaussian"))
    assert list(plain.metrics) == UNASKED
    for name, values in plain.metrics.items():
        assert values.tobytes() == run.metrics[name].tobytes()


@pytest.mark.parametrize("partition", ["iid", "one-class"])
def test_accuracy_on_own_data_equals_that_by_hand(data: Path, partition: str) -> None:
    """Every worker's own model on its own samples; rows name the workers whose models are given."""
    problem = {"name": "softmax", "dataset": str(data), "batch": 8, "partition": partition}
    prepared = bm.prepare(
        **config(data, problem=problem, measure="own_accuracy", network={"name": "ring", "n": 4}, f=0, attack="none")
    )
    run, task = prepared.run(), prepared.task
    assert isinstance(task, KnowsItsData) and isinstance(task, LinearTask)
    with np.load(data) as held:
        x, y = held["train_x"], held["train_y"]
    right = []
    for worker, model in enumerate(run.models):
        weights, bias = model[:-4].reshape(8, 4), model[-4:]
        right.append(np.mean([np.argmax(x[k] @ weights + bias) == y[k] for k in task.split.share(worker)]))
    assert run.metrics["own_accuracy"][-1] == pytest.approx(np.mean(right))
    assert run.metrics["own_accuracy_worst"][-1] == min(right)
    few = np.array([3, 1])
    np.testing.assert_allclose(task.own_accuracy(run.models[few], few), np.array(right)[few])


@pytest.mark.parametrize("problem", ["logistic", "least-squares"])
def test_classes_of_two(data: Path, problem: str) -> None:
    measured = {"name": problem, "dataset": str(data), "batch": 8}
    run = bm.simulate(**config(data, problem=measured, measure="class_accuracy", attack="none"))
    halves = [run.metrics[f"class_accuracy_{label}"][-1] for label in (0, 1)]
    assert np.mean(halves) == pytest.approx(run.metrics["accuracy"][-1]), "as many odd labels as even ones"
    assert "class_accuracy_2" not in run.metrics


def test_a_metric_without_a_value_is_reported_before_the_first_round() -> None:
    plain: dict[str, Any] = {
        "problem": "quadratic",
        "network": {"name": "ring", "n": 5},
        "rule": "trimean",
        "rounds": 3,
    }
    for name in ("average_accuracy", "class_accuracy", "own_accuracy", "chi2", "backdoor"):
        with pytest.raises(ConfigError, match=f"metric {name} has no value for this problem and rule"):
            bm.simulate(**plain, measure=[name])
    with pytest.raises(UnknownName, match="unknown metric 'acuracy': did you mean 'accuracy'"):
        bm.simulate(**plain, measure=["acuracy"])


@pytest.mark.parametrize(("rule", "names"), [("ios", {"contraction", "violations", "chi2"}), ("trimean", None)])
def test_certificate_holds_the_round_against_the_theory(data: Path, rule: str, names: set[str] | None) -> None:
    raw = config(data, rule=rule, attack="gaussian", measure=["certificate"], evaluate_every=1, rounds=3)
    simulation = bm.prepare(**raw)
    run = simulation.run()
    assert set(run.metrics) - set(UNASKED) == (names or {"contraction", "violations"})
    net, made = network("paper/two-castle"), rules.build(rule)
    proof = proved_contraction(net, made, net.bounds("exact"))
    sent, coefficients = simulation.last
    slots = None if coefficients is None else coefficients[:, : net.layout.sender.shape[1]]
    report = round_report(net, sent, run.models, slots, virtual_mixing(net, made).matrix, proof)
    assert run.metrics["contraction"].tolist()[0] == 0.0
    assert run.metrics["contraction"].tolist()[-1] == report.ratio.max() > 0.0
    assert run.metrics["violations"].tolist()[-1] == len(report.violations)
    if names:
        assert run.metrics["chi2"].tolist()[-1] == report.chi2


def test_final_is_the_mean_of_the_last_tenth(data: Path) -> None:
    run = bm.simulate(**config(data, rounds=20, evaluate_every=1))
    accuracy = run.metrics["accuracy"]
    assert run.final() == run.final("accuracy") == np.mean(accuracy[-2:])
    assert run.final(last=3) == np.mean(accuracy[-3:])
    assert run.final(last=100) == np.mean(accuracy[1:]), "never the start"
    with pytest.raises(UnknownName, match="the run has no metric 'acuracy': did you mean 'accuracy'"):
        run.final("acuracy")
