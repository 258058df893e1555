"""Every rule equals its slow, loop-written definition: one receiver, networks, both precisions, NumPy and torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import byzmesh as bm
from byzmesh import rng
from byzmesh.rules.base import rules
from tests.rules.cases import ROUND, VARIANTS, WRAPPERS, extras, largest_f, loss, random_weights
from tests.rules.oracles import ORACLES

OWN_TESTS = {"half-and-half", "push-sum"}
"""Rules whose receivers depend on each other have tests of their own (tests/networks/test_directed.py)."""

TOLERANCE = {np.float32: 2e-5, np.float64: 1e-10}


def test_every_registered_rule_has_an_oracle() -> None:
    built_in = {name for name in rules.names() if rules.entry(name).factory.__module__.startswith("byzmesh.")}
    assert built_in - OWN_TESTS <= set(ORACLES)
    assert {name for name, _ in VARIANTS} | set(WRAPPERS) >= built_in - OWN_TESTS


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("name", "options"), VARIANTS, ids=str)
def test_one_receiver(name: str, options: dict[str, Any], dtype: Any) -> None:
    random = np.random.default_rng(7)
    for neighbours in (1, 2, 3, 4, 6, 7, 9, 12):
        for f in range(largest_f(name, neighbours) + 1):
            own, previous, memory = random.normal(size=(3, 17)).astype(dtype)
            received = random.normal(size=(neighbours, 17)).astype(dtype)
            received[: f // 2] *= 30.0
            weights = random_weights(random, neighbours + 1)
            for_oracle, for_us = extras(name, options, previous, memory, 0.25)
            want = ORACLES[name](own, received, weights, f, **for_oracle, **options)
            got = bm.aggregate(name, own, received, weights, f, **{**options, **for_us})
            assert got.dtype == dtype
            np.testing.assert_allclose(got, want, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize(("name", "options"), VARIANTS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_torch_equals_numpy(name: str, options: dict[str, Any], dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    own, previous, memory = torch.randn(3, 9, dtype=dtype)
    received = torch.randn(8, 9, dtype=dtype)
    _, for_us = extras(name, options, previous, memory, 0.5)
    as_numpy = {key: value.numpy() if isinstance(value, torch.Tensor) else value for key, value in for_us.items()}
    got = bm.aggregate(name, own, received, f=1, **{**options, **for_us})
    want = bm.aggregate(name, own.numpy(), received.numpy(), f=1, **{**options, **as_numpy})
    assert got.dtype == dtype
    np.testing.assert_array_equal(got.numpy(), want)


ATTACKS = ("isolation", "alie", "gaussian")
NETWORKS = [
    ("paper/two-castle", {}),
    ("paper/er-12", {}),
    ("complete", {"n": 9, "byzantine": [2, 8]}),
    ("ring", {"n": 8, "byzantine": [3]}),
    ("chain", {"n": 7, "byzantine": [3]}),
    ("star", {"n": 9, "byzantine": [4]}),
    ("torus", {"rows": 4, "columns": 4, "byzantine": [5]}),
    ("k-regular", {"n": 24, "k": 6, "byzantine": 3}),
    ("watts-strogatz", {"n": 14, "k": 4, "p": 0.3, "byzantine": [0, 7]}),
    ("erdos-renyi", {"n": 13, "p": 0.6, "byzantine": [1, 6]}),
    ("dumbbell", {"k": 5, "byzantine": [0]}),
    ("two-worlds", {"n": 12, "k": 2, "byzantine": [4]}),
    ("random-geometric", {"n": 14, "radius": 0.6, "byzantine": [9]}),
    ("paper/octopus", {}),
]


@pytest.mark.parametrize(("topology", "parameters"), NETWORKS, ids=lambda value: str(value))
def test_whole_network_equals_the_loop_over_receivers(topology: str, parameters: dict[str, Any]) -> None:
    dtype = (np.float32, np.float64)[NETWORKS.index((topology, parameters)) % 2]  # one receiver is tried with both
    network = bm.network(topology, **parameters)
    random = np.random.default_rng(3)
    models, previous = random.normal(size=(2, len(network.honest), 11)).astype(dtype)
    row_of = {int(worker): row for row, worker in enumerate(network.honest)}
    lies_of = {
        (attack, kind): bm.forge(attack, network, sent)
        for attack in ATTACKS
        for kind, sent in (("half", models), ("start", previous))
    }

    def losses(candidates: Any) -> Any:
        return np.array([[loss(vector) for vector in line] for line in candidates])

    for turn, (name, options) in enumerate(VARIANTS):
        largest = min(rules.build(name).largest_f(int(degree)) for degree in network.layout.degree)
        largest = min(largest, int(network.layout.degree.min()) - 1)
        for f in sorted({turn % (largest + 1), largest}) if largest >= 0 else ():  # one receiver is tried with each f
            attack = ATTACKS[(turn + f) % len(ATTACKS)]
            kind = rules.build(name, **options).sends
            sent, lies = previous if kind == "start" else models, lies_of[attack, kind]
            facts = {"f": f, "round": bm.Round(step_size=0.25, number=ROUND), "loss": losses, **options}
            out = bm.aggregate_all(name, network, models, lies, previous=previous, **facts)
            as_torch = bm.Forged(lies.liar, lies.victim, lies.row, models, rows=torch.from_numpy(lies.dense()))
            tensors = {"models": torch.from_numpy(models), "previous": torch.from_numpy(previous)}
            other = bm.aggregate_all(name, network, tensors["models"], as_torch, previous=tensors["previous"], **facts)
            assert isinstance(other.models, torch.Tensor)
            for row, worker in enumerate(network.honest):
                inbox = [
                    sent[row_of[int(near)]] if int(near) in row_of else lies[int(near), int(worker)]
                    for near in network.neighbours(int(worker))
                ]
                weights = network.layout.weight[row, : len(inbox) + 1]
                for_oracle, _ = extras(name, options, previous[row], np.zeros(11), 0.25)
                want = ORACLES[name](models[row], np.array(inbox), weights, f, **for_oracle, **options)
                within = {"rtol": 0, "atol": TOLERANCE[dtype] * (1.0 + np.abs(inbox).max())}
                note = f"{name} {attack} f={f} worker {worker}"
                np.testing.assert_allclose(out.models[row], want, **within, err_msg=note)
                np.testing.assert_allclose(other.models[row].numpy(), want, **within, err_msg=f"torch {note}")


@pytest.mark.parametrize(
    ("name", "options"),
    [case for case in VARIANTS if case[0] not in ("UBAR", "Zeno", "SimRew", "DRSA", "ByRDiE")],
    ids=str,
)
def test_rules_around_other_rules_equal_their_oracles(name: str, options: dict[str, Any]) -> None:
    random = np.random.default_rng(5)
    own, received = random.normal(size=6), random.normal(size=(9, 6))
    weights = random_weights(random, 10)
    memory = np.zeros(6)
    for_oracle, _ = extras(name, options, None, memory, 1.0)
    f = 1 if largest_f(name, 5) >= 1 else 0
    inner = {"name": name, **options}
    want = ORACLES["NNM"](own, received, weights, f, rule=name, **for_oracle, **options)
    np.testing.assert_allclose(bm.aggregate("NNM", own, received, weights, f, inner=inner), want, rtol=1e-9, atol=1e-9)
    want = ORACLES["WeightedNNM"](own, received, weights, f, rule=name, **for_oracle, **options)
    got = bm.aggregate("WeightedNNM", own, received, weights, f, inner=inner)
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)
    want = ORACLES["ARC"](own, received, weights, f, rule=name, **for_oracle, **options)
    np.testing.assert_allclose(bm.aggregate("ARC", own, received, weights, f, inner=inner), want, rtol=1e-9, atol=1e-9)
    groups = _groups(9, 2, seed=4, round=3)
    want = ORACLES["bucketing"](own, received, weights, f, groups=groups, rule=name, **for_oracle, **options)
    got = bm.aggregate("bucketing", own, received, weights, f, inner=inner, s=2, round=bm.Round(number=3, seed=4))
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


def _groups(neighbours: int, size: int, *, seed: int, round: int) -> list[list[int]]:
    """Which neighbours bucketing puts together: its documented draw, in groups of `size`."""
    draw = rng.uniforms(rng.key(seed, rng.RULE), [0], round, neighbours)[0]
    order = np.argsort(draw, kind="stable").tolist()
    return [order[start : start + size] for start in range(0, neighbours, size)]
