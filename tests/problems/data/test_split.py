"""Partitions hold every sample once; batches are functions of (seed, row, round)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from byzmesh.config.schema import resolve
from byzmesh.errors import ConfigError
from byzmesh.problems import dataset, partitions
from byzmesh.problems.data.split import Split, draw_batches, split_samples
from tests.problems.linear.reference import bound

SPECS: list[Any] = ["iid", "one-class", {"name": "shards", "k": 3}, {"name": "dirichlet", "alpha": 0.1}, "quantity"]


@settings(max_examples=60, deadline=None)
@given(
    spec=st.sampled_from(SPECS),
    workers=st.integers(1, 25),
    classes=st.integers(1, 10),
    extra=st.integers(0, 100),
    seed=st.integers(0, 1000),
)
def test_a_partition_holds_every_sample_once(spec: Any, workers: int, classes: int, extra: int, seed: int) -> None:
    count = 3 * workers * classes + extra
    labels = np.random.default_rng(seed).integers(0, classes, count)
    shares = partitions.build(spec)(labels, workers, np.random.default_rng(seed))
    assert len(shares) == workers
    np.testing.assert_array_equal(np.sort(np.concatenate(shares)), np.arange(count))
    again = partitions.build(spec)(labels, workers, np.random.default_rng(seed))
    assert all(np.array_equal(one, two) for one, two in zip(shares, again))
    if spec in ("iid", "quantity") or spec == SPECS[3]:
        assert min(map(len, shares)) >= 1


@pytest.mark.parametrize("workers", [1, 3, 4, 10, 11, 20, 23])
def test_one_class_gives_consecutive_groups(workers: int) -> None:
    labels = np.repeat(np.arange(10), 50)[np.random.default_rng(0).permutation(500)]
    shares = partitions.build("one-class")(labels, workers, np.random.default_rng(0))
    held = [np.unique(labels[share]) for share in shares]
    if workers >= 10:
        assert all(len(classes) == 1 for classes in held)
        sequence = [int(classes[0]) for classes in held]
        assert sequence == sorted(sequence)
        sharers = np.bincount(sequence, minlength=10)
        assert sharers.max() - sharers.min() <= 1
        for share in shares:
            assert abs(len(share) - 50 / sharers[labels[share[0]]]) < 1
    else:
        assert np.array_equal(np.concatenate(held), np.arange(10))
        assert max(map(len, held)) - min(map(len, held)) <= 1
    for share, classes in zip(shares, held):
        for label in classes:
            assert (np.diff(share[labels[share] == label]) > 0).all()


def test_paper_split_of_mnist() -> None:
    task = bound("softmax", {"partition": "one-class"}, workers=20)
    held = task.describe()
    assert [np.flatnonzero(row).tolist() for row in held] == [[n // 2] for n in range(20)]
    even = bound("softmax", {}, workers=10).describe()
    assert (even.sum(axis=1) == 6000).all()
    assert (even > 450).all()


def test_stratified_spreads_every_class_evenly() -> None:
    """The paper's text: all images in each class are evenly distributed across all workers."""
    labels = np.random.default_rng(1).permutation(np.repeat(np.arange(7), [5, 9, 40, 41, 42, 100, 3]))
    shares = partitions.build("stratified")(labels, 10, np.random.default_rng(2))
    counts = np.array([np.bincount(labels[share], minlength=7) for share in shares])
    assert (np.ptp(counts, axis=0) <= 1).all()
    assert np.ptp(counts.sum(axis=1)) <= 1
    assert sorted(np.concatenate(shares).tolist()) == list(range(len(labels)))
    at_random = partitions.build("iid")(labels, 10, np.random.default_rng(2))
    assert np.ptp([np.bincount(labels[share], minlength=7) for share in at_random], axis=0).max() > 1


def test_stratified_data_take_the_published_options_of_iid_data() -> None:
    config = {"network": "paper/two-castle", "rule": "cc", "profile": "paper"}
    problem = {"name": "softmax", "partition": "stratified"}
    assert resolve({**config, "problem": problem})["rule"]["tau"] == 0.1
    assert resolve(config)["problem"]["partition"] == {"name": "iid"}


def test_shards_and_dirichlet_concentrate_classes() -> None:
    labels = dataset("mnist").train_y
    generator = np.random.default_rng(1)
    for share in partitions.build({"name": "shards", "k": 2})(labels, 50, generator):
        assert len(np.unique(labels[share])) <= 4
        assert len(share) == 1200
    counts = {}
    for alpha in (0.05, 100.0):
        shares = partitions.build({"name": "dirichlet", "alpha": alpha})(labels, 10, generator)
        counts[alpha] = np.mean([np.max(np.bincount(labels[s], minlength=10)) / len(s) for s in shares])
    assert counts[100.0] < 0.2 < 0.5 < counts[0.05]
    sizes = [len(s) for s in partitions.build({"name": "quantity", "alpha": 0.3})(labels, 10, generator)]
    assert max(sizes) > 4 * min(sizes)


def test_nobody_is_left_without_samples() -> None:
    labels = np.zeros(30, np.int64)
    for name in ("dirichlet", "quantity"):
        shares = partitions.build({"name": name, "alpha": 0.001})(labels, 20, np.random.default_rng(0))
        assert min(map(len, shares)) == 1
        np.testing.assert_array_equal(np.sort(np.concatenate(shares)), np.arange(30))
    with pytest.raises(ConfigError, match="leaves worker 1 without samples"):
        split_samples("one-class", np.array([0, 1, 1, 1]), np.arange(4), mirror=1, workers=4, liars=0, seed=0)


