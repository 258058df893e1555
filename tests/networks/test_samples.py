"""Weights by samples: every sample counts the same, a worker needs to know no more than its neighbours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.errors import ConfigError
from byzmesh.networks import Network

SIZES = [6.0, 14.0, 20.0, 40.0, 60.0, 80.0, 120.0]


def by_hand(network: Network, sizes: list[float]) -> np.ndarray:
    """W', by the definition of Metropolis and Hastings: propose evenly, accept with the ratio of the target."""
    n = network.n
    out = np.zeros((n, n))
    for one in range(n):
        for other in network.neighbours(one).tolist():
            propose, back = 1.0 / (1 + network.degree[one]), 1.0 / (1 + network.degree[other])
            out[one, other] = propose * min(1.0, sizes[other] * back / (sizes[one] * propose))
        out[one, one] = 1.0 - out[one].sum()
    return out


@pytest.mark.parametrize("name", ["complete", "ring", "star", "chain"])
def test_weights_are_those_of_the_definition_and_keep_the_average_of_samples(name: str) -> None:
    network = bm.network(name, n=7, samples=SIZES)
    assert network.mixing == pytest.approx(by_hand(network, SIZES), abs=1e-15)
    share = np.array(SIZES) / sum(SIZES)
    assert share @ network.mixing == pytest.approx(share, abs=1e-15)
    assert (network.own_weight >= 1.0 / (1 + network.degree) - 1e-15).all()
    assert bm.network(name, n=7, samples=[5] * 7).mixing == pytest.approx(bm.network(name, n=7).mixing)


def test_a_weight_depends_on_nothing_but_its_two_ends() -> None:
    network = bm.network("chain", n=7, samples=SIZES)
    other = bm.network("chain", n=7, samples=[*SIZES[:3], 1.0, 1.0, 1.0, 1.0])
    assert np.array_equal(network.mixing[:2, :3], other.mixing[:2, :3])


def test_who_lies_and_who_is_left(tmp_path: Path) -> None:
    network = bm.network("ring", n=7, samples=SIZES, byzantine=[6])
    assert network.target == pytest.approx(np.array(SIZES[:6]) / sum(SIZES[:6]))
    alone = network.honest_only()
    assert alone.samples is not None and alone.samples.tolist() == SIZES[:6]
    assert alone.target @ alone.mixing == pytest.approx(alone.target)
    assert bm.network("ring", n=4).target.tolist() == [0.25] * 4
    again = Network.from_file(network.save(tmp_path / "sites.json"))
    assert np.array_equal(again.mixing, network.mixing) and np.array_equal(again.target, network.target)
    lazy = network.with_weights("lazy")
    assert lazy.link_weight == pytest.approx(network.link_weight / 2)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"samples": [1, 2]}, "samples must be 7 numbers above 0, one per node"),
        ({"samples": [1, 2, 3, 4, 5, 6, 0]}, "samples must be numbers above 0"),
        ({"samples": "many"}, "samples must be 7 numbers"),
        ({"samples": SIZES, "weights": "equal"}, "weights equal do not weigh samples; use metropolis-hastings or lazy"),
    ],
)
def test_samples_that_make_no_sense(more: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        bm.network("ring", n=7, **more)


def test_links_that_go_one_way_have_no_such_weights() -> None:
    one_way = Network.from_edges([(0, 1), (1, 2), (2, 0)], directed=True)
    with pytest.raises(ConfigError, match="need links that go both ways"):
        one_way.with_samples([1, 2, 3])
