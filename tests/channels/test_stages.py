"""Every stage: sender then receiver within its stated error, no bias where none is claimed, nothing lost for ever."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byzmesh.channels import Channel, Undecodable, canonical_channel, stages
from byzmesh.channels.base import State
from byzmesh.channels.pairs import Pairs
from byzmesh.channels.rand_k import RandK
from byzmesh.errors import ConfigError

N, D = 4, 300
IDS = np.array([0, 3, 4, 9])
EXACT = ["clip", "gaussian-noise", "rand-k", "top-k"]


def vectors(dtype: str = "float32", seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).normal(size=(N, D)) * [[1.0], [1e-3], [40.0], [1e4]]).astype(dtype)


def through(channel: Channel, sent: np.ndarray, state: State | None = None, round: int = 0) -> tuple[np.ndarray, State]:
    """What arrives of the vectors, and the state after."""
    before = channel.start(np.zeros_like(sent)) if state is None else state
    payload = channel.send(sent, before, round, IDS)
    assert payload.shape == (N, channel.payload) and payload.dtype == np.uint8
    return channel.receive(payload, before, round, IDS)


def largest(values: np.ndarray, block: int) -> np.ndarray:
    """(N, D) largest absolute value of each coordinate's block, by a loop."""
    out = np.empty(values.shape)
    for start in range(0, D, block):
        out[:, start : start + block] = np.abs(values[:, start : start + block]).max(axis=1, keepdims=True)
    return out


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("spec", "worst"),
    [
        ("float16", lambda x: np.abs(x) / 2048 + 3e-8),
        ("bfloat16", lambda x: np.abs(x) / 256),
        ("int8", lambda x: largest(x, 256) / 127 * 1.0001),
        ({"name": "int8", "rounding": "nearest"}, lambda x: largest(x, 256) / 254 * 1.0001),
        ("int4", lambda x: largest(x, 64) / 7 * 1.0001),
        ({"name": "int4", "rounding": "nearest"}, lambda x: largest(x, 64) / 14 * 1.0001),
    ],
)
def test_rounding_is_within_its_stated_error(spec: Any, worst: Any, dtype: str) -> None:
    sent = vectors(dtype)
    arrived, _ = through(Channel(spec, D, dtype), sent)
    assert arrived.dtype == np.dtype(dtype)
    assert (np.abs(arrived - sent) <= worst(sent)).all()
    assert not np.array_equal(arrived, sent)


@pytest.mark.parametrize("spec", ["float16", "bfloat16", "int8", "int4"])
def test_any_finite_vector_arrives_finite(spec: str) -> None:
    most = float(np.finfo(np.float32).max)
    for value in (0.0, -0.0, 1e-45, 3.4e38, most, -most, 65519.0):
        arrived, _ = through(Channel(spec, D), np.full((N, D), value, np.float32))
        assert np.isfinite(arrived).all()
        assert (np.abs(arrived) <= abs(np.float32(value))).all() or spec != "float16"
    far, _ = through(Channel(spec, D, "float64"), np.full((N, D), -1e300))
    near, _ = through(Channel(spec, D, "float64"), np.full((N, D), -most))
    assert np.allclose(far, near, rtol=0.01), "the range of float32"


@pytest.mark.parametrize("name", ["int8", "int4"])
def test_stochastic_rounding_has_no_bias(name: str) -> None:
    """The mean over 4000 rounds is within five standard errors of the vector; to the nearest it is not."""
    rounds, sent = 4000, vectors("float64")
    channel, nearest = Channel(name, D, "float64"), Channel({"name": name, "rounding": "nearest"}, D, "float64")
    total = np.zeros_like(sent)
    for round in range(rounds):
        total += through(channel, sent, round=round)[0]
    unit = largest(sent, {"int8": 256, "int4": 64}[name]) / {"int8": 127, "int4": 7}[name]
    error = 5 * 0.5 * unit / np.sqrt(rounds)
    assert (np.abs(total / rounds - sent) <= error).all()
    assert not (np.abs(through(nearest, sent)[0] - sent) <= error).all()


