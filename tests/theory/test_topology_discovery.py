"""docs/topology-discovery.md: its proposition on random reports, and the numbers of its table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byzmesh.networks import Network, network
from byzmesh.theory.contraction import cut_weight
from byzmesh.theory.misreported_degrees import distrusting, misreported, peer_weights
from byzmesh.theory.mixing import mixing_rate, to_own

PAGE = Path(__file__).parents[2] / "docs" / "topology-discovery.md"
NETWORKS: dict[str, dict[str, Any]] = {
    "paper/two-castle": {},
    "paper/er-12": {},
    "paper/octopus": {},
    "paper/er-20-b4": {},
    "torus": {"rows": 4, "columns": 4, "byzantine": [5]},
    "erdos-renyi": {"n": 40, "p": 0.2, "byzantine": [0, 1], "seed": 1},
    "watts-strogatz": {"n": 40, "k": 6, "p": 0.2, "byzantine": [0, 1], "seed": 1},
    "barabasi-albert": {"n": 40, "m": 3, "byzantine": [30, 31], "seed": 1},
}


def lied_about(net: Network, reports: np.ndarray) -> Network:
    """The network as its honest workers weigh it when liar b tells worker n the degree reports[n, b]."""
    mixing = np.zeros((net.n, net.n))
    told = np.where(np.isin(np.arange(net.n), net.byzantine)[None, :], reports, net.degree[None, :])
    for worker in range(net.n):
        near = net.neighbours(worker)
        row = peer_weights(len(near), told[worker, near], largest=net.n - 1)
        mixing[worker, near], mixing[worker, worker] = row[1:], row[0]
    return net.with_weights(mixing)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(4, 14), p=st.floats(0.3, 1.0), liars=st.integers(1, 3))
def test_reports_change_nothing_but_what_a_liar_weighs(seed: int, n: int, p: float, liars: int) -> None:
    random = np.random.default_rng(seed)
    net = network("erdos-renyi", n=n, p=p, seed=seed % 1000, byzantine=min(liars, n - 2))
    reports = random.choice([np.nan, -1.0, 0.0, 1.0, 2.0, n / 2, 1e9, np.inf], size=(n, n))
    changed = lied_about(net, reports)
    honest = net.honest
    np.testing.assert_allclose(to_own(changed).toarray(), to_own(net).toarray(), rtol=0, atol=1e-15)
    assert (changed.mixing[honest, honest] >= 1.0 / (1.0 + net.degree[honest]) - 1e-12).all()
    h = cut_weight(changed, net.bounds("exact"))
    assert (h <= net.lying_neighbours / (1.0 + net.degree[honest]) + 1e-12).all()


def table() -> list[list[str]]:
    rows = [
        line.strip("|").split("|") for line in PAGE.read_text().splitlines() if re.match(r"\| (paper/|[a-z])", line)
    ]
    return [[cell.strip() for cell in row] for row in rows if row[0].strip() != "network"]


def measured(name: str) -> list[str]:
    """A row of the table."""
    net = network(name, **NETWORKS[name])
    f = net.bounds("exact")
    h = [float(cut_weight(changed, f).max()) for changed in (net, misreported(net, 0.0))]
    rates = [mixing_rate(to_own(changed)) for changed in (misreported(net, 0.0), distrusting(net))]
    loss = f"{1.0 - rates[1] / rates[0]:.0%}"
    degrees = f"{net.degree.min()} to {net.degree.max()}"
    return [degrees, *(f"{value:.3f}" for value in (*h, *rates)), loss]


@pytest.mark.parametrize("row", table(), ids=lambda row: row[0])
def test_the_table_is_what_the_code_gives(row: list[str]) -> None:
    assert row[1:] == measured(row[0].split(",")[0].split(" ")[0])


def test_the_table_is_complete() -> None:
    assert [row[0].split(",")[0].split(" ")[0] for row in table()] == list(NETWORKS)
