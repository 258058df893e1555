"""Running statistics: whose they are, in gradients, rounds, checkpoints, messages and exported models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import byzmesh as bm
from byzmesh.errors import ConfigError
from byzmesh.problems.neural.task import TorchTask
from tests.peers.drill.simulated import simulation_of
from tests.peers.networks import make_network
from tests.peers.worlds import PATIENT, train

from .test_gradients import bound

TRAINED = 784 * 4 + 4 + 4 + 4 + 4 * 10 + 10
RUNNING = 4 + 4 + 1  # mean, variance, number of batches


def made() -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 4), nn.BatchNorm1d(4), nn.Linear(4, 10))


def prepared(buffers: str, **more: Any) -> bm.Simulation:
    problem = bm.problem("torch", module=made, buffers=buffers, batch=6, test_samples=60, partition="one-class")
    usual: dict[str, Any] = {"network": {"name": "complete", "n": 4}, "rule": "mean", "rounds": 4, "step": 0.1}
    return bm.prepare(problem=problem, **{**usual, "evaluate_every": 2, "dtype": "float64", **more})


def by_hand(run: bm.Simulation, steps: int) -> list[nn.Sequential]:
    """What each worker's module is after the first local steps of SGD, from PyTorch alone."""
    task = run.task
    assert isinstance(task, TorchTask)
    modules = []
    for row in range(task.workers):
        module = made().double()
        module.load_state_dict(bm.torch.state_dict(task, run.models[row]))
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        for batch in range(steps):
            x, y = task.batches(batch, np.array([row]))
            optimizer.zero_grad()
            nn.functional.cross_entropy(module(x[0]), y[0]).backward()
            optimizer.step()
        modules.append(module)
    return modules


def statistics(module: nn.Sequential) -> Any:
    norm = module[2]
    return torch.cat([norm.running_mean, norm.running_var, norm.num_batches_tracked[None].double()]).numpy()


@pytest.mark.parametrize("buffers", ["local", "shared"])
@pytest.mark.parametrize(
    "local", [{"steps": 3, "decay": 0}, {"steps": 3, "clip": 50.0, "optimizer": "SGD"}, {"decay": 0}]
)
def test_a_round_equals_plain_pytorch(buffers: str, local: dict[str, Any]) -> None:
    run = prepared(buffers, local=local)
    assert run.task.dimension == TRAINED + RUNNING
    steps = local.get("steps", 1)
    modules = by_hand(run, steps)
    run.step()
    weights = np.stack([np.concatenate([p.detach().numpy().ravel() for p in m.parameters()]) for m in modules])
    np.testing.assert_allclose(run.models[:, :TRAINED], weights.mean(axis=0)[None].repeat(4, 0), atol=1e-12)
    kept = np.stack([statistics(module) for module in modules])
    assert not np.allclose(kept[0], kept[1]) and kept[0, -1] == steps
    expected = kept if buffers == "local" else kept.mean(axis=0)[None].repeat(4, 0)
    np.testing.assert_allclose(run.models[:, TRAINED:], expected, atol=1e-12)