def test_draws_depend_on_seed_place_sender_and_round() -> None:
    sent = np.repeat(vectors()[:1], N, axis=0)
    arrived, _ = through(Channel("int4", D), sent)
    assert len({row.tobytes() for row in arrived}) == N
    others = [through(Channel("int4", D), sent, round=1), through(Channel("int4", D, seed=1), sent)]
    others += [through(Channel(["gaussian-noise", "int4"], D), sent)]
    assert all(not np.array_equal(arrived, other) for other, _ in others)
    alone = Channel("int4", D).send(sent[2:3], (None,), 0, IDS[2:3])
    assert np.array_equal(alone[0], Channel("int4", D).send(sent, (None,), 0, IDS)[2])


@pytest.mark.parametrize(
    "spec", ["top-k", "rand-k", {"name": "rand-k", "shared": False}, ["top-k", "int8"], ["rand-k", "float16"]]
)
def test_error_feedback_sums_to_the_truth(spec: Any) -> None:
    """What arrives is what was known plus the chosen part of the difference, and a model that rests arrives whole."""
    sent, channel = vectors("float64"), Channel(spec, D, "float64")
    before = channel.start(np.zeros_like(sent))
    arrived, state = through(channel, sent, before)
    changed = (arrived != 0.0).sum(axis=1)
    assert (changed <= 30).all() and (changed >= 25).all()
    for round in range(1, 400):
        arrived, state = through(channel, sent, state, round)
    rounding = {"int8": np.abs(sent).max(axis=1) / 127, "float16": np.abs(sent).max(axis=1) / 2048}
    worst = next((rounding[name] for name in rounding if name in spec), np.zeros(N))
    assert (np.abs(arrived - sent).max(axis=1) <= worst * 1.01).all()


def test_top_k_sends_what_changed_most_and_whose_turn_it_is() -> None:
    sent, channel = vectors("float64"), Channel("top-k", D, "float64")
    arrived, state = through(channel, sent, round=7)
    turn = set(range(21, 24))
    for row in range(N):
        assert set(np.flatnonzero(arrived[row])) == set(np.argsort(-np.abs(sent[row]))[:27]) | turn
    moved = sent.copy()
    moved[:, 100] += 1e6
    again, _ = through(channel, moved, state, 8)
    assert np.array_equal(again[:, 100], moved[:, 100])


def test_a_receiver_that_missed_messages_of_top_k_is_right_again() -> None:
    channel, ids = Channel("top-k", D, "float64"), IDS
    sent = vectors("float64")
    sender = receiver = channel.start(np.zeros_like(sent))
    for round in range(200):
        payload = channel.send(sent, sender, round, ids)
        _, sender = channel.receive(payload, sender, round, ids)
        if round >= 100:  # the first hundred are lost
            arrived, receiver = channel.receive(payload, receiver, round, ids)
    assert np.array_equal(arrived, sent)


def test_rand_k_draws_every_coordinate_equally_often() -> None:
    sent, channel = np.ones((N, D), np.float32), Channel({"name": "rand-k", "fraction": 0.07, "shared": False}, D)
    seen = np.zeros((N, D))
    for round in range(2000):
        arrived, _ = through(channel, sent, round=round)
        assert (arrived.sum(axis=1) == 21).all()
        seen += arrived
    expected = 2000 * 21 / D
    assert (np.abs(seen - expected) < 6 * np.sqrt(expected)).all()
    assert len({row.tobytes() for row in arrived}) == N
    shared, _ = through(Channel(RandK(0.07), D), sent)
    assert len({row.tobytes() for row in shared}) == 1


