"""Channels in the simulator: bytes, checkpoints, identity, lies, and nothing at all without one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.channels import Channel
from byzmesh.channels.pairs import Pairs
from byzmesh.config.cell import make_cell
from byzmesh.config.grid import expand
from byzmesh.config.schema import resolve
from byzmesh.errors import ConfigError
from byzmesh.peers.wire import Format
from byzmesh.sweeps.build import build

SPECS: dict[str, Any] = {
    "float16": "float16",
    "bfloat16": "bfloat16",
    "int8": "int8",
    "int4": "int4",
    "rand-k": {"name": "rand-k", "fraction": 0.4},
    "own mask": {"name": "rand-k", "fraction": 0.4, "shared": False},
    "top-k": {"name": "top-k", "fraction": 0.4},
    "clip": {"name": "clip", "radius": 0.5},
    "noise": "gaussian-noise",
    "noise on others": {"name": "gaussian-noise", "own": False},
    "pairs": "pair-noise",
    "private": [{"name": "clip", "radius": 0.5}, "pair-noise", "gaussian-noise", "int8"],
    "three": ["clip", {"name": "top-k", "fraction": 0.4}, "int8"],
}


def config(channel: Any = None, **more: Any) -> dict[str, Any]:
    usual = {
        "problem": {"name": "quadratic", "dimension": 20, "targets": "normal"},
        "network": {"name": "complete", "n": 6, "byzantine": [2]},
        "attack": "sign-flipping",
        "rule": "ios",
        "rounds": 12,
        "evaluate_every": 4,
        "dtype": "float64",
        "measure": ["bytes_sent"],
        "channel": channel,
    }
    return resolve({**usual, **more})


@pytest.mark.parametrize("name", SPECS)
def test_bytes_are_those_of_the_wire(name: str) -> None:
    run = build(config(SPECS[name])).run()
    form = Format(0, 20, "float64", SPECS[name], pairs=Pairs({1: {2: 3}}))
    size = form.size
    assert len(form.encode(np.ones(20), 1, 0)) == size
    assert run.metrics["bytes_sent"].tolist() == [5 * size * round for round in (0, 4, 8, 12)]
    assert run.metrics["bytes_sent_total"].tolist() == [25 * size * round for round in (0, 4, 8, 12)]
    assert run.workers["bytes_sent"].shape == (4, 5)


def test_bytes_without_a_channel_and_on_a_network_that_changes() -> None:
    size = Format(0, 20, "float64").size
    assert build(config()).run().metrics["bytes_sent"][-1] == 5 * size * 12
    matched = build(config("float16", process="matching", network={"name": "complete", "n": 6}, attack="none")).run()
    assert matched.metrics["bytes_sent"][-1] == Format(0, 20, "float64", "float16").size * 12


@pytest.mark.parametrize("name", SPECS)
def test_a_resumed_run_is_the_same_bit_for_bit(name: str, tmp_path: Path) -> None:
    straight = build(config(SPECS[name])).run()
    first = build(config(SPECS[name]))
    for _ in range(6):
        first.advance()
    first.save(tmp_path / "half.ckpt")
    second = build(config(SPECS[name]))
    second.restore(tmp_path / "half.ckpt")
    resumed = second.run()
    assert np.array_equal(resumed.models, straight.models)
    assert all(np.array_equal(resumed.metrics[key], straight.metrics[key]) for key in straight.metrics)


@pytest.mark.parametrize("name", SPECS)
def test_a_round_is_that_of_a_loop(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One round by hand: every receiver aggregates what it goes on from and what arrived of the others'."""
    written = config(SPECS[name], attack="none", rounds=2, rule="tm", f=1)
    run = build(written)
    links = run.network.links
    shared = Pairs.of_links(links.receiver, links.sender)
    channel, state = Channel(SPECS[name], 20, "float64", written["seed"], pairs=shared), None
    exact: list[np.ndarray] = []
    assert run.courier is not None
    carry = run.courier.carry

    def recorded(sent: np.ndarray, round: int, **options: Any) -> Any:
        exact.append(sent.copy())
        return carry(sent, round, **options)

    monkeypatch.setattr(run.courier, "carry", recorded)
    for number in range(2):
        before = run.models
        run.step()
        state = channel.start(before) if state is None else state
        payload, half = channel.send_and_keep(exact[-1], state, number, np.arange(5))
        arrived, state = channel.receive(payload, state, number, np.arange(5))
        for me in range(5):
            others = [arrived[other] for other in range(5) if other != me]
            assert np.allclose(run.models[me], bm.aggregate("tm", half[me], others, f=1), atol=1e-12)
    if name != "clip":
        assert not np.allclose(arrived, exact[-1])


def test_the_channel_is_part_of_a_runs_identity_and_an_axis_of_grids() -> None:
    keys = {make_cell(config(spec)).key for spec in (None, "int8", {"name": "int8", "rounding": "nearest"}, "int4")}
    assert len(keys) == 4
    assert make_cell(config([])).key == make_cell(config()).key and "channel" not in config()
    assert make_cell(config("INT8")).key == make_cell(config([{"name": "int8", "rounding": "stochastic"}])).key
    base = {"problem": "quadratic", "network": {"name": "ring", "n": 5}, "rounds": 1}
    cells = expand({"base": base, "axes": {"channel": ["int8", ["top-k", "int8"], []]}})
    assert [len(cell.config.get("channel", [])) for cell in cells] == [1, 2, 0]


def test_lies_arrive_as_the_channel_can_carry_them() -> None:
    run = build(config("int8", attack={"name": "huge"}))
    run.step()
    noisy = build(config({"name": "gaussian-noise", "sigma": 5.0}, attack={"name": "sign-flipping"}))
    noisy.step()
    seen = build(config("int4"))
    forged = bm.forge("sign-flipping", seen.network, np.random.default_rng(0).normal(size=(5, 20)))
    assert seen.courier is not None and noisy.courier is not None
    told = seen.courier.lies(forged).dense()
    assert 0 < np.abs(told - forged.dense()).max() <= np.abs(forged.dense()).max() / 14 * 1.0001
    assert np.array_equal(noisy.courier.lies(forged).dense(), forged.dense()), "a liar adds no noise"


@pytest.mark.parametrize("attack", ["gaussian", "adaptive", "label-flipping", "threshold-riding"])
def test_every_kind_of_attack_meets_a_channel(attack: str) -> None:
    problem = {"name": "softmax", "batch": 4} if attack == "label-flipping" else {"name": "quadratic", "dimension": 20}
    run = build(config(["top-k", "int8"], attack=attack, rounds=3, problem=problem)).run()
    assert run.status == "finished"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"process": "link-loss"}, "top-k builds on the last message"),
        ({"channel": "int8", "process": "late"}, "process late do not go through one"),
        ({"problem": {"name": "quadratic", "init": "normal"}}, "start from one model"),
        ({"channel": "pair-noise", "process": "link-loss"}, "pair-noise is for neighbours that stay"),
        (
            {"channel": "gaussian-noise", "rule": {"name": "DRSA", "at": "start"}},
            "this rule sends that of before its step",
        ),
    ],
)
def test_what_a_channel_excludes(more: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        build(config(**{"channel": "top-k", **more})).run()
