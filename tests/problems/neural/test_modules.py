"""What a module may and may not be, and what the options of the problem do."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import byzmesh as bm
from byzmesh.config.schema import resolve
from byzmesh.errors import ConfigError, DataError, UnknownName, UnknownOption
from byzmesh.problems.base import problem
from byzmesh.problems.neural import modules
from byzmesh.problems.neural.modules import canonical_module, find, make_factory

from .test_gradients import bound


def sequence(*layers: Any) -> Any:
    return lambda: nn.Sequential(nn.Flatten(), *(layer() for layer in layers), nn.Linear(12, 10))


class Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(784, 10)
        self.second = nn.Linear(784, 10)
        self.second.weight = self.first.weight

    def forward(self, x: Any) -> Any:
        x = x.flatten(1)
        return self.first(x) + self.second(x)


class Frozen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(784, 12)
        self.body.requires_grad_(False)
        self.head = nn.Linear(12, 10)
        self.register_buffer("factor", torch.tensor(2.0))

    def forward(self, x: Any) -> Any:
        return self.head(self.factor * self.body(x.flatten(1)))


class Nothing(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.flatten(1)[:, :10]


def test_running_statistics_are_an_error_and_batch_statistics_are_not() -> None:
    with pytest.raises(ConfigError, match=r"changes its buffer '2.running_mean' while training.*use GroupNorm"):
        bound(sequence(lambda: nn.Linear(784, 12), lambda: nn.BatchNorm1d(12)))
    plain = sequence(lambda: nn.Linear(784, 12), lambda: nn.BatchNorm1d(12, track_running_stats=False))
    task = bound(plain, gradients="loop", init="own")
    other = bound(plain, gradients="batched", init="own")
    models = task.initial()
    np.testing.assert_allclose(task.gradients(models, 0), other.gradients(models, 0), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("way", ["loop", "batched"])
def test_shared_weights_count_once(way: str) -> None:
    task = bound(Shared, gradients=way)
    assert task.dimension == 7840 + 10 + 10
    models = task.initial()
    x, y = task.batches(0, np.arange(3))
    module = Shared()
    with torch.no_grad():
        for parameter, view in zip(module.parameters(), task.layout.views(torch.from_numpy(models[1])).values()):
            parameter.copy_(view)
    torch.nn.functional.cross_entropy(module(x[1]), y[1]).backward()
    expected = torch.cat([parameter.grad.reshape(-1) for parameter in module.parameters()]).numpy()
    np.testing.assert_allclose(task.gradients(models, 0)[1], expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("way", ["loop", "batched"])
def test_frozen_parameters_stay(way: str) -> None:
    task = bound(Frozen, gradients=way, init="own")
    assert task.dimension == 130
    kept = task.skeleton.body.weight.clone()
    assert np.abs(task.gradients(task.initial(), 0)).max() > 0
    task.evaluate(task.initial())
    assert torch.equal(task.skeleton.body.weight, kept)
    assert torch.equal(bound(Frozen).skeleton.body.weight, kept)


def test_modules_that_cannot_be_trained() -> None:
    with pytest.raises(ConfigError, match="module Nothing has no trainable parameters"):
        bound(Nothing)
    with pytest.raises(ConfigError, match=r"gives outputs of shape \(4, 7\) for 4 samples, the data have 10 classes"):
        bound(lambda: nn.Sequential(nn.Flatten(), nn.Linear(784, 7)))
    with pytest.raises(ConfigError, match=r"does not take samples of shape \(1, 28, 28\).*fit its first layer"):
        bound(lambda: nn.Linear(100, 10))
    with pytest.raises(ConfigError, match=r"must return a torch\.nn\.Module, got int"):
        bound(lambda: 3)
    with pytest.raises(ConfigError, match="loss must return one number"):
        bound("linear", loss=lambda outputs, targets: outputs)
    with pytest.raises(ConfigError, match="returns a tuple"):
        bound(type("Pair", (Shared,), {"forward": lambda self, x: (x, x)}))


class Scaled(nn.Module):
    """A module with a scalar parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(784, 10)
        self.factor = nn.Parameter(torch.tensor(2.0))

    def forward(self, x: Any) -> Any:
        return self.factor * self.layer(x.flatten(1))