def test_clip_bounds_the_way_from_the_last_message() -> None:
    sent, channel = vectors("float64"), Channel([{"name": "clip", "radius": 2.0}], D, "float64")
    first, state = through(channel, sent)
    length = np.linalg.norm(sent, axis=1)
    assert np.allclose(np.linalg.norm(first, axis=1), np.minimum(length, 2.0))
    assert np.allclose(first / np.linalg.norm(first, axis=1)[:, None], sent / length[:, None])
    second, state = through(channel, sent, state, 1)
    assert (np.linalg.norm(second - first, axis=1) <= 2.0 + 1e-9).all()
    assert np.allclose(np.linalg.norm(second, axis=1), np.minimum(length, 4.0))
    assert np.array_equal(second[1], sent[1]), "what is near is sent as it is"


def test_noise_has_its_size_and_comes_from_the_secret() -> None:
    sent = np.zeros((N, 20_000))
    spec = {"name": "gaussian-noise", "sigma": 0.3}
    noise, _ = through(Channel(spec, 20_000, "float64"), sent)
    assert np.abs(noise.std(axis=1) - 0.3).max() < 0.01 and np.abs(noise.mean(axis=1)).max() < 0.01
    assert np.abs(np.corrcoef(noise) - np.eye(N)).max() < 0.05
    other, _ = through(Channel(spec, 20_000, "float64", secret=5), sent)
    assert abs(np.corrcoef(noise[0], other[0])[0, 1]) < 0.05


def test_noise_after_clip_is_part_of_what_was_sent() -> None:
    """The next message is near the noisy one, not near what it would have been: otherwise noise would add up."""
    channel = Channel([{"name": "clip", "radius": 1.0}, {"name": "gaussian-noise", "sigma": 0.5}], D, "float64")
    first, state = through(channel, np.zeros((N, D)))
    second, _ = through(channel, np.zeros((N, D)), state, 1)
    noise = second - first * (1.0 - 1.0 / np.linalg.norm(first, axis=1))[:, None]
    assert np.abs(noise.std(axis=1) - 0.5).max() < 0.1


def pairs(seed: int = 0) -> Pairs:
    """Everybody shares a number with everybody."""
    draw = np.random.default_rng(seed)
    number = {(a, b): int(draw.integers(1 << 62)) for a in IDS.tolist() for b in IDS.tolist() if a < b}
    return Pairs({a: {b: number[min(a, b), max(a, b)] for b in IDS.tolist() if b != a} for a in IDS.tolist()})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pair_noise_cancels_in_the_mean(dtype: str) -> None:
    sent = vectors(dtype)
    channel = Channel({"name": "pair-noise", "sigma": 2.0}, D, dtype, pairs=pairs())
    payload, kept = channel.send_and_keep(sent, (None,), 5, IDS)
    arrived, _ = channel.receive(payload, (None,), 5, IDS)
    noise = arrived.astype(np.float64) - sent
    assert np.array_equal(kept, arrived), "the sender goes on from what it sent"
    rounding = 4 * np.finfo(dtype).eps * np.abs(arrived).max()
    assert np.abs(noise.sum(axis=0)).max() <= rounding
    assert np.abs(noise.std(axis=1) - 2.0 * np.sqrt(3.0)).max() < 0.5
    alone = Channel({"name": "pair-noise", "sigma": 2.0}, D, dtype, pairs=Pairs({3: pairs().shared[3]}))
    assert np.array_equal(alone.send(sent[1:2], (None,), 5, IDS[1:2])[0], payload[1]), "a peer draws the same"
    for other in (Channel(channel.spec, D, dtype, pairs=pairs(1)), Channel(channel.spec, D, dtype, 1, pairs=pairs())):
        assert not np.array_equal(other.send(sent, (None,), 5, IDS), payload)
    assert not np.array_equal(channel.send(sent, (None,), 6, IDS), payload)


def test_what_a_pair_shares_hides_a_sender_from_all_others() -> None:
    """Without the number of one pair, the noise of both ends is as large as that pair's."""
    channel = Channel({"name": "pair-noise", "sigma": 1.0}, D, "float64", pairs=Pairs({0: {3: 8}, 3: {0: 8}}))
    noise = channel.send_and_keep(np.zeros((N, D)), (None,), 0, IDS)[1]
    assert abs(noise[0].std() - 1.0) < 0.1 and np.array_equal(noise[0], -noise[1])
    assert not noise[2:].any()


