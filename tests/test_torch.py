"""bm.torch: modules as vectors, robust aggregation of state_dicts, and a worker's vector as a state_dict."""

from __future__ import annotations

import copy
import subprocess
import sys
from itertools import pairwise
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import byzmesh as bm
from byzmesh.errors import ConfigError, InfeasibleBound
from byzmesh.problems.data.datasets import dataset
from byzmesh.problems.neural.task import TorchTask


class Tied(nn.Module):
    """Encoder and decoder share one matrix; the layer between is frozen, the norm has running statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(4, 4)
        self.middle = nn.Linear(4, 4)
        self.middle.requires_grad_(False)
        self.norm = nn.BatchNorm1d(4)
        self.decoder = nn.Linear(4, 4)
        self.decoder.weight = self.encoder.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.decoder(self.norm(self.middle(self.encoder(x))))


def shaken(module: nn.Module, seed: int) -> nn.Module:
    """A copy with other numbers everywhere, frozen parameters and buffers included."""
    draw = torch.Generator().manual_seed(seed)
    other = copy.deepcopy(module)
    with torch.no_grad():
        for value in [*other.parameters(), *other.buffers()]:
            if value.is_floating_point():
                value.copy_(torch.randn(value.shape, generator=draw))
    return other


def message(module: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


@st.composite
def small_modules(draw: st.DrawFn) -> nn.Module:
    sizes = draw(st.lists(st.integers(1, 4), min_size=2, max_size=4))
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers.append(nn.Linear(inputs, outputs, bias=draw(st.booleans())))
        layers[-1].requires_grad_(len(layers) == 1 or draw(st.booleans()))
        if draw(st.booleans()):
            layers.append(draw(st.sampled_from([nn.BatchNorm1d(outputs), nn.ReLU(), nn.LayerNorm(outputs)])))
        if draw(st.booleans()) and inputs == outputs:
            layers.append(layers[0] if draw(st.booleans()) else nn.Linear(outputs, outputs))
    return nn.Sequential(*layers).to(draw(st.sampled_from([torch.float32, torch.float64])))


@settings(max_examples=60, deadline=None)
@given(small_modules(), st.integers(0, 1000))
def test_round_trip(module: nn.Module, seed: int) -> None:
    other = shaken(module, seed)
    frozen = [value.clone() for value in [*other.parameters(), *other.buffers()] if not value.requires_grad]
    vector = bm.torch.flatten(module)
    bm.torch.load(other, vector)
    trained = [value for value in module.parameters() if value.requires_grad]
    assert vector.shape == (sum(value.numel() for value in trained),) and not vector.requires_grad
    assert torch.equal(bm.torch.flatten(other), vector)
    for mine, loaded in zip(trained, (value for value in other.parameters() if value.requires_grad), strict=True):
        assert torch.equal(mine, loaded)
    kept = [value for value in [*other.parameters(), *other.buffers()] if not value.requires_grad]
    assert all(torch.equal(before, after) for before, after in zip(frozen, kept, strict=True))


@settings(max_examples=40, deadline=None)
@given(
    small_modules(),
    st.sampled_from(["ios", "krum", "coomed", "trimean", "geomed", "weimean", {"name": "cc", "tau": 0.5}]),
    st.integers(0, 1000),
)
def test_aggregate_is_the_rule_on_the_vectors(module: nn.Module, rule: Any, seed: int) -> None:
    others = [shaken(module, seed + place) for place in range(5)]
    weights = np.random.default_rng(seed).dirichlet(np.ones(6))
    want = bm.aggregate(
        rule, bm.torch.flatten(module), [bm.torch.flatten(other) for other in others], weights=weights, f=1
    )
    sent = [message(other) for other in others]
    before = copy.deepcopy(sent)
    assert bm.torch.aggregate(rule, module, sent, weights=weights, f=1) == []
    assert torch.equal(bm.torch.flatten(module), want)
    for one, two in zip(sent, before, strict=True):
        assert all(torch.equal(one[name], two[name]) for name in two)


def test_shared_frozen_and_buffers() -> None:
    module = shaken(Tied(), 0)
    parameters = list(module.parameters())
    kept = message(module)
    sent = [message(shaken(module, seed)) for seed in (1, 2, 3)]
    bm.torch.aggregate("weimean", module, sent, f=0)
    mean = (kept["encoder.weight"] + sum(one["encoder.weight"] for one in sent)) / 4
    assert torch.allclose(module.encoder.weight, mean)
    assert module.decoder.weight is module.encoder.weight
    for name in ("middle.weight", "middle.bias", "norm.running_mean", "norm.running_var", "norm.num_batches_tracked"):
        assert torch.equal(module.state_dict()[name], kept[name]), name
    # an optimiser goes on with the same parameter objects
    assert all(one is two for one, two in zip(module.parameters(), parameters, strict=True))


def test_other_entries_are_ignored_and_messages_may_require_gradients() -> None:
    module = nn.Linear(3, 2)
    sent = dict(shaken(module, 1).named_parameters()) | {"more": torch.full((5,), torch.nan), "text": "hello"}
    want = (bm.torch.flatten(module) + torch.cat([sent["weight"].reshape(-1), sent["bias"]]).detach()) / 2
    assert bm.torch.aggregate("weimean", module, [sent], f=0) == []
    assert torch.allclose(bm.torch.flatten(module), want) and module.weight.requires_grad


def spoiled(**entries: Any) -> dict[str, Any]:
    good = message(shaken(nn.Linear(3, 2), 9))
    return {name: value for name, value in (good | entries).items() if value is not None}


SILENT = {
    "none": None,
    "list": [torch.zeros(2, 3), torch.zeros(2)],
    "text": "weight",
    "number": 7,
    "empty": {},
    "lacks a parameter": spoiled(bias=None),
    "wrong shape": spoiled(weight=torch.zeros(3, 2)),
    "flattened": spoiled(weight=torch.zeros(6)),
    "double": spoiled(weight=torch.zeros(2, 3, dtype=torch.float64)),
    "integers": spoiled(weight=torch.zeros(2, 3, dtype=torch.int32)),
    "complex": spoiled(weight=torch.zeros(2, 3, dtype=torch.complex64)),
    "numpy": spoiled(weight=np.zeros((2, 3), np.float32)),
    "sparse": spoiled(weight=torch.zeros(2, 3).to_sparse()),
    "meta": spoiled(weight=torch.zeros(2, 3, device="meta")),
    "NaN": spoiled(bias=torch.tensor([0.0, torch.nan])),
    "infinity": spoiled(weight=torch.full((2, 3), -torch.inf)),
}


@pytest.mark.parametrize("bad", SILENT.values(), ids=SILENT)
def test_silence(bad: Any) -> None:
    module = shaken(nn.Linear(3, 2), 0)
    own = bm.torch.flatten(module)
    good = [shaken(module, seed) for seed in (1, 2, 3)]
    with pytest.warns(bm.BadMessage, match=r"\[1\]"):
        silent = bm.torch.aggregate("ios", module, [message(good[0]), bad, *map(message, good[1:])], f=1)
    assert silent == [1]
    weights = np.array([2, 1, 1, 1]) / 5  # the lost weight went to the receiver itself
    want = bm.aggregate("ios", own, [bm.torch.flatten(one) for one in good], weights, f=1)
    assert torch.allclose(bm.torch.flatten(module), want)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_one_number_that_is_not_finite_is_enough(kind: torch.dtype) -> None:
    module = nn.Linear(100, 3, bias=False).to(kind)
    for place in (0, 1, 63, 150, 298, 299):
        for bad in (torch.nan, torch.inf, -torch.inf):
            sent = message(module)
            sent["weight"].view(-1)[place] = bad
            with pytest.warns(bm.BadMessage):
                assert bm.torch.aggregate("weimean", module, [message(module), sent], f=0) == [1]


def test_all_silent_keeps_its_own_parameters() -> None:
    module = nn.Linear(3, 2)
    own = bm.torch.flatten(module)
    with pytest.warns(bm.BadMessage):
        assert bm.torch.aggregate("ios", module, iter([None, None]), f=1) == [0, 1]
    assert torch.equal(bm.torch.flatten(module), own)


def test_huge_lies_do_no_harm() -> None:
    module = shaken(nn.Linear(3, 2), 0)
    sent = [message(shaken(module, seed)) for seed in (1, 2)]
    sent.append({name: torch.full_like(value, 3e38) for name, value in sent[0].items()})
    bm.torch.aggregate("ios", module, sent, f=1)
    assert bm.torch.flatten(module).abs().max() < 10


def test_the_rules_of_two_points_get_theirs() -> None:
    module = shaken(nn.Linear(3, 2), 0)
    own, start = bm.torch.flatten(module), bm.torch.flatten(module) + 0.1
    others = [shaken(module, seed) for seed in (1, 2, 3)]
    vectors = [bm.torch.flatten(other) for other in others]
    for rule, options in [
        ("simrew", {"previous": start}),
        ("cc", {"centre": start, "tau": 0.2}),
        ("drsa", {"round": bm.Round(step_size=0.3)}),
    ]:
        want = bm.aggregate(rule, own, vectors, f=1, **options)
        bm.torch.load(module, own)
        bm.torch.aggregate(rule, module, map(message, others), f=1, **options)
        assert torch.equal(bm.torch.flatten(module), want), rule


def test_half_and_mixed_precision_come_back_as_they_were() -> None:
    module = nn.Sequential(nn.Linear(3, 2).to(torch.bfloat16), nn.LayerNorm(2))
    sent = [message(shaken(module, seed)) for seed in (1, 2, 3)]
    assert bm.torch.aggregate("ios", module, sent, f=1) == []
    assert [value.dtype for value in module.parameters()] == [torch.bfloat16] * 2 + [torch.float32] * 2


def test_tensors_off_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a module on a GPU would go through, with CPU tensors."""
    from byzmesh.rules import interop as arrays

    module = shaken(Tied(), 0)
    sent = [message(shaken(module, seed)) for seed in (1, 2, 3)]
    twin = copy.deepcopy(module)
    bm.torch.aggregate("ios", twin, sent, f=1)
    plain = arrays.Bridge.__init__

    def elsewhere(self: arrays.Bridge, like: object, name: str) -> None:
        plain(self, like, name)
        self.here = False

    monkeypatch.setattr(arrays.Bridge, "__init__", elsewhere)
    weights = [0.25, 0.25, 0.25, 0.25, 0.0]
    with pytest.warns(bm.BadMessage, match=r"\[3\]"):
        assert bm.torch.aggregate("ios", module, [*sent, None], weights=weights, f=1) == [3]
    assert torch.allclose(bm.torch.flatten(module), bm.torch.flatten(twin), atol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda m: bm.torch.aggregate("ios", m, m.state_dict(), f=1), ConfigError, ["received_state_dicts", "list"]),
        (lambda m: bm.torch.aggregate("ios", m, cast(Any, 3), f=1), ConfigError, ["received_state_dicts", "int"]),
        (lambda m: bm.torch.aggregate("ios", m, [m.state_dict()], f=1), InfeasibleBound, ["f = 1", "IOS"]),
        (lambda m: bm.torch.aggregate("cc", m, [m.state_dict()], f=0, ta=1), ConfigError, ["'ta'", "'tau'"]),
        (lambda m: bm.torch.aggregate("ios", nn.ReLU(), [{}], f=0), ConfigError, ["ReLU", "no trainable"]),
        (lambda m: bm.torch.flatten(m.requires_grad_(False)), ConfigError, ["Linear", "no trainable"]),
        (lambda m: bm.torch.load(m, torch.zeros(7)), ConfigError, ["8 trainable", "(7,)"]),
    ],
)
def test_mistakes_change_nothing(call: Any, error: type[Exception], words: list[str]) -> None:
    module = nn.Linear(3, 2)
    before = message(module)
    with pytest.raises(error) as caught:
        call(module)
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in words)
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


