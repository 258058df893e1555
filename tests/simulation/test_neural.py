"""Whole runs of modules: resume, tensors that stay on their device, several local steps, clipping."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import byzmesh as bm
from byzmesh.problems.neural.task import TorchTask
from byzmesh.training.local import LocalOptions, local_update

MODULE = {"name": "mlp", "hidden": [6]}


def prepared(**changes: Any) -> bm.Simulation:
    problem = {"name": "torch", "module": MODULE, "partition": "one-class", "test_samples": 100, "batch": 8}
    config = {
        "problem": {**problem, **changes.pop("problem", {})},
        "network": "paper/two-castle",
        "rule": "ios",
        "attack": "sign-flipping",
        "rounds": 8,
        "evaluate_every": 4,
        "step": 0.05,
        "local": {"decay": 0.001, "momentum": "exponential"},
    }
    return bm.prepare(**{**config, **changes})


@pytest.mark.parametrize("attack", ["gaussian", "label-flipping", "backdoor"])
def test_resume_equals_an_uninterrupted_run(attack: str, tmp_path: Path) -> None:
    whole = prepared(attack=attack).run()
    first = prepared(attack=attack)
    for _ in range(5):
        first.advance()
    first.save(tmp_path / "checkpoint")
    second = prepared(attack=attack)
    second.restore(tmp_path / "checkpoint")
    after = second.run()
    np.testing.assert_array_equal(after.models, whole.models)
    for name, values in whole.metrics.items():
        np.testing.assert_array_equal(after.metrics[name], values)


def test_a_checkpoint_pins_the_way_of_the_gradients(tmp_path: Path) -> None:
    first = prepared(attack="none")
    task = first.task
    assert isinstance(task, TorchTask)
    task.chosen[10] = "loop"
    first.advance()
    first.save(tmp_path / "checkpoint")
    second = prepared(attack="none")
    second.restore(tmp_path / "checkpoint")
    assert isinstance(second.task, TorchTask) and second.task.chosen == {10: "loop"}


@pytest.mark.parametrize(
    ("rule", "attack"),
    [
        ("ios", "sign-flipping"),
        ("ios", "gaussian"),
        ("reprieve", "alie"),
        ("coomed", "isolation"),
        ("geomed", "nan"),
        ({"name": "cc", "tau": 1.0}, "label-flipping"),
        ("simrew", "sample-duplicating"),
        ("ubar", "sign-flipping"),
        ("krum", {"name": "adaptive", "horizon": 1}),
    ],
)
def test_models_that_stay_on_a_device(
    rule: Any, attack: Any, few_digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a GPU would run, here with CPU tensors that never become NumPy arrays."""
    config = {"rule": rule, "attack": attack, "dtype": "float64", "measure": ["gradient"]}
    here = prepared(**config, problem={"dataset": str(few_digits)}).run()
    monkeypatch.setattr(TorchTask, "_out", lambda self, tensor: tensor)
    there = prepared(**config, problem={"dataset": str(few_digits)})
    assert isinstance(there.models, torch.Tensor)
    for _ in range(5):
        there.advance()
    assert isinstance(there.models, torch.Tensor)
    there.save(tmp_path / "checkpoint")
    resumed = prepared(**config, problem={"dataset": str(few_digits)})
    resumed.restore(tmp_path / "checkpoint")
    assert isinstance(resumed.models, torch.Tensor)
    after = resumed.run()
    np.testing.assert_allclose(after.models, here.models, atol=1e-9)
    for name in ("loss", "gradient"):
        np.testing.assert_allclose(after.metrics[name], here.metrics[name], rtol=1e-6)


def test_a_rule_may_return_what_it_was_given() -> None:
    """The models must not be the buffer that the next round's gradients go to."""

    def apply(inbox: bm.Inbox, state: Any) -> Any:
        outcome, state = plain.apply(inbox, state)
        return replace(outcome, models=inbox.pool.own), state

    plain = bm.rule("nocomm")
    lazy = replace(plain, apply=apply)
    runs = [prepared(rule=rule, attack="none") for rule in (plain, lazy)]
    np.testing.assert_array_equal(runs[0].run().models, runs[1].run().models)


