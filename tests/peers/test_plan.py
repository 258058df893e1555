"""Whatever `byzmesh run` accepts, `byzmesh peers plan` plans, and a peer runs it; or it is refused in a line that names
the key. Nothing is dropped on the way.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from byzmesh.attacks.base import attacks
from byzmesh.channels import stages
from byzmesh.config.paths import anchor_problem
from byzmesh.config.schema import KEYS, TRAINING, resolve
from byzmesh.errors import ByzmeshError, ConfigError
from byzmesh.networks import Network
from byzmesh.networks.processes import processes
from byzmesh.networks.weights import schemes
from byzmesh.peers.identity import keygen, load_public
from byzmesh.peers.network_file import NetworkFile, load_network, save_network
from byzmesh.peers.plan import addresses, plan_network
from byzmesh.problems.base import problems
from byzmesh.problems.data.partition import partitions
from byzmesh.problems.data.split import BATCHINGS
from byzmesh.rules.base import rules
from byzmesh.sweeps.build import build
from byzmesh.training.local import MOMENTA, VARIANCES, LocalOptions
from byzmesh.training.metrics import ALWAYS, metrics
from byzmesh.training.profiles import PROFILES
from byzmesh.training.schedules import schedules
from tests.peers.worlds import PATIENT, train

PEERS = 6
PLUGIN = """
import byzmesh as bm

@bm.register_rule("planned-rule")
def planned_rule():
    return bm.rule("ios")
"""
MODULE = """
def make(shape, classes):
    import torch

    return torch.nn.Linear(shape[0], classes)

def make_norm(shape, classes):
    import torch

    return torch.nn.Sequential(torch.nn.BatchNorm1d(shape[0]), torch.nn.Linear(shape[0], classes))