def test_partition_mistakes_are_named() -> None:
    for spec, words in (
        ({"name": "shards", "k": 0}, "partition shards: k must be a whole number of at least 1, got 0"),
        ({"name": "dirichlet", "alpha": 0}, "partition dirichlet: alpha must be a positive number, got 0"),
        ({"name": "quantity", "alpha": "x"}, "partition quantity: alpha must be a number, got 'x'"),
        (7, "partition must be a name or a mapping with .name. and options, got int 7"),
    ):
        with pytest.raises(ConfigError, match=words):
            partitions.build(spec)
    with pytest.raises(ConfigError, match="needs class labels"):
        partitions.build("one-class")(np.linspace(0, 1, 9), 3, np.random.default_rng(0))
    assert partitions.names() == ["dirichlet", "drawn", "iid", "one-class", "quantity", "shards", "sizes", "stratified"]


def test_honest_shares_do_not_depend_on_liars_and_liars_flip() -> None:
    for partition in SPECS:
        alone = bound("softmax", {"partition": partition}, workers=6, seed=2)
        watched = bound("softmax", {"partition": partition}, workers=6, seed=2, liars=3)
        assert watched.rows == 9
        for row in range(6):
            np.testing.assert_array_equal(alone.split.share(row), watched.split.share(row))
        rows = np.arange(9)
        picks, labels = watched.batches(4, rows)
        truth = dataset("mnist").train_y.astype(int)[picks]
        np.testing.assert_array_equal(labels[:6], truth[:6])
        np.testing.assert_array_equal(labels[6:], 9 - truth[6:])
        np.testing.assert_array_equal(picks[:6], alone.batches(4, rows[:6])[0])
    many = bound("softmax", {}, workers=2, liars=5)
    assert many.rows == 7


@settings(max_examples=20, deadline=None)
@given(workers=st.integers(1, 12), round=st.integers(0, 10**6), batching=st.sampled_from(["uniform", "consecutive"]))
def test_a_batch_depends_on_its_row_alone(workers: int, round: int, batching: str) -> None:
    """The same data give the same batch, however many rows the network or the call has."""
    order = np.arange(1200, dtype=np.int32)[::-1].copy()
    target = np.arange(1200) % 7
    full = Split(order=order, start=np.arange(13) * 100, honest=12, mirror=6, key=np.uint64(99))
    part = Split(
        order=order[: 100 * workers], start=np.arange(workers + 1) * 100, honest=workers, mirror=6, key=np.uint64(99)
    )
    picks, labels = draw_batches(full, target, np.arange(12), round, 32, batching)
    fewer, _ = draw_batches(part, target, np.arange(workers), round, 32, batching)
    np.testing.assert_array_equal(picks[:workers], fewer)
    np.testing.assert_array_equal(labels, target[picks])
    own = draw_batches(full, target, np.array([workers - 1]), round, 32, batching)[0]
    np.testing.assert_array_equal(own[0], picks[workers - 1])


def test_uniform_batches_are_uniform_over_the_share() -> None:
    split = Split(
        order=np.arange(100, 150, dtype=np.int32), start=np.array([0, 20, 50]), honest=2, mirror=1, key=np.uint64(5)
    )
    target = np.zeros(150, np.int16)
    draws = np.stack([draw_batches(split, target, np.arange(2), k, 32, "uniform")[0] for k in range(400)])
    for row, (low, high) in enumerate(((100, 120), (120, 150))):
        counts = np.bincount(draws[:, row].ravel() - low, minlength=high - low)
        assert len(counts) == high - low
        assert stats.chisquare(counts).pvalue > 1e-4
    assert not np.array_equal(draws[0], draws[1])


def test_consecutive_batches_wrap_within_the_share() -> None:
    order = np.random.default_rng(0).permutation(50).astype(np.int32)
    split = Split(order=order, start=np.array([0, 20, 50]), honest=2, mirror=1, key=np.uint64(5))
    place = np.argsort(order)
    starts = set()
    for k in range(200):
        picks, _ = draw_batches(split, np.zeros(50, np.int16), np.arange(2), k, 32, "consecutive")
        for row, (low, size) in enumerate(((0, 20), (20, 30))):
            where = place[picks[row]] - low
            np.testing.assert_array_equal(where, (where[0] + np.arange(32)) % size)
            starts.add((row, int(where[0])))
    assert len(starts) == 50


def test_drawn_shares_serve_more_workers_than_samples() -> None:
    labels = np.random.default_rng(0).integers(0, 4, 30)
    given: dict[str, Any] = {"mirror": 3, "liars": 0, "seed": 1}
    split = split_samples({"name": "drawn", "size": 5}, labels, np.arange(100, 130), workers=200, **given)
    assert np.diff(split.start).tolist() == [5] * 200
    assert split.order.min() >= 100 and split.order.max() < 130 and len(np.unique(split.order)) == 30
    with pytest.raises(
        ConfigError, match="30 samples cannot be shared among 200 workers; use fewer, or partition drawn"
    ):
        split_samples("iid", labels, np.arange(30), workers=200, **given)
