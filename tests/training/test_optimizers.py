"""PyTorch's optimizers as local updates: against plain loops over modules, resumed, and refused where they must be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import byzmesh as bm
from byzmesh.errors import ConfigError, UnknownName, UnknownOption
from byzmesh.training.local import LocalOptions
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


def test_an_optimizer_also_serves_problems_without_layers(samples: Path) -> None:
    problem = {"name": "softmax", "dataset": str(samples)}
    run = bm.simulate(problem=problem, network=COMPLETE, rounds=30, step=0.05, local={"optimizer": "adam"}, f=0)
    assert run.metrics["loss"][-1] < 0.7 * run.metrics["loss"][0]


def test_the_state_stays_with_the_worker(samples: Path) -> None:
    run = made(samples, optimizer=ADAMW)
    run.step()
    first, second = (run.local_round.states()[f"optimizer/0/{number}/exp_avg"] for number in (0, 4))
    assert first.shape == second.shape == (6, 20) and not np.array_equal(first, second)


def test_mistakes_are_named() -> None:
    with pytest.raises(UnknownName, match="unknown optimizer 'adamv': did you mean 'adam'"):
        LocalOptions.of({"optimizer": "adamv"})
    with pytest.raises(UnknownOption, match="AdamW has no option 'bettas': did you mean 'betas'"):
        LocalOptions.of({"optimizer": {"name": "AdamW", "bettas": [0.9, 0.9]}})
    with pytest.raises(UnknownOption, match="has no option 'lr'"):
        LocalOptions.of({"optimizer": {"name": "AdamW", "lr": 0.1}})
    with pytest.raises(ConfigError, match="LBFGS calls the loss itself"):
        LocalOptions.of({"optimizer": "LBFGS"})
    with pytest.raises(ConfigError, match=r"local decay is of SGD, got 0\.1 with an optimizer"):
        LocalOptions.of({"optimizer": "AdamW", "decay": 0.1})
    with pytest.raises(ConfigError, match=r"must be a name of torch\.optim"):
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