def test_local_steps_are_steps_with_batches_of_their_own() -> None:
    """On one worker alone, 3 steps in each of 4 rounds are 12 rounds of one step."""
    alone = {"network": {"name": "complete", "n": 2, "byzantine": []}, "rule": "nocomm", "attack": "none"}
    many = prepared(**alone, rounds=12, local={"decay": 0.0, "momentum": "heavy-ball"}).run()
    few = prepared(**alone, rounds=4, local={"decay": 0.0, "momentum": "heavy-ball", "steps": 3}).run()
    np.testing.assert_array_equal(few.models, many.models)


def test_steps_and_clip_leave_the_names_of_old_runs_alone() -> None:
    assert set(LocalOptions().written()) == {"decay", "momentum", "beta"}
    assert LocalOptions(steps=2, clip=1).written()["clip"] == 1.0
    plain, clipped = prepared().config["local"], prepared(local={"steps": 2, "clip": 1}).config["local"]
    assert set(clipped) - set(plain) == {"steps", "clip"}


@pytest.mark.parametrize("momentum", ["none", "heavy-ball"])
def test_clipping(momentum: str) -> None:
    update = local_update(LocalOptions(momentum=momentum, clip=2.0))
    models = np.zeros((2, 3))
    gradients = np.array([[30.0, 0.0, 40.0], [0.0, 1.0, 0.0]])
    for kind in (np.asarray, torch.from_numpy):
        given = kind(gradients.copy())
        out = kind(np.empty((2, 3)))
        update.apply(kind(models.copy()), given, 1.0, update.init(kind(models.copy())), out)
        np.testing.assert_allclose(np.asarray(out), [[-1.2, 0.0, -1.6], [0.0, -1.0, 0.0]])
        np.testing.assert_array_equal(np.asarray(given), gradients)
    with pytest.raises(bm.errors.ConfigError, match="clip must be a positive number, got 0"):
        LocalOptions(clip=0)
    with pytest.raises(bm.errors.ConfigError, match=r"steps must be a whole number of at least 1, got 1\.5"):
        LocalOptions(steps=1.5)  # type: ignore[arg-type]


def test_metrics_of_classes_and_of_the_average_model() -> None:
    run = prepared(measure=["class_accuracy", "average_accuracy"]).run()
    task = prepared().task
    assert isinstance(task, TorchTask)
    labels = task.samples.test_y.cpu().numpy()
    counts = np.bincount(labels, minlength=10)
    by_class = np.array([run.metrics[f"class_accuracy_{label}"][-1] for label in range(10)])
    assert by_class @ counts / counts.sum() == pytest.approx(run.metrics["accuracy"][-1])
    average = task.evaluate(run.models.mean(axis=0, dtype=np.float64).astype(np.float32)[None])
    assert run.metrics["average_accuracy"][-1] == average["accuracy"][0]


def test_accuracy_on_own_data() -> None:
    """The module itself on every worker's samples, one by one."""
    simulation = prepared(measure=["own_accuracy"])
    run, task = simulation.run(), simulation.task
    assert isinstance(task, TorchTask)
    right = []
    for worker, model in enumerate(run.models):
        torch.nn.utils.vector_to_parameters(torch.from_numpy(np.asarray(model)), task.skeleton.parameters())
        xs, ys = zip(*task.samples.share(worker), strict=True)
        with torch.no_grad():
            right.append(
                float(
                    np.mean(
                        [
                            int(task.skeleton(x[None]).argmax()) == int(y)
                            for x, y in zip(torch.cat(xs), torch.cat(ys), strict=True)
                        ]
                    )
                )
            )
    assert run.metrics["own_accuracy"][-1] == pytest.approx(np.mean(right))
    assert run.metrics["own_accuracy_worst"][-1] == pytest.approx(min(right))
