"""Files: round trips of every kind, and one clear line for a damaged one."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byzmesh.errors import ConfigError
from byzmesh.networks import Network, network, schemes


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 10),
    st.integers(0, 10_000),
    st.sampled_from([*schemes.names(), "explicit"]),
    st.sampled_from(["json", "graphml", "edges", "txt", "csv"]),
    st.data(),
)
def test_round_trip(n: int, seed: int, weights: str, kind: str, data: st.DataObject) -> None:
    random = np.random.default_rng(seed)
    upper = np.triu(random.random((n, n)) < 0.4, 1)
    adjacency = upper | upper.T
    scheme: Any = weights
    if weights == "explicit":
        scheme = random.random((n, n)) * (adjacency | np.eye(n, dtype=bool))
        scheme /= scheme.sum(axis=1, keepdims=True)
    liars = data.draw(st.integers(0, n - 1))
    spots = random.normal(size=(n, 2)) if seed % 2 else None
    net = Network.from_adjacency(adjacency, byzantine=liars, weights=scheme, name='Größe "7"', positions=spots)
    with TemporaryDirectory() as folder:
        path = net.save(Path(folder) / f"net.{kind}")
        back = Network.from_file(path)
        given_again = Network.from_file(path, byzantine=net.byzantine.tolist(), weights=scheme)
    assert (back.adjacency == net.adjacency).all()
    assert given_again.byzantine.tolist() == net.byzantine.tolist()
    assert (given_again.mixing == net.mixing).all()
    if kind in ("json", "graphml"):
        assert back.byzantine.tolist() == net.byzantine.tolist()
        assert back.name == net.name
    else:
        assert back.byzantine.size == 0 and back.name == "net"
    if kind == "json":
        assert back.weights == net.weights
        assert (back.mixing == net.mixing).all()
        assert (back.positions is None) == (net.positions is None)
        if net.positions is not None and back.positions is not None:
            assert np.array_equal(back.positions, net.positions)


def test_json_keeps_the_parameters(tmp_path: Path) -> None:
    net = network("erdos-renyi", n=np.int64(8), p=0.5, seed=4, byzantine=2, weights="equal")
    back = Network.from_file(net.save(tmp_path / "net.json"))
    assert back.parameters == {"n": 8, "p": 0.5, "seed": 4}
    assert repr(back) == repr(net)


def test_networkx_reads_our_graphml_and_we_its(tmp_path: Path) -> None:
    net = network("paper/octopus")
    graph = networkx.read_graphml(net.save(tmp_path / "ours.graphml"), node_type=int)
    assert [node for node, lies in graph.nodes(data="byzantine") if lies] == [6, 7]
    networkx.write_graphml(networkx.path_graph(12), tmp_path / "theirs.graphml")
    theirs = Network.from_file(tmp_path / "theirs.graphml", byzantine=[10])
    assert theirs.byzantine.tolist() == [10]
    assert theirs.neighbours(10).tolist() == [9, 11]


def test_edge_lists_may_have_comments_commas_and_lonely_nodes(tmp_path: Path) -> None:
    path = tmp_path / "peers.edges"
    path.write_text("# four peers\n0 1\n\n1,2  # a link\n3\n")
    net = Network.from_file(path, byzantine=[2], weights="lazy")
    assert net.degree.tolist() == [1, 2, 1, 0]
    assert (net.byzantine.tolist(), net.weights, net.name) == ([2], "lazy", "peers")


@pytest.mark.parametrize(
    ("text", "degrees"),
    [
        ("source,target\n0,1\n1,2\n", [1, 2, 1]),
        ("# links\na, b\n\n0, 1\n1, 2  # twice\n1, 2\n", [1, 2, 1]),
        ("0,1\n1,2\n2,3\n", [1, 2, 2, 1]),
        ("source,target\n0,1\n", [1, 1]),
        ("0,1\n1,0\n", [1, 1]),
        ("0,1,1\n1,0,0\n1,0,0\n", [2, 1, 1]),
        ("0,1\n1,0\n1,2\n2,1\n", [1, 2, 1]),
    ],
)
def test_a_csv_of_two_columns_is_an_edge_list(tmp_path: Path, text: str, degrees: list[int]) -> None:
    path = tmp_path / "links.csv"
    path.write_text(text)
    assert Network.from_file(path).degree.tolist() == degrees


def test_a_directed_edge_list_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "links.edges"
    path.write_text("0 1\n1 0\n1 2\n")
    with pytest.raises(
        ConfigError, match="0-1 is listed in both directions and 1-2 in one only, as in a directed graph"
    ):
        Network.from_file(path)
    with pytest.raises(ConfigError, match="0-1 is listed in both directions and 2-1 in one only"):
        Network.from_edges([(1, 0), (0, 1), (2, 1)])


WHOLE = '{"format": "byzmesh-network", "version": 1, "name": "x", "parameters": {}, "n": 2, "byzantine": [], '


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.edges", "0 1\n1 two\n", "line 2: must be two node numbers like '0 1', got '1 two'"),
        ("a.edges", "0 1\n1 2 {}\n", "line 2: "),
        ("a.edges", "0 1\n-1 2\n", "line 2: "),
        ("a.edges", "0 1\n1 1\n", "line 2: node 1 is linked to itself"),
        ("a.edges", "1 2\n2 3\n", "no line names node 0, but one names 3"),
        ("a.edges", "0 1\n0 99999999999999\n", "no line names node 2"),
        ("a.txt", "# nothing\n", "no edges in the file"),
        ("a.csv", "0,1\n1\n", "line 2: has 1 columns, the lines above have 2"),
        ("a.csv", "0,1,0\n1,0,1\n", "2 lines of 3 columns"),
        ("a.csv", "0,1\n0,0\n", "0-1 is linked in one direction only"),
        ("a.csv", "from,to\n0,1\n1,2,3\n", "line 3: must be two node numbers like '0 1', got '1,2,3'"),
        ("a.csv", "0,x\n1,0\n", "line 1: must contain only 0 and 1"),
        ("a.csv", "", "0 lines of 0 columns"),
        ("a.json", '{\n "format": "byzmesh-network",\n "na', "line 3: not valid JSON"),
        ("a.json", "[]", "the key 'format' must be 'byzmesh-network'"),
        ("a.json", '{"format": "byzmesh-network", "version": 2}', "version 2 is not known"),
        ("a.json", WHOLE + '"weights": "equal"}', "the key 'edges' is missing"),
        (
            "a.json",
            WHOLE + '"weights": "equal", "edges": [[0, 1]], "directed": "false"}',
            "the key 'directed' must be true or false, got 'false'",
        ),
        ("a.json", WHOLE + '"weights": "equal", "edges": [0, 1]}', "'edges' must contain pairs"),
        ("a.json", WHOLE + '"weights": "equal", "edges": [[0, 2]]}', "names node 2"),
        ("a.json", WHOLE + '"weights": "eqal", "edges": [[0, 1]]}', "did you mean 'equal'"),
        ("a.json", WHOLE + '"weights": [[1, 0]], "edges": [[0, 1]]}', r"shape \(2, 2\)"),
        ("a.graphml", "<graphml>\n<graph>\n<no", "line 3: not valid XML"),
        ("a.graphml", "<html></html>", "not a GraphML graph"),
        ("a.gml", "", "the suffix must be .json, .graphml"),
        ("a", "", "got ''"),
    ],
)
def test_a_damaged_file_is_one_line_that_names_it(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        Network.from_file(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_a_directed_graphml_stays_directed(tmp_path: Path) -> None:
    networkx.write_graphml(networkx.DiGraph([(0, 1)]), tmp_path / "a.graphml")
    assert Network.from_file(tmp_path / "a.graphml").degree.tolist() == [0, 1]


def test_every_truncation_of_a_saved_file_is_an_error(tmp_path: Path) -> None:
    # The first cell of a CSV, "0", is a network of one node; every longer piece of it is damaged.
    for kind, shortest in (("json", 0), ("graphml", 0), ("csv", 2)):
        text = network("chain", n=3, byzantine=[1]).save(tmp_path / f"whole.{kind}").read_text()
        for end in range(shortest, len(text.rstrip()) - 1):
            path = tmp_path / f"cut.{kind}"
            path.write_text(text[:end])
            with pytest.raises(ConfigError):
                Network.from_file(path)


def test_missing_binary_and_unwritable_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        Network.from_file(tmp_path / "absent.json")
    (tmp_path / "binary.edges").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(ConfigError, match="not a text file"):
        Network.from_file(tmp_path / "binary.edges")
    with pytest.raises(ConfigError, match="cannot be written"):
        network("ring", n=3).save(tmp_path / "no such folder" / "net.json")