def test_parameters_without_an_axis() -> None:
    loop, batched = bound(Scaled, gradients="loop"), bound(Scaled, gradients="batched")
    models = loop.initial()
    np.testing.assert_allclose(loop.gradients(models, 0), batched.gradients(models, 0), rtol=1e-4, atol=1e-6)
    assert np.isfinite(loop.evaluate(models)["loss"]).all()


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (nn.Linear(784, 10), "must be a function that makes a fresh module, got a Linear"),
        (lambda wanted: nn.Linear(784, wanted), "cannot be made: .*missing 1 required positional argument"),
        ({"name": Shared, "unit": 3}, "cannot be made: .*unexpected keyword argument 'unit'"),
        (lambda: nn.Sequential(nn.Flatten(), nn.LazyLinear(10)), "'1.weight' of Sequential has no shape yet"),
    ],
)
def test_factories_that_return_no_module_are_refused(module: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        bound(module)
    assert "\n" not in str(caught.value)


def test_functions_that_only_python_knows() -> None:
    """Lambdas, partials, data sets and losses run in the simulator; the config says what it can."""

    def run(**options: Any) -> Any:
        problem_ = problem("torch", batch=4, test_samples=20, **options)
        return bm.prepare(problem=problem_, network={"name": "ring", "n": 4}, rule="mean", rounds=2, evaluate_every=1)

    wide = functools.partial(modules.mlp, hidden=(7,))
    first = run(module=wide)
    assert first.run().status == "finished"
    assert first.config["problem"]["module"] == {"name": "byzmesh.problems.neural.modules:mlp", "hidden": [7]}
    lonely = run(module=lambda: nn.Sequential(nn.Flatten(), nn.Linear(10, 2)), dataset=(Pairs(60), Pairs(20)),
                 loss=lambda outputs, targets: nn.functional.cross_entropy(2 * outputs, targets))  # fmt: skip
    assert lonely.run().status == "finished"
    assert "<lambda>" in lonely.config["problem"]["module"]["name"]
    assert lonely.config["problem"]["dataset"] == "Pairs[60], Pairs[20]"


def test_dropout_is_a_function_of_seed_worker_and_round() -> None:
    module = sequence(lambda: nn.Linear(784, 12), lambda: nn.Dropout(0.5))
    assert bound(sequence(lambda: nn.Linear(784, 12), lambda: nn.Dropout(1e-4))).draws, "though it hardly ever drops"
    task, twin = bound(module), bound(module)
    assert task.draws
    models = task.initial()
    first = task.gradients(models, 3)
    torch.manual_seed(99)
    state = torch.get_rng_state()
    np.testing.assert_array_equal(twin.gradients(models, 3), first)
    assert torch.equal(torch.get_rng_state(), state)
    alone = twin.gradients(models[1:2], 3, rows=np.array([1]))
    np.testing.assert_array_equal(alone[0], first[1])
    assert not np.array_equal(task.gradients(models, 4), first)
    with pytest.raises(ConfigError, match="batched does not go with a module that draws"):
        bound(module, gradients="batched")
    np.testing.assert_array_equal(task.evaluate(models)["loss"], task.evaluate(models)["loss"])
    candidates = np.stack([models, models], axis=1)
    found = task.losses(candidates, 3)
    torch.manual_seed(1)
    np.testing.assert_array_equal(task.losses(candidates, 3), found)
    np.testing.assert_array_equal(found[:, 0], found[:, 1])
    full = task.full_gradient(models[0])
    torch.manual_seed(2)
    np.testing.assert_array_equal(task.full_gradient(models[0]), full)


def test_first_models() -> None:
    common, own = bound().initial(), bound(init="own").initial()
    assert np.array_equal(common[0], common[2]) and not np.array_equal(own[0], own[2])
    np.testing.assert_array_equal(bound(workers=5, init="own").initial()[:3], own)
    torch.manual_seed(5)
    np.testing.assert_array_equal(bound().initial(), common)
    assert not np.array_equal(bound(seed=1).initial(), common)


def test_names_options_and_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mymodels.py").write_text(
        "import torch\n\ndef make(units, bias=True, classes=10):\n"
        "    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, units), "
        "torch.nn.Linear(units, classes, bias))\n\nnumber = 3\n"
    )
    monkeypatch.chdir(tmp_path)
    spec = {"name": "mymodels:make", "units": 5}
    assert canonical_module(spec) == {"name": "mymodels:make", "units": 5, "bias": True}
    assert bound(spec).dimension == 784 * 5 + 5 + 60
    assert bound({**spec, "bias": False}).dimension == 784 * 5 + 5 + 50
    for wrong, error, words in (
        ("mymodels:make", ConfigError, "module mymodels:make needs the option 'units'"),
        ({**spec, "unit": 3}, UnknownOption, "module mymodels:make has no option 'unit': did you mean 'units'"),
        ("mymodels:none", ConfigError, "cannot be imported"),
        ("nowhere:make", ConfigError, "cannot be imported"),
        ("mymodels:number", ConfigError, "is a int; name a function"),
        ("cn", UnknownName, "unknown module 'cn': did you mean 'cnn'"),
        ({"name": "cnn", "chanels": 3}, UnknownOption, "did you mean 'channels'"),
        (3, ConfigError, "module must be a name"),
        ({"name": "mlp", "hidden": [0]}, ConfigError, "mlp: hidden must be whole numbers of at least 1"),
        ({"name": "cnn", "channels": [3]}, ConfigError, "module cnn: channels must be two numbers"),
        ({"name": "resnet8", "width": -1}, ConfigError, "resnet8: width must be whole numbers of at least 1"),
    ):
        with pytest.raises(error, match=words):
            bound(wrong)
    with pytest.raises(ConfigError, match=r"needs images of at least 4 x 4.*use mlp"):
        make_factory("cnn", (9,), 3)()
    assert find("mymodels:make").__name__ == "make"
    with pytest.raises(ConfigError, match="device must be cpu, cuda or cuda:N, got 'gpu'"):
        bound(device="gpu")
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="finds no CUDA; use cpu"):
            bound(device="cuda")


