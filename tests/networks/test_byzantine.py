"""Who lies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byzmesh.errors import ConfigError
from byzmesh.networks import network


def test_a_number_is_placed_by_the_seed() -> None:
    first, again, other = (network("ring", n=30, byzantine=5, seed=seed).byzantine for seed in (1, 1, 2))
    assert first.tolist() == again.tolist() != other.tolist()
    assert len(first) == 5 and (np.diff(first) > 0).all()
    assert network("ring", n=30, byzantine=0).byzantine.size == 0


def test_every_node_is_as_likely_to_lie() -> None:
    chosen = np.concatenate([network("ring", n=5, byzantine=2, seed=seed).byzantine for seed in range(500)])
    share = np.bincount(chosen, minlength=5) / 500
    # 0.4 with a standard deviation of 0.022
    assert (np.abs(share - 0.4) < 0.1).all()


def test_lists_are_sorted_and_none_means_none() -> None:
    assert network("ring", n=5, byzantine=(4, 1)).byzantine.tolist() == [1, 4]
    assert network("ring", n=5, byzantine=np.array([3])).byzantine.tolist() == [3]
    assert network("paper/octopus", byzantine="none").byzantine.size == 0
    assert network("paper/octopus", byzantine=[]).byzantine.size == 0


@pytest.mark.parametrize(
    ("byzantine", "message"),
    [
        (5, "from 0 to 4 on 5 nodes, got 5"),
        (-1, "got -1"),
        ([5], "names node 5, but nodes are numbered 0 to 4"),
        ([1, 1], "names a node twice"),
        ([0, 1, 2, 3, 4], "at least one worker must be honest"),
        ("nobody", "'none', a list of node ids or a number of liars, got 'nobody'"),
        (1.5, "got 1.5"),
        (True, "got True"),
    ],
)
def test_placements_are_checked(byzantine: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        network("ring", n=5, byzantine=byzantine)


def test_with_byzantine_checks_ids() -> None:
    with pytest.raises(ConfigError, match="node 5, but nodes are numbered 0 to 4"):
        network("ring", n=5).with_byzantine([5])
