"""Certificates for networks that change: expected contraction and joint connectivity against enumeration."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.networks import Links, Network
from byzmesh.theory.processes import (
    _link_loss_square,
    expected_contraction,
    honest_mixing,
    joint_connectivity,
    statements,
)
from tests.cli.commands import run

SMALL = Network.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)], byzantine=[1])


@pytest.mark.parametrize("weights", ["equal", "metropolis-hastings"])
@pytest.mark.parametrize("keep", [0.3, 0.8])
def test_the_exact_expectation_is_that_of_all_losses(weights: str, keep: float) -> None:
    """All 2^8 patterns of lost messages, each with its probability."""
    net = SMALL.with_weights(weights)
    want = np.zeros((3, 3))
    for came in product([False, True], repeat=len(net.links.sender)):
        kept = np.array(came)
        links = Links.of_pairs(net.links.receiver[kept], net.links.sender[kept], 4)
        mixing = honest_mixing(net, links)
        np.testing.assert_allclose(mixing.sum(axis=1), 1.0)
        want += keep ** kept.sum() * (1 - keep) ** (~kept).sum() * mixing.T @ mixing
    np.testing.assert_allclose(_link_loss_square(net, keep), want, atol=1e-12)


def test_the_interval_of_drawn_rounds_contains_the_exact_number() -> None:
    """Link loss written as two processes is drawn; the exact number is that of their product."""
    net = bm.network("ring", n=8, weights="equal")
    exact = expected_contraction(net, bm.process("link-loss", p=0.36))
    assert exact.low == exact.high
    twice = [{"name": "link-loss", "p": 0.2}, {"name": "link-loss", "p": 0.2}]
    inside = 0
    for seed in range(20):
        drawn = expected_contraction(net, bm.process(twice), rounds=400, seed=seed)
        assert drawn.low <= drawn.value <= drawn.high and abs(drawn.value - exact.value) < 0.05
        inside += drawn.low <= exact.value <= drawn.high
    assert inside >= 15


def test_the_interval_holds_where_lambda_belongs_to_all_vectors() -> None:
    """On a complete graph every vector shrinks alike; the largest eigenvalue of a mean of rounds is then too large."""
    net = bm.network("complete", n=8, weights="equal")
    exact = expected_contraction(net, bm.process("link-loss", p=0.6)).value
    twice = bm.process([{"name": "link-loss", "p": 0.2}, {"name": "link-loss", "p": 0.5}])
    drawn = [expected_contraction(net, twice, rounds=200, seed=seed) for seed in range(20)]
    assert sum(one.low <= exact <= one.high for one in drawn) >= 18


def test_disagreement_shrinks_by_the_factor() -> None:
    """Plain averaging without gradients: mean squared disagreement after a round over that before, at most lambda."""
    net = bm.network("erdos-renyi", n=9, p=0.4, seed=1, weights="equal")
    chosen = bm.process("link-loss", p=0.5)
    factor = expected_contraction(net, chosen).value
    meetings = bm.networks.processes.Meetings(chosen, net.links)
    start = np.random.default_rng(0).normal(size=(9, 200))
    start -= start.mean(axis=0)
    ratios = []
    for k in range(300):
        after = honest_mixing(net, meetings.at(k).links) @ start
        ratios.append(((after - after.mean(axis=0)) ** 2).sum() / (start**2).sum())
    assert np.mean(ratios) <= factor < 1.0


def test_joint_connectivity_of_a_schedule_is_known() -> None:
    halves: dict[str, Any] = {"name": "schedule", "edges": [[[0, 1], [2, 3]], [[1, 2]], []]}
    net = bm.network("complete", n=4)
    assert joint_connectivity(net, bm.process(halves), 1).connected == 0
    assert joint_connectivity(net, bm.process(halves), 3).connected == 100
    assert joint_connectivity(net.with_byzantine([1]), bm.process(halves), 3).connected == 0, "only through a liar"
    one_way = {**halves, "directed": True}
    assert joint_connectivity(net, bm.process(one_way), 3).connected == 0, "nobody hears 3"


def test_windows_of_a_process_that_remembers_are_drawn_independently() -> None:
    """Workers that stay on or off for ages: one chain says the same of all windows, the interval needs others."""
    chosen = bm.process("churn", up=1e9, down=1e9)
    joint = joint_connectivity(bm.network("complete", n=3), chosen, window=2, windows=200)
    assert joint.low <= 1 / 8 <= joint.high and 0 < joint.connected < 200


def test_lambda_proves_nothing_where_messages_are_late() -> None:
    net = bm.network("complete", n=6, byzantine=1)
    for process, proves in (("link-loss", True), (["link-loss", "late"], False), ("late", False)):
        told = statements(net, bm.process(process), rounds=10)[1]
        assert ("shrinks the expected" in told) == proves, told


def test_certify_tells_about_the_process() -> None:
    told = run("certify", "examples/lossy.yaml", "--search", "0")
    assert "Under link-loss, churn, late:" in told.output
    assert "no honest inbox of 2000 rounds holds more than 2 liars" in told.output
    assert "windows of 10 rounds" in told.output