@pytest.mark.parametrize("rule", ["mean", "ios", {"name": "drsa", "at": "start"}, {"name": "cc", "centre": "memory"}])
def test_local_statistics_are_never_sent(rule: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = prepared("local", rule=rule, attack="sign-flipping", network={"name": "complete", "n": 4, "byzantine": [3]})
    seen: list[Any] = []
    inbox, forge = run._inbox, run._forge

    def looked(*given: Any) -> Any:
        made = inbox(*given)
        seen.extend([made.pool.own, made.previous])
        return made

    monkeypatch.setattr(run, "_inbox", looked)
    run.prepared = None
    for _ in range(3):
        run.step()
        forged = forge(bm.Round(number=run.round, total=4, step_size=0.1, seed=0))
        seen.append(np.stack([forged[3, victim] for victim in range(3)]))
        assert np.abs(run.models[:, TRAINED:]).min() > 0
    assert len(seen) >= 3
    for rows in seen:
        assert rows is None or not np.asarray(rows)[:, TRAINED:].any()


@pytest.mark.parametrize("stage", ["int8", {"name": "top-k", "fraction": 0.5}])
def test_local_statistics_do_not_enter_a_channel(stage: Any) -> None:
    run = prepared("local", channel=[stage])
    for _ in range(2):
        run.step()
        assert run.courier is not None
        assert (run.courier.arrived[:, -RUNNING:] == 0.0).all()
        assert (run.models[:, -RUNNING:] != 0.0).any()


@pytest.mark.parametrize("buffers", ["local", "shared", "frozen"])
def test_resume_equals_an_uninterrupted_run(buffers: str, tmp_path: Path) -> None:
    more: dict[str, Any] = {"local": {"steps": 2, "outer": "nesterov", "optimizer": "AdamW"}, "step": 0.01}
    whole = prepared(buffers, **more).run()
    first = prepared(buffers, **more)
    for _ in range(3):
        first.advance()
    first.save(tmp_path / "checkpoint")
    second = prepared(buffers, **more)
    second.restore(tmp_path / "checkpoint")
    after = second.run()
    assert after.models.tobytes() == whole.models.tobytes()
    np.testing.assert_array_equal(after.metrics["loss"], whole.metrics["loss"])


def test_evaluation_and_export_use_a_models_own_statistics() -> None:
    run = prepared("local")
    run.step()
    task = run.task
    assert isinstance(task, TorchTask)
    found = task.evaluate(run.models)["loss"]
    for row in range(4):
        module = made().double().eval()
        module.load_state_dict(bm.torch.state_dict(task, run.models[row]))
        np.testing.assert_allclose(module[2].running_mean.numpy(), run.models[row, TRAINED : TRAINED + 4])
        (x, y) = next(task.samples.test())
        assert found[row] == pytest.approx(nn.functional.cross_entropy(module(x), y).item(), rel=1e-9)
    assert len(set(found)) == 4


@pytest.mark.parametrize("way", ["loop", "batched"])
def test_frozen_layers_work_as_in_evaluation(way: str) -> None:
    task = bound(made, buffers="frozen", gradients=way, dtype="float64")
    assert task.dimension == TRAINED
    models = task.initial()
    task.evaluate(models)  # which ends with the module in training mode
    x, y = task.batches(0, np.arange(3))
    module = made().double()
    module.load_state_dict(bm.torch.state_dict(task, models[1]))
    module[2].eval()
    nn.functional.cross_entropy(module(x[1]), y[1]).backward()
    expected = np.concatenate([p.grad.numpy().ravel() for p in module.parameters()])
    np.testing.assert_allclose(task.gradients(models, 0)[1], expected, atol=1e-12)
    assert task.skeleton[2].num_batches_tracked == 0


@pytest.mark.parametrize("buffers", ["local", "shared"])
def test_peers_equal_the_simulator(buffers: str, tmp_path: Path) -> None:
    problem = {"name": "torch", "module": f"{__name__}:made", "buffers": buffers, "batch": 4, "test_samples": 50}
    file = make_network(
        tmp_path,
        3,
        topology={"name": "complete", "n": 3},
        rule={"name": "ios"},
        f=0,
        problem=problem,
        local={"steps": 2},
        rounds=4,
        dtype="float64",
        step=0.1,
        timeouts=PATIENT,
    )
    models = train(file, tmp_path, tmp_path / "out")
    assert np.allclose(models[0, TRAINED:], models[1, TRAINED:]) == (buffers == "shared")
    np.testing.assert_allclose(models, simulation_of(file).run().models, rtol=1e-9, atol=1e-12)


def test_mistakes_are_named() -> None:
    with pytest.raises(ConfigError, match=r"changes its buffer '2.running_mean'.*buffers: local, shared or frozen"):
        bound(made)
    with pytest.raises(ConfigError, match="buffers must be local, shared or frozen, got 'mine'"):
        bound(made, buffers="mine")
    with pytest.raises(ConfigError, match="this one does not; leave it out"):
        bound("linear", buffers="local")
    with pytest.raises(ConfigError, match="batched does not go with buffers: shared"):
        bound(made, buffers="shared", gradients="batched")
