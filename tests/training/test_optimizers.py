"""PyTorch's optimizers as local updates: against plain loops over modules, resumed, and refused where they must be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import byzmesh as bm
from byzmesh.config.schema import resolve
from byzmesh.errors import ConfigError, UnknownName, UnknownOption
from byzmesh.problems.neural.flat import layout_of
from byzmesh.training.local import LocalOptions
from byzmesh.training.local_round import LocalRound
from byzmesh.training.optimizers import _BY_NUMBER, Optimizers
from byzmesh.training.outer import Outer

ADAMW = {"name": "AdamW", "betas": [0.8, 0.95], "weight_decay": 0.05}
COMPLETE = {"name": "complete", "n": 3}


def tiny(shape: tuple[int, ...], classes: int) -> Any:
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(20, 6), torch.nn.Tanh(), torch.nn.Linear(6, classes))


def by_groups(parameters: list[Any], decay: float = 0.1) -> Any:
    """As people write it: no decay on biases."""
    matrices = [parameter for parameter in parameters if parameter.ndim > 1]
    others = [parameter for parameter in parameters if parameter.ndim < 2]
    return torch.optim.AdamW([{"params": matrices, "weight_decay": decay}, {"params": others, "weight_decay": 0.0}])


def made(samples: Path, **local: Any) -> Any:
    problem = bm.problem("torch", module=tiny, dataset=str(samples), batch=4, gradients="loop")
    return bm.prepare(
        problem=problem,
        network=COMPLETE,
        rule="weimean",
        rounds=4,
        evaluate_every=2,
        step=0.01,
        dtype="float64",
        local=local,
    )


def by_hand(run: Any, optimizer: Any, outer: Any = None, steps: int = 2, accumulate: int = 1) -> np.ndarray:
    """DiLoCo as a script would have it: modules, their optimizers, a mean, an outer optimizer."""
    first = torch.from_numpy(run.task.initial()[0].copy())
    workers = [tiny((20,), 4).double() for _ in range(3)]
    centre = torch.nn.Parameter(first.clone())
    outside = None if outer is None else outer([centre])
    for worker in workers:
        bm.torch.load(worker, first)
    optimizers = [optimizer(worker.parameters()) for worker in workers]
    for k in range(4):
        for row, (worker, inner) in enumerate(zip(workers, optimizers)):
            for step in range(steps):
                inner.zero_grad()
                for part in range(accumulate):
                    x, y = run.task.batches((k * steps + step) * accumulate + part, np.array([row]))
                    (torch.nn.functional.cross_entropy(worker(x[0]), y[0]) / accumulate).backward()
                inner.step()
        mean = torch.stack([bm.torch.flatten(worker) for worker in workers]).mean(0)
        if outside is None:
            centre.data = mean
        else:
            centre.grad = centre.detach() - mean
            outside.step()
        for worker in workers:
            bm.torch.load(worker, centre.detach())
    final: np.ndarray = centre.detach().numpy()
    return final


def test_adamw_and_an_outer_nesterov_step_are_diloco(samples: Path) -> None:
    run = made(samples, optimizer=ADAMW, steps=2, outer="nesterov")
    expected = by_hand(
        run,
        lambda parameters: torch.optim.AdamW(parameters, lr=0.01, betas=(0.8, 0.95), weight_decay=0.05),
        lambda parameters: torch.optim.SGD(parameters, lr=0.7, momentum=0.9, nesterov=True),
    )
    for row in run.run().models:
        np.testing.assert_allclose(row, expected, rtol=1e-9, atol=1e-12)


def test_gradients_of_several_batches_are_averaged(samples: Path) -> None:
    run = made(samples, optimizer="sgd", steps=1, accumulate=3)
    expected = by_hand(run, lambda parameters: torch.optim.SGD(parameters, lr=0.01), steps=1, accumulate=3)
    np.testing.assert_allclose(run.run().models[0], expected, rtol=1e-9, atol=1e-12)


def test_a_factory_makes_one_optimizer_per_worker(samples: Path) -> None:
    run = made(samples, optimizer={"name": by_groups, "decay": 0.2}, steps=2)

    def grouped(parameters: Any) -> Any:
        return _at(by_groups(list(parameters), 0.2), 0.01)

    np.testing.assert_allclose(run.run().models[0], by_hand(run, grouped), rtol=1e-9, atol=1e-12)
    assert run.config["local"]["optimizer"] == {"name": f"{__name__}:by_groups", "decay": 0.2}


def _at(optimizer: Any, rate: float) -> Any:
    for group in optimizer.param_groups:
        group["lr"] = rate
    return optimizer


@pytest.mark.parametrize("optimizer", [ADAMW, {"name": "SGD", "momentum": 0.9, "nesterov": True}, by_groups])
def test_a_resumed_run_equals_an_uninterrupted_one(samples: Path, tmp_path: Path, optimizer: Any) -> None:
    local = {"optimizer": optimizer, "steps": 2, "outer": "heavy-ball"}
    whole, half = made(samples, **local), made(samples, **local)
    for _ in range(3):
        half.advance()
    half.save(tmp_path / "checkpoint")
    resumed = made(samples, **local)
    resumed.restore(tmp_path / "checkpoint")
    np.testing.assert_array_equal(resumed.run().models, whole.run().models)


@pytest.mark.parametrize("optimizer", [ADAMW, "Adafactor", by_groups])
def test_a_worker_that_rests_remembers_nothing_of_it(samples: Path, optimizer: Any) -> None:
    """It equals one that trains alone and only in the rounds in which it is awake."""
    made_of = [made(samples, optimizer=optimizer, steps=2) for _ in range(2)]
    together, alone = (
        LocalRound(run.task, rows, lambda k: 0.01, LocalOptions.of({"optimizer": optimizer, "steps": 2}))
        for run, rows in zip(made_of, (np.arange(3), np.array([1])), strict=True)
    )
    models, mine = made_of[0].task.initial(), made_of[1].task.initial()[[1]]
    together.start(models)
    alone.start(mine)
    for k, awake in enumerate([False, True, False, True]):
        models = together.half_steps(models, k, np.array([0, 1] if not awake else [2])).copy()
        mine = alone.half_steps(mine, k).copy() if awake else mine
        np.testing.assert_allclose(models[1], mine[0], rtol=1e-12, atol=1e-14)


def test_groups_of_a_factory_keep_the_ratio_of_their_rates(samples: Path) -> None:
    def slow_head(parameters: Any) -> Any:
        *body, weight, bias = parameters
        return torch.optim.SGD([{"params": body}, {"params": [weight, bias], "lr": 0.05}], lr=0.5)

    run = made(samples, optimizer=slow_head, steps=2)  # at step 0.01: the head moves by a tenth of that
    expected = by_hand(run, lambda p: _scaled(slow_head(p), 0.02))
    np.testing.assert_allclose(run.run().models[0], expected, rtol=1e-9, atol=1e-12)


def _scaled(optimizer: Any, factor: float) -> Any:
    for group in optimizer.param_groups:
        group["lr"] *= factor
    return optimizer


def test_without_a_step_the_rate_is_that_of_pytorch() -> None:
    def step(**given: Any) -> Any:
        return resolve({"network": COMPLETE, "problem": "quadratic", **given})["step"]

    assert step(local={"optimizer": "adamw"}) == {
        "name": "constant",
        "a": 0.001,
    }  # not 0.9/sqrt(k)
    assert step(local={"optimizer": "adamw"}, step=0.01) == {"name": "constant", "a": 0.01}
    with pytest.raises(ConfigError, match=r"step is needed beside the optimizer .*by_groups"):
        step(local={"optimizer": by_groups})


def test_an_optimizer_also_serves_problems_without_layers(samples: Path) -> None:
    problem = {"name": "softmax", "dataset": str(samples)}
    run = bm.simulate(problem=problem, network=COMPLETE, rounds=30, step=0.05, local={"optimizer": "adam"}, f=0)
    assert run.metrics["loss"][-1] < 0.7 * run.metrics["loss"][0]


@pytest.mark.parametrize("name", _BY_NUMBER)
def test_the_shape_of_a_parameter_makes_no_difference(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three updates of two workers' vectors equal those of their matrices, scales and biases."""
    layout = layout_of(torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.LayerNorm(5)))
    drawn = np.random.default_rng(0).normal(size=(4, 2, layout.dimension))

    def trained() -> np.ndarray:
        models: np.ndarray = drawn[0].copy()
        optimizers = Optimizers(name, layout, models)
        for gradients in drawn[1:]:
            optimizers.step(models, gradients, 0.1, models)
        return models

    as_vectors = trained()
    monkeypatch.setattr("byzmesh.training.optimizers._BY_NUMBER", ())
    np.testing.assert_allclose(trained(), as_vectors, rtol=1e-13)
    assert not np.allclose(as_vectors, drawn[0])


