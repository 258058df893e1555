"""Zeno's scores: what the loss decides, what the distance decides, and losses that are not finite."""

from __future__ import annotations

import math

import pytest
import torch

import byzmesh as bm


def test_the_distance_decides_among_equal_losses() -> None:
    received = [[4.0], [-2.0], [3.0]]
    assert bm.aggregate("zeno", [0.0], received, f=2, loss=lambda x: 1.0).tolist() == [-1.0]
    assert bm.aggregate("zeno", [0.0], received, f=2, rho=0.0, loss=lambda x: 1.0).tolist() == [2.0], "the first"


def test_losses_below_zero_are_ranked_too() -> None:
    received = [[1.0], [2.0], [3.0], [4.0]]
    out = bm.aggregate("zeno", [0.0], received, f=2, rho=0.0, loss=lambda x: -100.0 + abs(float(x[0]) - 3.6))
    assert out.tolist() == pytest.approx([7.0 / 3])


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_is_never_trusted(bad: float) -> None:
    def loss(x: torch.Tensor) -> float:
        return bad if x[0] > 5.0 else float(x[0] ** 2)

    own, received = torch.zeros(1), torch.tensor([[9.0], [1.0], [8.0]])
    assert bm.aggregate("zeno", own, received, f=1, loss=loss).tolist() == [0.5]
    assert bm.aggregate("zeno", own, received[[0, 2]], f=0, loss=loss).tolist() == [0.0], "nobody is left"