"""
SOFTMAX = {"name": "softmax", "dataset": "samples.npz", "batch": 4}
TORCH = {"name": "torch", "module": {"name": "mlp", "hidden": [3]}, "dataset": "samples.npz", "batch": 4}
BINARY: list[dict[str, Any]] = [
    {"classes": [0, 1]},
    {"data_dir": ".", "dataset": "samples.npz"},
    *({"partition": name} for name in partitions.names() if name != "sizes"),
    {"partition": {"name": "sizes", "shares": [1, 2, 3, 4, 5, 6]}},
    {"batch": 3},
    *({"batching": name} for name in BATCHINGS),
    {"init": "normal", "scale": 2.0},
]
NEURAL: list[dict[str, Any]] = [
    {"module": "linear"},
    {"module": "models.py:make"},
    {"module": {"name": "models:make"}},
    {"loss": "cross-entropy"},
    {"data_dir": ".", "dataset": "samples.npz"},
    {"partition": {"name": "dirichlet", "alpha": 0.3}},
    {"batch": 3, "batching": "consecutive"},
    {"init": "own"},
    {"augment": []},
    {"test_samples": 50},
    {"gradients": "loop"},
    {"device": "cpu"},
    {"base": "base.safetensors", "adapter": {"name": "lora", "rank": 1}},
    {"module": "models.py:make_norm", "buffers": "local"},
    {"precision": "bfloat16"},
]
CURVED: list[dict[str, Any]] = [
    {"targets": "normal"},
    {"dimension": 3, "curvature": 2.0},
    {"init": "normal", "scale": 2.0},
]
NOISY: list[dict[str, Any]] = [
    {"delta_in": 0.5, "delta_out": 0.2, "dimension": 3},
    {"samples": 4, "curvature": 2.0},
    {"init": "common", "scale": 2.0},
]
PROBLEMS: dict[str, list[dict[str, Any]]] = {
    "softmax": [{**SOFTMAX, **more} for more in BINARY[1:]],
    "logistic": [{**SOFTMAX, "name": "logistic", "classes": [0, 1], **more} for more in BINARY],
    "least-squares": [{**SOFTMAX, "name": "least-squares", "classes": [0, 1], **more} for more in BINARY],
    "quadratic": [{"name": "quadratic", **more} for more in CURVED],
    "noisy-quadratic": [{"name": "noisy-quadratic", **more} for more in NOISY],
    "torch": [{**TORCH, **more} for more in NEURAL],
}
LOCAL: dict[str, list[Any]] = {
    "decay": [0, 0.5],
    "momentum": list(MOMENTA),
    "beta": [0.5],
    "steps": [1, 3],
    "clip": [None, 0.1],
    "clip_samples": [None, 0.1],
    "variance": list(VARIANCES),
    "refresh": [None, 0.5],
    "accumulate": [2],
    "optimizer": ["AdamW", {"name": "SGD", "momentum": 0.9}],
    "outer": ["none", "nesterov", {"name": "plain", "step": 0.5}],
}
EDGES = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 0], [0, 3], [1, 4], [2, 5]]
RING = {"name": "ring", "n": PEERS}
TABLE: dict[str, list[Any]] = {
    "problem": [spec for variants in PROBLEMS.values() for spec in variants],
    "network": [
        RING,
        {**RING, "byzantine": [4]},
        {**RING, "samples": [1, 2, 3, 4, 5, 6]},
        {**RING, "byzantine": 2, "seed": 3},
        *({**RING, "weights": name} for name in schemes.names()),
        {"edges": EDGES, "n": PEERS, "label": "office"},
        "office.edges",
        {"file": "office.edges", "byzantine": [5]},
    ],
    "rule": [*rules.names(), {"name": "CC", "tau": 0.2}, {"name": "bucketing", "inner": {"name": "CC", "tau": 1.0}}],
    "attack": attacks.names(),
    "f": ["exact", "max", 0, 1, [0, 1, 0, 1, 0, 1]],
    "objective": ["workers", "samples"],
    "b": [0.2],
    "process": [
        *(name for name in processes.names() if name != "schedule"),
        {"name": "schedule", "edges": [[[0, 1]], [[1, 2], [3, 4]]]},
        [{"name": "random-pull", "s": 2}, {"name": "link-loss", "p": 0.3}, "sleep"],
        {"name": "sleep", "liars": "awake"},
    ],
    "channel": [*stages.names(), [{"name": "clip", "radius": 0.5}, "int8"]],
    "rounds": [2, 0],
    "evaluate_every": [1, 7],
    "step": [0.2, *schedules.names(), {"name": "step", "a": 0.5, "factor": 0.5, "every": 1}],
    "local": [
        *({option: value} for option, values in LOCAL.items() if option != "refresh" for value in values),
        *({"variance": "lsvrg", "refresh": value} for value in LOCAL["refresh"]),
    ],
    "seed": [0, 5],
    "dtype": ["float32", "float64"],
    "threads": [1, 2],
    "measure": [[name] for name in metrics.names() if name != "perplexity"],  # of text alone
    "labels": [{"case": "mine", "turn": 3}],
    "plugins": ["planned.py", ["planned.py"]],
    "profile": list(PROFILES),
}
REFUSED: dict[str, list[Any]] = {
    "process": ["late", {"name": "sleep", "liars": "awake"}],
    "rounds": [0],
    "measure": [[name] for name in metrics.names() if not metrics.build(name).alone and name not in ALWAYS],
}
"""What a peer cannot do: old messages, knowing who lies, zero rounds, and numbers that need every worker's model."""

PLANNED_ONLY = [*PROBLEMS["logistic"][1:-1], *PROBLEMS["least-squares"][1:-1]]
"""How data are shared out and drawn is the same code for these as for softmax, where all of it runs."""
_trained: set[str] = set()


