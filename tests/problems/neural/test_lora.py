"""Adapters and the weights they start from: gradients, what travels, merging, and whose base it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import nn

import byzmesh as bm
from byzmesh.config.code import CodeReader
from byzmesh.config.schema import resolve
from byzmesh.errors import ConfigError, DataError, UnknownName, UnknownOption
from byzmesh.peers.network_file import load_network, network_file
from byzmesh.peers.share import bind_share
from byzmesh.problems.neural.flat import load
from byzmesh.problems.neural.gpt import gpt
from byzmesh.problems.neural.lora import Lora, merged
from byzmesh.problems.neural.task import TorchTask
from byzmesh.renamed import as_stored
from byzmesh.store import open_store
from byzmesh.sweeps.export import export_model
from byzmesh.sweeps.sweep import sweep
from tests.peers.drill.simulated import simulation_of
from tests.peers.networks import make_network
from tests.peers.worlds import PATIENT, train

from .test_gradients import bound

MLP = {"name": "mlp", "hidden": [5]}
LORA = {"name": "lora", "rank": 2, "alpha": 6.0}


def made() -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 5), nn.ReLU(), nn.Linear(5, 10))


def write_base(path: Path, seed: int = 7) -> str:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        safetensors.torch.save_file(made().state_dict(), path)
    return str(path)


@pytest.fixture
def base(tmp_path: Path) -> str:
    return write_base(tmp_path / "base.safetensors")


def somewhere(task: Any) -> Any:
    """Models at which neither factor of an adapter is zero."""
    return np.random.default_rng(3).normal(size=(3, task.dimension)).astype(task.dtype) * 0.3


def by_hand(weights: dict[str, Any], vector: Any, scale: float, layers: tuple[int, ...] = (1, 3)) -> dict[str, Any]:
    """W + scale B A, from a vector that has A and B of each layer in turn."""
    full, start = dict(weights), 0
    for layer in layers:
        outputs, inputs = weights[f"{layer}.weight"].shape
        a = vector[start : start + 2 * inputs].reshape(2, inputs)
        start += 2 * inputs
        b = vector[start : start + 2 * outputs].reshape(outputs, 2)
        start += 2 * outputs
        full[f"{layer}.weight"] = weights[f"{layer}.weight"] + scale * torch.from_numpy(b @ a)
    assert start == len(vector)
    return full


@pytest.mark.parametrize("way", ["batched", "loop"])
def test_loss_and_gradient_are_those_of_the_product(base: str, way: str) -> None:
    task = bound(MLP, base=base, adapter=LORA, gradients=way, dtype="float64")
    models = somewhere(task)
    weights = {name: value.double() for name, value in safetensors.torch.load_file(base).items()}
    module = made().double()
    x, y = task.batches(4, np.arange(3))
    gradients = task.gradients(models, 4)
    for row in range(3):
        module.load_state_dict(by_hand(weights, models[row], 3.0))
        loss = nn.functional.cross_entropy(module(x[row]), y[row])
        assert task.losses(models[row][None, None], 4, np.array([row]))[0, 0] == pytest.approx(loss.item(), rel=1e-9)
        moved = models[row].copy()
        for place in (0, 1567, 1569, 1580, task.dimension - 1):  # A and B of both layers
            both = []
            for step in (1e-6, -1e-6):
                moved[place] = models[row][place] + step
                module.load_state_dict(by_hand(weights, moved, 3.0))
                both.append(nn.functional.cross_entropy(module(x[row]), y[row]).item())
            moved[place] = models[row][place]
            assert gradients[row, place] == pytest.approx((both[0] - both[1]) / 2e-6, rel=1e-4, abs=1e-7)


def test_a_fresh_adapter_changes_nothing_and_only_it_is_trained(base: str) -> None:
    plain, task = bound(MLP, base=base), bound(MLP, base=base, adapter=LORA, init="own")
    assert task.dimension == 2 * (784 + 5) + 2 * (5 + 10) < plain.dimension
    models = task.initial()
    assert not np.array_equal(models[0], models[1])  # A is random, each worker's own here
    np.testing.assert_allclose(task.evaluate(models)["loss"], plain.evaluate(plain.initial()[:1])["loss"][0], rtol=1e-6)
    kept = {name: value.clone() for name, value in task.skeleton.state_dict().items() if "lora" not in name}
    task.gradients(somewhere(task), 0)
    assert all(torch.equal(task.skeleton.state_dict()[name], value) for name, value in kept.items())


def test_the_exported_model_has_plain_names_and_gives_the_same_outputs(base: str, tmp_path: Path) -> None:
    config: dict[str, Any] = {
        "problem": {"name": "torch", "module": MLP, "base": base, "adapter": LORA, "batch": 4, "test_samples": 50},
        "network": {"name": "complete", "n": 4, "byzantine": [3]},
        "rule": "ios",
        "attack": "sign-flipping",
        "rounds": 3,
        "step": 0.5,
    }
    (key,) = sweep([resolve(config)], tmp_path / "runs.db", workers=0, keep_models="final").statuses
    with open_store(tmp_path / "runs.db") as store:
        export_model(store, key, tmp_path / "out.safetensors", worker=1)
    state = safetensors.torch.load_file(tmp_path / "out.safetensors")
    module = made()
    module.load_state_dict(state)  # strict: exactly the names of the module without adapters
    run = bm.simulate(**config)
    task = bm.prepare(**config).task
    assert isinstance(task, TorchTask)
    x, y = next(task.samples.test())
    loss = nn.functional.cross_entropy(module(x), y).item()
    assert task.evaluate(run.models[1:2])["loss"][0] == pytest.approx(loss, rel=1e-5)
    assert not torch.equal(state["1.weight"], safetensors.torch.load_file(base)["1.weight"])
    assert torch.equal(state["1.bias"], safetensors.torch.load_file(base)["1.bias"])
    again = bound(MLP, base=str(tmp_path / "out.safetensors"))  # and it is a base for the next run
    assert again.evaluate(again.initial()[:1])["loss"][0] == pytest.approx(loss, rel=1e-5)


def test_patterns_choose_layers() -> None:
    assert bound(MLP, adapter={**LORA, "layers": "3"}).dimension == 2 * (5 + 10)
    assert bound(MLP, adapter={**LORA, "layers": ["1", "nothing"]}).dimension == 2 * (784 + 5)
    module = Lora(1, 1.0, ("*.attend.*",)).adapt(gpt(width=4, depth=1, heads=2, shape=(5,), classes=7))
    names = {name.rpartition(".")[0] for name, value in module.named_parameters() if value.requires_grad}
    assert names == {"blocks.0.attend.1.inputs", "blocks.0.attend.1.output"}
    with pytest.raises(ConfigError, match=r"no torch.nn.Linear of Sequential is called head; there are 1, 3"):
        bound(MLP, adapter={**LORA, "layers": "head"})


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6)
        self.second.weight = self.first.weight


def test_tied_layers_are_refused_as_the_merged_module_could_not_hold_them() -> None:
    with pytest.raises(ConfigError, match="weights of first are shared with another layer"):
        Lora(1, 1.0, ("first",)).adapt(Tied())


def test_merging_a_module_that_is_one_layer() -> None:
    module = Lora(1, 2.0).adapt(nn.Linear(3, 2))
    vector = torch.arange(5.0)
    load(module, vector)
    weight = module.weight + 2.0 * torch.outer(vector[3:], vector[:3])
    assert torch.equal(merged(module)["weight"], weight) and sorted(merged(module)) == ["bias", "weight"]


def test_the_base_is_part_of_a_runs_identity(tmp_path: Path) -> None:
    def planned(seed: int) -> dict[str, Any]:
        write_base(tmp_path / "base.safetensors", seed)
        problem = {"name": "torch", "module": MLP, "base": "base.safetensors"}
        return resolve({"problem": problem, "network": {"name": "ring", "n": 4}}, tmp_path)

    first, second, third = planned(1), planned(2), planned(1)
    assert first == third != second
    assert first["problem"]["base"]["file"] == str(tmp_path / "base.safetensors")
    assert CodeReader().of(second)  # its bytes, too
    write_base(tmp_path / "base.safetensors", 2)
    with pytest.raises(DataError, match=r"has other weights than this run: its SHA-256 is \w{12}..., the run's is"):
        bm.prepare(**{key: first[key] for key in ("problem", "network")})


def test_runs_without_them_keep_their_names() -> None:
    stored = as_stored(resolve({"problem": "torch", "network": {"name": "ring", "n": 4}}))["problem"]
    assert "base" not in stored and "adapter" not in stored


def test_peers_equal_the_simulator_and_another_base_is_refused(tmp_path: Path) -> None:
    write_base(tmp_path / "base.safetensors")
    problem = {"name": "torch", "module": MLP, "base": "base.safetensors", "adapter": LORA}
    file = make_network(
        tmp_path,
        3,
        topology={"name": "complete", "n": 3},
        rule={"name": "ios"},
        f=0,
        problem={**problem, "batch": 4, "test_samples": 50, "gradients": "loop"},
        rounds=4,
        dtype="float64",
        step=0.3,
        timeouts=PATIENT,
    )
    models = train(file, tmp_path, tmp_path / "out")
    assert models.shape[1] == 2 * (784 + 5) + 2 * (5 + 10)  # nothing else travels
    np.testing.assert_allclose(models, simulation_of(file).run().models, rtol=1e-9, atol=1e-12)
    written = (tmp_path / "network.yaml").read_text()
    assert "file: base.safetensors" in written and "sha256" in written
    write_base(tmp_path / "base.safetensors", seed=8)
    with pytest.raises(DataError, match="has other weights than this run"):
        bind_share(load_network(tmp_path / "network.yaml"), 1)
    content = file.model_dump(mode="json", exclude_unset=True)
    content["problem"] = {**content["problem"], "base": "base.safetensors"}
    assert network_file(content, tmp_path).run != file.run  # whoever forges the hash belongs to another run


def test_mistakes_are_named(base: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read the base .*nothing.safetensors: No such file"):
        bound(MLP, base=str(tmp_path / "nothing.safetensors"))
    (tmp_path / "noise.safetensors").write_bytes(b"noise")
    with pytest.raises(DataError, match="is no safetensors file"):
        bound(MLP, base=str(tmp_path / "noise.safetensors"))
    with pytest.raises(DataError, match=r"'1.weight' has shape \(5, 784\), that of Sequential has \(6, 784\)"):
        bound({"name": "mlp", "hidden": [6]}, base=base)
    with pytest.raises(DataError, match=r"'1.weight' has shape"):
        bound({"name": "mlp", "hidden": []}, base=base)
    with pytest.raises(DataError, match=r"has no '5.weight', which Sequential has"):
        bound({"name": "mlp", "hidden": [5, 10]}, base=base)
    with pytest.raises(UnknownOption, match="base has no option 'sha': did you mean 'sha256'"):
        bound(MLP, base={"file": base, "sha": "1"})
    with pytest.raises(ConfigError, match="base must be the path of a safetensors file"):
        bound(MLP, base=3)
    with pytest.raises(UnknownName, match="unknown adapter 'lara'"):
        bound(MLP, adapter="lara")
    with pytest.raises(ConfigError, match="adapter lora: rank must be"):
        bound(MLP, adapter={"name": "lora", "rank": 0})