def test_a_config_means_the_same_written_short_or_long() -> None:
    def config(module: Any) -> Any:
        return resolve({"network": "paper/two-castle", "problem": {"name": "torch", "module": module}})

    assert config("cnn") == config({"name": "CNN", "channels": [16, 32]})
    short, long = (
        resolve({"network": "paper/two-castle", "problem": {"name": "torch", "augment": augment}})
        for augment in (["flip", "crop"], [{"name": "flip"}, {"name": "shift", "pixels": 2}])
    )
    assert short == long
    for wrong, words in (
        ("flip", "augment must be a list"),
        (["flop"], "did you mean 'flip'"),
        ([3], "augmentation must be a name or a mapping"),
    ):
        with pytest.raises(ConfigError, match=words):
            resolve({"network": "paper/two-castle", "problem": {"name": "torch", "augment": wrong}})
    assert config("cnn")["problem"]["module"] == {"name": "cnn", "channels": [16, 32], "hidden": 0}


class Pairs(torch.utils.data.Dataset):
    def __init__(self, count: int, numeric: bool = False) -> None:
        generator = torch.Generator().manual_seed(count)
        self.x = torch.randn(count, 2, 5, generator=generator)
        self.y = self.x.sum(dim=(1, 2)) if numeric else (self.x.sum(dim=(1, 2)) > 0).long()

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, place: int) -> tuple[Any, Any]:
        if place >= len(self):
            raise IndexError(place)
        return self.x[place], self.y[place]


def test_torch_data_sets() -> None:
    task = bound("mlp", dataset=(Pairs(60), Pairs(20)), workers=4, test_samples=None)
    assert task.samples.shape == (2, 5) and task.classes == 2
    assert task.describe().sum() == 60
    assert set(task.evaluate(task.initial())) == {"loss", "accuracy"}
    numeric = bound(
        lambda: nn.Sequential(nn.Flatten(), nn.Linear(10, 1)), loss="mse", dataset=(Pairs(60, True), Pairs(20, True))
    )
    assert set(numeric.evaluate(numeric.initial())) == {"loss"}
    models = numeric.initial()
    start = numeric.evaluate(models)["loss"].mean()
    for round in range(150):
        models = models - 0.05 * numeric.gradients(models, round)
    assert numeric.evaluate(models)["loss"].mean() < 0.05 * start
    fitted = bound("mlp", loss="mse", dataset=(Pairs(60, True), Pairs(20, True)))
    assert fitted.dimension == 10 * 128 + 128 + 128 + 1, "one output for numeric targets"
    with pytest.raises(ConfigError, match=r"loss cannot be computed from outputs of shape \(4, 2\)"):
        bound("mlp", loss="mse", dataset=(Pairs(60), Pairs(20)))
    with pytest.raises(ConfigError, match="dataset must be a name, a path, a torch data set"):
        bound("mlp", dataset=(Pairs(60),))
    with pytest.raises(ConfigError, match="cross-entropy needs class labels"):
        bound("mlp", dataset=(Pairs(60, True), Pairs(20, True)))
    with pytest.raises(ConfigError, match="dataset must be a name, a path, a torch data set"):
        problem("torch", dataset=7).bind(workers=2)
    alone = bound("mlp", dataset=Pairs(60), workers=4, test_samples=None)
    assert alone.describe().sum() == 48 and len(alone.samples.test_y) == 12
    with pytest.raises(DataError, match="one sample is not enough"):
        bound("mlp", dataset=Pairs(1))
    with pytest.raises(DataError, match="the test data set is empty"):
        bound("mlp", dataset=(Pairs(60), Pairs(0)))


def test_cifar_with_the_residual_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BYZMESH_CACHE", str(tmp_path / "cache"))
    records = np.random.default_rng(2).integers(0, 256, (60, 3073)).astype(np.uint8)
    records[:, 0] = np.arange(60) % 10
    for number in range(5):
        (tmp_path / f"data_batch_{number + 1}.bin").write_bytes(records[10 * number : 10 * number + 10].tobytes())
    (tmp_path / "test_batch.bin").write_bytes(records[50:].tobytes())
    task = bound({"name": "resnet8", "width": 2}, dataset="cifar-10", data_dir=str(tmp_path), workers=2)
    assert task.samples.shape == (3, 32, 32)
    x, y = task.batches(0, np.arange(2))
    picks = [int(np.flatnonzero((records[:50, 1:4] == _bytes(image)).all(axis=1))[0]) for image in x[0]]
    np.testing.assert_array_equal(y[0].numpy(), records[picks, 0])
    assert np.isfinite(task.gradients(task.initial(), 0)).all()


def _bytes(image: Any) -> Any:
    return np.round((image[0, 0, :3].numpy() + 1) / 2 * 255).astype(np.uint8)
