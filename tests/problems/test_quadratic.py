"""Quadratics, whose answers are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzmesh.errors import ConfigError
from byzmesh.problems import problem
from byzmesh.problems.base import Bounded


def test_two_castle_example_starts_at_rest() -> None:
    task = problem("quadratic", targets="halves", curvature=2.0, init="targets").bind(workers=6, dtype="float64")
    models = task.initial()
    assert models.ravel().tolist() == [-1, -1, -1, 1, 1, 1]
    assert not task.gradients(models, 0).any()
    np.testing.assert_allclose(task.evaluate(np.array([[0.0], [1.0]]))["loss"], [1.0, 2.0])
    np.testing.assert_allclose(task.losses(np.array([[[0.0], [1.0]]]), 0, rows=np.array([0])), [[1.0, 4.0]])
    np.testing.assert_allclose(task.full_gradient(np.array([0.5])), [1.0])


def test_given_and_drawn_centres() -> None:
    centres = [[1.0, 2.0], [3.0, 5.0], [0.0, 0.0]]
    task = problem("quadratic", targets=centres).bind(workers=3, liars=4, dtype="float64")
    assert (task.rows, task.dimension) == (7, 2)
    gradients = task.gradients(np.zeros((7, 2)), 0)
    np.testing.assert_array_equal(gradients[:3], -np.array(centres))
    np.testing.assert_array_equal(gradients[3:6], np.array(centres))
    np.testing.assert_array_equal(gradients[6], centres[0])
    drawn = problem("quadratic", targets="normal", dimension=400).bind(workers=4, seed=1)
    more = problem("quadratic", targets="normal", dimension=400).bind(workers=6, seed=1)
    centres4, centres6 = -drawn.gradients(drawn.initial(), 0), -more.gradients(more.initial(), 0)
    np.testing.assert_array_equal(centres4, centres6[:4])
    assert centres4.std() == pytest.approx(1.0, rel=0.1)
    out = np.empty((4, 400), np.float32)
    assert drawn.gradients(drawn.initial("common"), 0, out) is out


def test_describe_and_draw(tmp_path: Path) -> None:
    task = problem("quadratic").bind(workers=4)
    assert task.describe().tolist() == [[1]] * 4
    task.draw(tmp_path / "held.png")
    assert (tmp_path / "held.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"targets": "thirds"}, "targets must be halves or normal"),
        ({"targets": [[1.0], [2.0, 3.0]]}, "one list of numbers per worker"),
        ({"targets": [1.0, 2.0]}, "one list of finite numbers per worker"),
        ({"targets": [[float("nan")]]}, "one list of finite numbers per worker"),
        ({"curvature": 0}, "curvature must be a positive number"),
        ({"dimension": 1.5}, "dimension must be a whole number of at least 1"),
        ({"init": "ones"}, "init must be zero, common, normal or targets"),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        problem("quadratic", **options)


def test_number_of_centres_must_match() -> None:
    with pytest.raises(ConfigError, match="targets has 2 rows for 3 workers"):
        problem("quadratic", targets=[[1.0], [2.0]]).bind(workers=3)


def test_constants_are_exact() -> None:
    """delta_in, delta_out, the losses and their minimum, by hand: centres 0, 3 and 6, curvature 2."""
    task = problem("quadratic", targets=[[0.0], [3.0], [6.0]], curvature=2.0).bind(workers=3, dtype="float64")
    assert isinstance(task, Bounded)
    assert task.variations() == (0.0, 6.0)
    np.testing.assert_allclose(task.local_losses(np.array([3.0])), [9.0, 0.0, 9.0])
    assert task.least_loss() == pytest.approx(6.0)
