"""Directed graphs: read, written, drawn, trained on, certified; push-sum against its definition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest

import byzmesh as bm
from byzmesh.config.schema import resolve
from byzmesh.errors import ConfigError
from byzmesh.networks import Network

EDGES = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]


def one_way(**options: Any) -> Network:
    return Network.from_edges(EDGES, directed=True, **options)


def test_an_edge_goes_from_sender_to_receiver() -> None:
    net = one_way()
    assert net.directed and [net.neighbours(node).tolist() for node in range(4)] == [[3], [0], [0, 1], [2]]
    assert net.degree.tolist() == [1, 1, 2, 1]
    graph = networkx.DiGraph(EDGES)
    assert Network.from_networkx(graph).links.sender.tolist() == net.links.sender.tolist()
    hears = networkx.to_numpy_array(graph, nodelist=range(4)).T
    assert Network.from_adjacency(hears, directed=True).links.sender.tolist() == net.links.sender.tolist()
    assert not bm.network("ring", n=5).directed


def test_without_the_word_a_directed_graph_is_refused() -> None:
    with pytest.raises(ConfigError, match="say directed"):
        Network.from_adjacency([[0, 1], [0, 0]])
    with pytest.raises(ConfigError, match="say directed"):
        Network.from_edges([(0, 1), (1, 0), (1, 2)])


@pytest.mark.parametrize("suffix", ["json", "graphml", "edges", "csv"])
def test_files_keep_the_direction(tmp_path: Path, suffix: str) -> None:
    path = one_way(byzantine=[3]).save(tmp_path / f"net.{suffix}")
    said = {} if suffix in ("json", "graphml") else {"directed": True}
    read = Network.from_file(path, **said)
    assert read.links.sender.tolist() == one_way().links.sender.tolist() and read.directed
    spec = {"file": str(path), **said, "byzantine": [3]}
    canonical = resolve({"network": spec, "attack": "zero"})["network"]
    assert Network.from_spec(canonical).links.sender.tolist() == one_way().links.sender.tolist()


def test_connected_means_strongly() -> None:
    assert one_way().honest_connected
    assert not Network.from_edges(EDGES[:3], directed=True).honest_connected, "nobody hears 3"
    assert not one_way(byzantine=[2]).honest_connected


@pytest.mark.parametrize("name", ["directed-ring", "exponential", "k-in"])
def test_topologies_are_strongly_connected(name: str) -> None:
    net = bm.network({"name": name, "n": 9, **({"k": 3} if name == "k-in" else {})})
    assert net.directed and net.honest_connected
    if name == "k-in":
        assert (net.degree == 3).all()
    if name == "exponential":
        assert net.neighbours(0).tolist() == [1, 5, 7, 8]


@pytest.mark.parametrize("weights", ["metropolis-hastings", "equal", "max-degree", "lazy"])
def test_weights_are_row_stochastic(weights: str) -> None:
    mixing = bm.network("k-in", n=8, k=3, weights=weights).mixing
    np.testing.assert_allclose(mixing.sum(axis=1), 1.0)
    assert (mixing >= 0).all()


def test_undirected_weights_and_placements_are_refused() -> None:
    with pytest.raises(ConfigError, match="best-constant are for links that go both ways"):
        one_way(weights="best-constant")
    with pytest.raises(ConfigError, match="name the liars of a directed network"):
        bm.certify(one_way(), f=1)


def test_a_certificate_of_named_liars_knows_that_columns_differ() -> None:
    """Row-stochastic mixing on a directed graph leads to a weighted mean: chi^2 > 0, so no doubly stochastic W."""
    net = bm.network("k-in", n=8, k=4, seed=1, byzantine=[7], weights="equal")
    told = bm.certify(net, "ios", search=0)
    assert told.chi2 is not None and told.chi2 > 1e-3 and told.rca.status != "proved"
    regular = bm.certify(
        bm.network("exponential", n=8, weights="equal", byzantine="none").with_byzantine([7]), search=0
    )
    assert regular.chi2 is not None


def test_a_picture_of_a_directed_graph_has_arrows(tmp_path: Path) -> None:
    assert one_way(byzantine=[3]).draw(tmp_path / "one-way.svg").read_text().count("Quiver") == 1
    assert "Quiver" not in bm.network("ring", n=4).draw(tmp_path / "ring.svg").read_text()


def quadratic(network: Any, rule: str, rounds: int, **more: Any) -> bm.Simulation:
    problem = {"name": "quadratic", "dimension": 3, "targets": "normal", "init": "normal"}
    return bm.prepare(
        problem=problem, network=network, rule=rule, rounds=rounds, dtype="float64", local={"decay": 0.0}, **more
    )


SPECS: list[dict[str, Any]] = [
    {"network": {"edges": EDGES, "directed": True}},
    {"network": {"name": "k-in", "n": 6, "k": 2}, "process": [{"name": "link-loss", "p": 0.3}, "sleep"]},
]


@pytest.mark.parametrize("spec", SPECS, ids=["fixed", "changing"])
def test_push_sum_equals_its_definition(spec: dict[str, Any]) -> None:
    """Masses and shares, sender by sender; the sum of all x stays that of the gradients alone."""
    run = quadratic(rule="push-sum", rounds=6, step=0.1, **spec)
    models = run.models.copy()
    mass = np.ones(len(models))
    for k in range(6):
        before = models.copy()
        run.step()
        x = mass[:, None] * before + (run.half - before)
        new_x, new_mass = np.zeros_like(x), np.zeros_like(mass)
        heard = [row[row >= 0].tolist() for row in run.exchange.sender]
        for m in range(len(models)):
            readers = [n for n in range(len(models)) if m in heard[n]]
            assert m in readers
            for n in readers:
                new_x[n] += x[m] / len(readers)
                new_mass[n] += mass[m] / len(readers)
        np.testing.assert_allclose(new_x.sum(axis=0), x.sum(axis=0))
        models, mass = new_x / new_mass[:, None], new_mass
        np.testing.assert_allclose(run.models, models, rtol=1e-9, err_msg=f"round {k}")
        np.testing.assert_allclose(run.rule_state, mass, rtol=1e-9)
    assert mass.std() > 1e-3, "the graph is uneven"


def test_push_sum_finds_the_mean_where_averaging_does_not() -> None:
    """A graph whose rows sum to 1 and columns do not: the weighted mean is biased, push-sum is not."""
    network = {"edges": [*EDGES, (1, 3), (1, 0)], "directed": True, "weights": "equal"}
    ends = {}
    for rule in ("weimean", "push-sum"):
        run = quadratic(network, rule, 3000, step={"name": "inverse", "a": 1.0, "b": 1})
        optimum = np.mean([centre(run, row) for row in range(4)], axis=0)
        ends[rule] = np.abs(run.run().models - optimum).max()
    assert ends["push-sum"] < 0.01 < 0.1 < ends["weimean"]


def centre(run: bm.Simulation, row: int) -> np.ndarray:
    """The minimum of a worker's quadratic, whose gradient is x - centre."""
    zero = np.zeros((1, 3))
    return np.asarray(-run.task.gradients(zero, 0, rows=np.array([row]))[0])
