"""Certificates with a channel: its declared error holds, and the measured contraction is that of what arrived."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.channels import Channel, channel_stages
from byzmesh.channels.pairs import Pairs
from byzmesh.theory.channel_error import channel_error
from byzmesh.theory.measured import round_contraction

D = 400
SPECS: list[Any] = [
    "float16",
    "bfloat16",
    "int8",
    {"name": "int8", "rounding": "nearest"},
    "int4",
    {"name": "gaussian-noise", "sigma": 0.3},
    {"name": "pair-noise", "sigma": 0.3},
    [{"name": "gaussian-noise", "sigma": 0.3}, "int4"],
]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_no_message_is_off_by_more_than_declared_and_some_by_nearly_as_much(spec: Any) -> None:
    draw, worst = np.random.default_rng(0), 0.0
    number = {(a, b): 50 * min(a, b) + max(a, b) for a in range(4) for b in range(4)}
    pairs = Pairs({a: {b: number[a, b] for b in range(4) if b != a} for a in range(4)})
    channel, ids = Channel(spec, D, "float64", pairs=pairs), np.arange(4)
    for round in range(40):
        sent = draw.choice([draw.normal(size=(4, D)), draw.uniform(0.5, 1.0, (4, D))]) * 10.0 ** draw.uniform(-2, 2)
        sent *= 1e-6 if round % 4 == 0 else 1.0
        state = channel.start(sent)
        arrived, _ = channel.receive(channel.send(sent, state, round, ids), state, round, ids)
        for row in range(4):
            error = float(np.linalg.norm(arrived[row] - sent[row]))
            declared = channel_error(channel.stages, 3)
            most = declared.bound(D, float(np.abs(sent[row]).max()), float(np.linalg.norm(sent[row])))
            worst = max(worst, error / most)
            assert error <= most
    assert worst > 0.2


def test_noise_that_is_longer_than_said_is_rare() -> None:
    noise = np.linalg.norm(np.random.default_rng(0).normal(size=(20_000, 9)), axis=1)
    declared = channel_error(channel_stages({"name": "gaussian-noise", "sigma": 1.0}), 3)
    assert "E <= 1 (sqrt(D) + 4), but for one message in 1000" in str(declared)
    assert (noise > 3 + 4).mean() < 1e-3 < (noise > 3).mean()


def test_what_depends_on_the_past_has_no_bound() -> None:
    for name in ("clip", "top-k", "rand-k"):
        assert channel_error(channel_stages(name), 3).bound(D, 1.0, 1.0) == math.inf
    told = bm.certify(bm.network("paper/two-castle"), search=0, channel=["rand-k", "int8"])
    assert told.channel is not None and "rand-k leaves out" in told.channel
    told = bm.certify(bm.network("paper/two-castle"), search=0, channel="int8")
    assert told.channel is not None and "0.00787 max|x| sqrt(D)" in str(told) and "0.9206 R + 2.841 E" in told.channel
    assert bm.certify(bm.network("paper/two-castle"), search=0).channel is None
    krum = bm.certify(bm.network("paper/two-castle"), "krum", search=0, channel="int8")
    assert "nothing is proved" in str(krum.channel)


def test_contraction_of_messages_as_they_arrived_is_that_of_a_loop() -> None:
    draw = np.random.default_rng(1)
    own, arrived, after = draw.normal(size=(3, 5, 2))
    mixing = np.full((5, 5), 0.2)
    found = round_contraction(arrived, after, mixing, own=own)
    for n in range(5):
        heard = [own[m] if m == n else arrived[m] for m in range(5)]
        centre = sum(heard) / 5
        assert found[n] == pytest.approx(
            np.linalg.norm(after[n] - centre) / max(np.linalg.norm(x - centre) for x in heard)
        )


@pytest.mark.parametrize("own", [True, False])
def test_a_noisy_run_keeps_its_promise_and_the_spread_grows(own: bool) -> None:
    """Lies hide in noise, but never beyond what is proved for the messages that arrived."""
    same: dict[str, Any] = {
        "network": "paper/two-castle",
        "problem": {"name": "quadratic", "dimension": 30, "targets": "normal"},
        "attack": "ALIE",
        "rounds": 6,
        "evaluate_every": 1,
        "measure": ["certificate", "channel_spread"],
        "step": 0.3,
    }
    noisy = bm.simulate(**same, channel={"name": "gaussian-noise", "sigma": 0.5, "own": own})
    assert noisy.metrics["violations"].max() == 0 and 0 < noisy.metrics["contraction"].max() <= 0.9206 * 1.001
    grown = noisy.metrics["channel_spread"][1:]
    assert (grown > 1.5).all() if not own else (np.abs(grown - 1.0) < 1e-6).all(), "with own the sender knows it"
    plain = bm.simulate(**same)
    assert (plain.metrics["channel_spread"] == 1.0).all() and plain.metrics["violations"].max() == 0