def test_noise_stays_with_its_sender_unless_told_otherwise() -> None:
    sent = vectors("float64")
    for spec, stays in (("gaussian-noise", True), ({"name": "gaussian-noise", "own": False}, False)):
        channel = Channel([spec, "int8"], D, "float64")
        _, kept = channel.send_and_keep(sent, (None, None), 0, IDS)
        noisy = Channel(["gaussian-noise"], D, "float64").send(sent, (None,), 0, IDS).view(np.float64)
        assert channel.stays == stays
        assert np.array_equal(kept, noisy if stays else sent), "before it is rounded"


def test_pair_noise_needs_somebody_to_share_it_with() -> None:
    with pytest.raises(ConfigError, match="share nothing with their neighbours"):
        Channel("pair-noise", D).send(vectors(), (None,), 0, IDS)


@pytest.mark.parametrize("name", stages.names())
def test_a_liar_leaves_out_what_only_senders_do(name: str) -> None:
    told = stages.build(name).lying()
    assert (told is None) == (name in ("clip", "gaussian-noise", "pair-noise"))
    assert told is None or stages.build(name).sizes(77) == told.sizes(77)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (["int8", "float16"], "int8 must be the last stage; write float16 before it"),
        (["rand-k", "gaussian-noise"], "gaussian-noise makes its sender's own model; write it before rand-k"),
        (["rand-k", "top-k"], "top-k needs whole vectors; write it before rand-k"),
        ([{"name": "clip", "radius": 0}], "radius must be a positive number"),
        ([{"name": "top-k", "fraction": 1.5}], "fraction must be a number in"),
        ([{"name": "rand-k", "shared": "yes"}], "shared must be true or false"),
        ([{"name": "int8", "rounding": "up"}], "rounding must be stochastic or nearest"),
        ([{"name": "int8", "bits": 3}], "stage int8 has no option 'bits'"),
        ("topk", None),
    ],
)
def test_channels_that_make_no_sense(spec: Any, why: str | None) -> None:
    if why is None:
        assert canonical_channel(spec) == [{"name": "top-k", "fraction": 0.1}]
        return
    with pytest.raises(ConfigError, match=why):
        canonical_channel(spec)


@pytest.mark.parametrize("places", [[5, 5], [7, 3], [2, 300], [2, 65535]])
def test_indices_that_no_sender_makes(places: list[int]) -> None:
    channel = Channel({"name": "top-k", "fraction": 3 / D}, D)
    state = channel.start(np.zeros((1, D), np.float32))
    payload = np.zeros((1, channel.payload), np.uint8)
    payload[:, :4] = np.array(places, np.uint16).view(np.uint8)
    with pytest.raises(Undecodable, match="indices of top-k must ascend and be below 300"):
        channel.receive(payload, state, 0, IDS[:1])


def test_halves_are_rounded_as_numpy_and_torch_round() -> None:
    """Every float16 and every bfloat16, the middle between it and the next, and the float32 beside that middle."""
    torch = pytest.importorskip("torch")
    every = np.arange(1 << 16, dtype=np.uint16)
    with np.errstate(all="ignore"):
        narrow, wide = every.view(np.float16).astype(np.float32), (every.astype(np.uint32) << 16).view(np.float32)
        middles = [(x[:-1] + x[1:]) / np.float32(2) for x in (narrow, wide)]
    beside = [np.nextafter(x, np.float32(way)) for x in middles for way in (-np.inf, np.inf)]
    numbers = np.concatenate([narrow, wide, *middles, *beside])
    for name, cut in (("float16", 65504.0), ("bfloat16", float(torch.finfo(torch.bfloat16).max))):
        read, _ = through(Channel(name, numbers.size), np.tile(numbers, (N, 1)))
        expected = torch.from_numpy(np.clip(numbers, -cut, cut)).to(getattr(torch, name)).to(torch.float32).numpy()
        np.testing.assert_array_equal(read[0], expected)