def test_the_state_stays_with_the_worker(samples: Path) -> None:
    run = made(samples, optimizer=ADAMW)
    run.step()
    first, second = (run.local_round.states()[f"optimizer/0/{number}/exp_avg"] for number in (0, 1))
    assert first.shape == second.shape == (run.task.dimension,) and not np.array_equal(first, second)


def test_mistakes_are_named() -> None:
    with pytest.raises(UnknownName, match="unknown optimizer 'adamv': did you mean 'adam'"):
        LocalOptions.of({"optimizer": "adamv"})
    with pytest.raises(UnknownOption, match="AdamW has no option 'bettas': did you mean 'betas'"):
        LocalOptions.of({"optimizer": {"name": "AdamW", "bettas": [0.9, 0.9]}})
    with pytest.raises(UnknownOption, match="has no option 'lr'"):
        LocalOptions.of({"optimizer": {"name": "AdamW", "lr": 0.1}})
    with pytest.raises(ConfigError, match="LBFGS calls the loss itself"):
        LocalOptions.of({"optimizer": "LBFGS"})
    with pytest.raises(ConfigError, match="SparseAdam needs sparse gradients, and those here are dense; use AdamW"):
        LocalOptions.of({"optimizer": "sparseadam"})
    with pytest.raises(ConfigError, match=r"local decay is of SGD, got 0\.1 with an optimizer"):
        LocalOptions.of({"optimizer": "AdamW", "decay": 0.1})
    with pytest.raises(ConfigError, match=r"must be a name of torch\.optim.* got int"):
        LocalOptions.of({"optimizer": 3})


@pytest.mark.parametrize("name", ["plain", "heavy-ball", "nesterov"])
def test_outer_steps_of_long_models_are_those_of_short_ones(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Block by block, for a width that does not divide the length, bit for bit."""
    outer, random = Outer.of(name), np.random.default_rng(0)
    models, agreed, velocity = random.normal(size=(3, 4, 1001))
    first, second = (None, None) if not outer.moves else (velocity.copy(), velocity.copy())
    at_once = outer.apply(models, agreed, first)
    monkeypatch.setattr("byzmesh.training.outer.BLOCK", 64)
    np.testing.assert_array_equal(outer.apply(models, agreed, second), at_once)
    if outer.moves:
        np.testing.assert_array_equal(first, second)