class Partly(nn.Module):
    """A frozen random layer, a constant buffer, and one matrix used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen = nn.Linear(784, 6).requires_grad_(False)
        self.first = nn.Linear(6, 6)
        self.second = nn.Linear(6, 6)
        self.second.weight = self.first.weight
        self.last = nn.Linear(6, 10)
        self.register_buffer("scale", torch.rand(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.second(torch.relu(self.first(self.frozen(x.flatten(1)) * self.scale))))


def test_state_dict_of_a_torch_task_gives_the_model_that_was_evaluated() -> None:
    task = bm.problem("torch", module=Partly, test_samples=400, batch=4).bind(workers=2, seed=5)
    model = task.initial("own")[1] + np.float32(0.1)
    assert isinstance(task, TorchTask)
    skeleton = message(task.skeleton)
    module = Partly()
    module.load_state_dict(bm.torch.state_dict(task, model))
    digits = dataset("mnist")
    x = torch.from_numpy(digits.test_x[:400]) * digits.scale + digits.offset
    found = (module(x.float()).argmax(1) == torch.from_numpy(digits.test_y[:400])).double().mean()
    assert float(found) == task.evaluate(model[None])["accuracy"][0]
    np.testing.assert_array_equal(bm.torch.flatten(module).numpy(), model)
    assert all(torch.equal(value, skeleton[name]) for name, value in task.skeleton.state_dict().items())


@pytest.mark.parametrize("name", ["softmax", "logistic", "least-squares"])
def test_state_dict_of_a_linear_task_gives_the_same_scores(name: str) -> None:
    task = bm.problem(name, init="normal").bind(workers=2, dtype="float64")
    model = task.initial()[1]
    entries = bm.torch.state_dict(task, model)
    layer = nn.Linear(784, entries["weight"].shape[0], dtype=torch.float64)
    layer.load_state_dict(entries)
    digits = dataset("mnist")
    scores = layer(torch.from_numpy(digits.test_x).double() * digits.scale + digits.offset)
    labels = torch.from_numpy(digits.test_y.astype(np.int64))
    right = scores.argmax(1) == labels if name == "softmax" else (scores[:, 0] > 0) == (labels % 2 == 1)
    assert abs(float(right.double().mean()) - task.evaluate(model[None])["accuracy"][0]) < 2e-4


def test_state_dict_mistakes() -> None:
    quadratic = bm.problem("quadratic").bind(workers=2)
    with pytest.raises(ConfigError, match="no layers"):
        bm.torch.state_dict(quadratic, np.zeros(quadratic.dimension))
    for task in (bm.problem("softmax").bind(workers=2), bm.problem("torch", module="linear").bind(workers=2)):
        with pytest.raises(ConfigError, match=r"7850.*\(3,\)"):
            bm.torch.state_dict(task, np.zeros(3, np.float32))


WITHOUT_TORCH = """
import os, sys
sys.modules["torch"] = None
import byzmesh as bm
print(all(getattr(bm, name) is not None for name in bm.__all__), flush=True)
for call in sys.argv[1:]:
    if os.fork() == 0:
        exec(call)
        sys.exit()
    os.wait()
    print("----", file=sys.stderr, flush=True)
"""


def test_without_pytorch_one_line_names_the_extra_and_the_rest_is_there() -> None:
    calls = {
        "bm.torch.flatten(None)": "bm.torch.flatten",
        "bm.torch.load(None, None)": "bm.torch.load",
        "bm.torch.aggregate('ios', None, [])": "bm.torch.aggregate",
        "bm.torch.state_dict(None, None)": "bm.torch.state_dict",
        "bm.problem('torch', module='mlp')": "problem 'torch'",
    }
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH, *calls], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
    needs = "needs an extra that is not installed: pip install 'byzmesh[torch]'"
    last = [said.strip().splitlines()[-1] for said in done.stderr.removesuffix("----\n").split("----\n")]
    assert last == [f"byzmesh.errors.MissingExtra: {what} {needs}" for what in calls.values()]
