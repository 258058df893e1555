"""Sketches tell distances, and what they let through is the rule's to judge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.channels import Channel, canonical_channel, sent_bytes
from byzmesh.channels.sketch import Sketch
from byzmesh.config.schema import resolve
from byzmesh.errors import ConfigError
from byzmesh.rules.base import rules
from byzmesh.sweeps.build import build

D = 1000


def sketched(vectors: np.ndarray, width: int = 32, seed: int = 0) -> np.ndarray:
    return Channel({"name": "sketch", "width": width}, vectors.shape[1], str(vectors.dtype), seed).sketches(vectors)


def test_a_sketch_is_a_signed_sum_over_buckets_turned_by_stretches() -> None:
    """Column by column: every coordinate goes to one bucket with one sign, a stretch to as many buckets as it has."""
    columns = sketched(np.eye(100))
    assert (np.abs(columns).sum(axis=1) == 1.0).all() and (np.abs(columns).max(axis=1) == 1.0).all()
    for start in range(0, 100, 32):
        buckets = np.abs(columns[start : start + 32]).argmax(axis=1)
        assert (np.diff(buckets) % 32 == 1).all(), "turned, in order"
    vector = np.random.default_rng(0).normal(size=(1, 100))
    assert np.allclose(sketched(vector), vector @ columns, atol=1e-6)


def test_squared_lengths_are_unbiased_and_vary_as_stated() -> None:
    vector = np.random.default_rng(1).normal(size=(1, D))
    vector[0, :3] = [20.0, -15.0, 30.0]  # a few large coordinates are the worst case
    square = np.array([(sketched(vector, seed=seed) ** 2).sum() for seed in range(2000)]) / (vector**2).sum()
    assert abs(square.mean() - 1.0) < 5 * np.sqrt(2 / 32 / 2000)
    assert square.var() < 2 / 32 * 1.2
    assert (sketched(vector) == sketched(vector)).all() and (sketched(vector) != sketched(vector, seed=1)).any()


def passing(distances: list[float], f: int, slack: float, came: list[int] | None = None) -> list[int]:
    """Which of the neighbours at these distances are fetched."""
    rows = np.array([[0.0], *([d] for d in distances)], np.float32)
    present = np.ones((1, len(rows)), bool)
    if came is not None:
        present[0, 1:] = np.isin(np.arange(len(distances)), came)
    chosen = Sketch(width=1, slack=slack).passing(rows, np.arange(len(rows))[None], present, np.array([f]))[0]
    assert chosen[0]
    return np.flatnonzero(chosen[1:]).tolist()


def test_who_passes() -> None:
    near = [3.0, 1.0, 2.0, 50.0, 5.0]
    assert passing(near, f=1, slack=1.0) == [0, 1, 2, 4], "all but the farthest"
    assert passing(near, f=2, slack=1.0) == [0, 1, 2]
    assert passing(near, f=2, slack=2.0) == [0, 1, 2, 4], "5 is less than twice 3"
    assert passing(near, f=0, slack=1.0) == [0, 1, 2, 3, 4]
    assert passing(near, f=1, slack=1.0, came=[0, 3]) == [0], "of those that came"
    assert passing(near, f=2, slack=2.0, came=[0, 3]) == [], "both may lie"
    assert passing([0.0, 0.0, 1.0], f=1, slack=3.0) == [0, 1]


@pytest.mark.parametrize("seed", range(20))
def test_liars_cannot_make_a_receiver_fetch_what_is_far(seed: int) -> None:
    """Whatever f liars send, nothing beyond slack times the farthest honest sketch is fetched."""
    random = np.random.default_rng(seed)
    honest, f = random.exponential(size=6).tolist(), 3
    lies = (10.0 ** random.uniform(-3, 6, f)).tolist()
    fetched = passing([*lies, *honest], f, slack=1.5)
    told = [[*lies, *honest][k] for k in fetched]
    assert max(told) <= 1.5 * max(honest) * (1 + 1e-6)
    assert len(fetched) >= len(honest)


def config(channel: Any, **more: Any) -> dict[str, Any]:
    usual = {
        "problem": {"name": "quadratic", "dimension": 60, "targets": "normal"},
        "network": {"name": "complete", "n": 8, "byzantine": [2, 5]},
        "attack": "sign-flipping",
        "rule": "ios",
        "rounds": 6,
        "evaluate_every": 3,
        "measure": ["bytes_sent"],
        "channel": channel,
    }
    return resolve({**usual, **more})


@pytest.mark.parametrize("rule", [name for name in rules.names() if rules.build(name).coefficients is not None])
def test_every_gram_rule_runs_and_sees_just_what_was_fetched(rule: str) -> None:
    """One round: the outcome is that of the rule on the messages that pass, the others silent."""
    written = config({"name": "sketch", "width": 16, "slack": 1.0}, rule=rule, rounds=1, f=2, attack="none")
    run = build({**written, "network": {**written["network"], "byzantine": []}})
    assert run.courier is not None
    run.step()
    sent = run.half
    sketches = run.courier.channel.sketches(sent)
    for me in range(8):
        distance = np.linalg.norm(sketches.astype(np.float64) - sketches[me], axis=1)
        others = [other for other in np.argsort(distance, kind="stable").tolist() if other != me][:5]
        seen = [sent[other] if other in others else None for other in range(8) if other != me]
        told = bm.aggregate(rule, sent[me], seen, f=2, round=bm.Round(number=0, total=1, seed=written["seed"]))
        assert np.allclose(run.models[me], told, atol=1e-5), me


def test_bytes_are_those_of_what_was_fetched() -> None:
    """Everybody fetches all; three of five, if liars' sketches cannot be read; five of seven. Liars fetch all."""
    whole, sketch = sent_bytes(60 * 4), sent_bytes(16 * 4)
    honest = {"network": {"name": "complete", "n": 8}, "attack": "none", "f": 2}
    for more, slack, answers, readers in (
        ({}, 1e30, 7, 7),
        ({"attack": "huge"}, 1.0, 5, 2 + 3),
        (honest, 1.0, 7, 5),
    ):
        run = build(config({"name": "sketch", "width": 16, "slack": slack}, **more)).run()
        assert run.metrics["bytes_sent"][-1] == 6 * (7 * sketch + answers * 40 + readers * whole)