def trained(file: NetworkFile) -> bool:
    """Whether an equal file was run before: what is not in it, as the attack, cannot change the run."""
    content = file.model_dump_json(exclude={"name"})
    known = content in _trained
    _trained.add(content)
    return known


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, samples: Path) -> Path:
    """A config's folder, with files that configs name."""
    made = tmp_path_factory.mktemp("plan")
    (made / "samples.npz").write_bytes(samples.read_bytes())
    (made / "planned.py").write_text(PLUGIN)
    (made / "models.py").write_text(MODULE)
    weights = {"1.weight": (3, 20), "1.bias": (3,), "3.weight": (4, 3), "3.bias": (4,)}
    save_file({name: np.ones(shape, np.float32) for name, shape in weights.items()}, made / "base.safetensors")
    (made / "office.edges").write_text("\n".join(f"{a} {b}" for a, b in EDGES))
    keygen(made / "keys", PEERS)
    return made


@pytest.fixture(autouse=True)
def _no_plugins() -> Iterator[None]:
    with rules.temporary():
        yield


def raw(key: str, value: Any) -> dict[str, Any]:
    liars = [5] if key == "attack" and value != "none" else []
    network = {"edges": EDGES, "n": PEERS, "byzantine": liars}
    usual = {"problem": SOFTMAX, "network": network, "rule": "weimean", "rounds": 1}
    return {**usual, "evaluate_every": 1, key: value}


def plan(run: dict[str, Any], folder: Path) -> NetworkFile:
    where, public = addresses("127.0.0.1:7000", PEERS), load_public(folder / "keys")
    file = plan_network(
        run, Network.from_spec(run["network"]), where, public, folder, timeouts={**PATIENT, "linger": 1.0}
    )
    return load_network(save_network(file, folder / "network.yaml"))


TORCH_ONCE = pytest.mark.xdist_group("torch")
"""One process imports PyTorch, not all."""
CASES = [
    pytest.param(key, value, marks=[TORCH_ONCE] if "'torch'" in str(value) or "optim" in str(value) else [])
    for key, values in TABLE.items()
    for value in values
]


@pytest.mark.parametrize(("key", "value"), CASES, ids=lambda part: str(part)[:60])
def test_planned_and_run_or_refused_by_name(folder: Path, tmp_path: Path, key: str, value: Any) -> None:
    run = resolve(raw(key, value), folder)
    if value in REFUSED.get(key, []):
        with pytest.raises(ConfigError, match=key) as caught:
            plan(run, folder)
        assert "\n" not in str(caught.value)
        return
    file = plan(run, folder)
    kept = file.model_dump()
    for name in TRAINING:
        told, meant = kept[name], run.get(name, type(kept[name])())
        if name == "problem":
            told = anchor_problem(told, folder)
        if name == "plugins":
            told = [str(folder / script) for script in told]
        assert told == meant, name
    assert file.network.n == len(file.peers)
    if key != "profile" and value not in PLANNED_ONLY and not trained(file):  # a profile has fifty thousand rounds
        assert train(file, folder / "keys", tmp_path / "out").shape[0] == len(file.peers)


def test_the_table_has_every_key_and_option() -> None:
    assert set(TABLE) == set(KEYS)
    assert set(LOCAL) == {field.name for field in dataclasses.fields(LocalOptions)}
    assert set(PROBLEMS) == set(problems.names())
    for name, variants in PROBLEMS.items():
        assert set(problems.entry(name).options) <= {option for spec in variants for option in spec}, name


@TORCH_ONCE
def test_a_problem_that_variance_reduction_cannot_do_is_refused_by_run_and_by_plan(folder: Path) -> None:
    for problem in ("quadratic", TORCH):
        run = resolve(raw("problem", problem) | {"local": {"variance": "saga"}}, folder)
        for refusal in (lambda run=run: build(run), lambda run=run: plan(run, folder)):
            with pytest.raises(ByzmeshError, match="local variance 'saga' needs a problem with samples"):
                refusal()


def test_who_lies_is_not_in_the_file_whatever_the_attack(folder: Path) -> None:
    liars = {"network": {**RING, "byzantine": [4]}}
    files = [
        plan(resolve(raw("attack", name) | liars, folder), folder).model_dump() for name in ("ALIE", "sign-flipping")
    ]
    assert files[0] == files[1] and "ALIE" not in str(files[0])
