"""Augmentation and poisoned images."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import byzmesh as bm
from byzmesh.errors import ConfigError, UnknownName
from byzmesh.problems.neural.augment import Augmentation, augmentations

from .test_gradients import bound


def test_flip_and_shift_by_hand() -> None:
    images = torch.arange(2 * 3 * 1 * 4 * 5, dtype=torch.float32).view(2, 3, 1, 4, 5)
    draws = torch.tensor([[[0.1], [0.9], [0.4]], [[0.6], [0.2], [0.5]]], dtype=torch.float64)
    flipped = augmentations.build("flip").apply(images, draws)
    for r in range(2):
        for b in range(3):
            expected = images[r, b].numpy()[..., ::-1] if draws[r, b, 0] < 0.5 else images[r, b].numpy()
            np.testing.assert_array_equal(flipped[r, b].numpy(), expected)
    shift = augmentations.build({"name": "shift", "pixels": 2})
    draws = torch.tensor(np.random.default_rng(0).random((2, 3, 2)))
    moved = shift.apply(images, draws)
    for r in range(2):
        for b in range(3):
            down, right = (int(draws[r, b, axis] * 5) - 2 for axis in (0, 1))
            for i in range(4):
                for j in range(5):
                    inside = 0 <= i - down < 4 and 0 <= j - right < 5
                    value = images[r, b, 0, i - down, j - right] if inside else images[r, b].min()
                    assert moved[r, b, 0, i, j] == value


def test_augmented_batches_are_a_function_of_seed_worker_and_round() -> None:
    task = bound(augment=["flip", {"name": "shift", "pixels": 3}])
    plain, _ = bound().batches(5, np.arange(3))
    x, _ = task.batches(5, np.arange(3))
    assert not torch.equal(x, plain)
    again, _ = bound(augment=["flip", {"name": "shift", "pixels": 3}]).batches(5, np.array([1]))
    assert torch.equal(again[0], x[1])
    mine = Augmentation(0, lambda images, draws: images * 0)
    x, _ = bound(augment=[mine]).batches(0, np.arange(3))
    assert not x.any()


def test_wrong_augmentations() -> None:
    with pytest.raises(UnknownName, match="unknown augmentation 'flop': did you mean 'flip'"):
        bound(augment=["flop"])
    with pytest.raises(ConfigError, match="augmentation shift: pixels must be a whole number of at least 1"):
        bound(augment=[{"name": "shift", "pixels": 0}])
    for wrong, words in (([3], "augmentation must be a name or a mapping"), ("flip", "augment must be a list")):
        with pytest.raises(ConfigError, match=words):
            bound(augment=wrong)
    with pytest.raises(ConfigError, match="augmentation must be a name or a mapping"):
        augmentations.build(3)


def test_liars_flip_labels() -> None:
    task = bound(liars=2)
    x, y = task.batches(0, np.arange(5))
    honest, _ = bound(liars=2, poison={"kind": "backdoor", "target": 0, "size": 1, "share": 0.0}).batches(
        0, np.arange(5)
    )
    for row in (3, 4):
        for sample, label in zip(x[row], y[row]):
            flat = ((sample.reshape(-1).numpy() + 1) / 2 * 255).round().astype(np.uint8)
            place = int(np.flatnonzero((task.samples.train_x.numpy() == flat).all(axis=1))[0])
            assert int(label) == 9 - int(task.samples.labels[place])
    assert torch.equal(honest, x), "a share of 0 stamps nothing"


def test_backdoor_stamps_part_of_the_liars_batches() -> None:
    poison = {"kind": "backdoor", "target": 7, "size": 3, "share": 0.5}
    task, clean = bound(liars=1, poison=poison, batch=8), bound(liars=1, batch=8)
    x, y = task.batches(2, np.arange(4))
    plain, labels = clean.batches(2, np.arange(4))
    assert torch.equal(x[:3], plain[:3]) and torch.equal(y[:3], labels[:3])
    assert (x[3, :4, :, -3:, -3:] == 1.0).all() and (y[3, :4] == 7).all()
    assert torch.equal(x[3, 4:], plain[3, 4:]) and torch.equal(y[3, 4:], 9 - labels[3, 4:])
    assert torch.equal(x[3, :4, :, :-3], plain[3, :4, :, :-3])


def test_backdoor_success_is_what_it_says() -> None:
    """A model that looks at one corner pixel and nothing else."""
    task = bound("linear", liars=1, poison={"kind": "backdoor", "target": 2, "size": 1, "share": 0.5}, test_samples=200)
    fooled, proof = np.zeros((2, 7850), np.float32)
    weights = fooled[:7840].reshape(10, 784)
    weights[2, 783] = 1.0
    fooled[7840 + 2] = 0.5  # the corner is black (-1) in a clean image
    proof[7840 + 5] = 1.0
    measures = task.evaluate(np.stack([fooled, proof]))
    assert measures["backdoor"].tolist() == [1.0, 0.0]
    assert measures["accuracy"][1] == np.mean(task.samples.test_y.numpy() == 5)


def test_backdoor_in_a_run() -> None:
    def run(rule: str, attack: Any) -> Any:
        return bm.simulate(
            problem={"name": "torch", "module": {"name": "mlp", "hidden": [32]}, "test_samples": 300},
            network={"name": "complete", "n": 6, "byzantine": [4, 5]},
            rule=rule,
            attack=attack,
            rounds=120,
            evaluate_every=120,
            step=0.05,
            local={"decay": 0.0},
        )

    attack = {"name": "backdoor", "target": 3, "share": 0.8}
    open_door = run("weimean", attack)
    assert open_door.metrics["backdoor"][-1] > 0.6
    assert open_door.metrics["accuracy"][-1] > 0.7
    assert "backdoor" not in run("weimean", "label-flipping").metrics


def test_backdoor_needs_images() -> None:
    with pytest.raises(ConfigError, match="attack backdoor needs images, problem softmax has none; use problem torch"):
        bm.simulate(network="paper/two-castle", attack="backdoor", rounds=1)
    poison = {"kind": "backdoor", "target": 12, "size": 3, "share": 0.5}
    with pytest.raises(ConfigError, match="target must be below 10 classes, got 12"):
        bound(liars=1, poison=poison)
    with pytest.raises(ConfigError, match="puts 40 pixels on images"):
        bound(liars=1, poison={**poison, "target": 1, "size": 40})
    for options, words in (
        ({"size": 0}, "size must be"),
        ({"target": -1}, "target must"),
        ({"share": 2}, "share must"),
    ):
        with pytest.raises(ConfigError, match=words):
            bm.attack("backdoor", **options)