def test_a_lie_with_an_honest_sketch_meets_the_rule() -> None:
    """Everybody knows the sketch: a lie in its null space passes, and IOS, which sees all of it, leaves it out."""
    channel = Channel({"name": "sketch", "width": 16}, 60, "float64")
    random = np.random.default_rng(0)
    models = random.normal(size=(7, 60))
    columns = channel.sketches(np.eye(60)).astype(np.float64)
    away = 1e3 * np.linalg.svd(columns.T)[2][-1]
    lie = models[0] + away
    near = channel.sketches(np.concatenate([models, lie[None]]))
    screen = Sketch(width=16)
    passes = screen.passing(near, np.arange(8)[None], np.ones((1, 8), bool), np.array([1]))[0]
    assert passes[7], "the sketch cannot tell"
    told = bm.aggregate("ios", models[0], [*models[1:], lie], f=1)
    assert np.linalg.norm(told - models.mean(axis=0)) < 10.0


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (["sketch", "int8"], "sketch is of messages as they arrive; write it after int8"),
        (["top-k", "sketch"], "not everybody gets every message, on which top-k and rand-k build"),
        ([{"name": "sketch", "width": 0}], "width must be a whole number of at least 1"),
        ([{"name": "sketch", "slack": 0.5}], "slack must be a number of at least 1"),
    ],
)
def test_sketches_that_make_no_sense(spec: Any, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        canonical_channel(spec)


def test_a_process_excludes_sketches() -> None:
    with pytest.raises(ConfigError, match="sketch is for neighbours that stay; leave out process"):
        build(config("sketch", process="link-loss")).run()
