"""Networks in files, by suffix.

    .json           everything: edges, liars, weights, name, parameters, positions; floats are restored bit for bit
    .graphml        the graph, and who lies as the boolean node attribute `byzantine`
    .edges, .txt    the graph: one edge "0 1" per line, a node without edges alone on its line, comments from #
    .csv            the graph: n lines of n numbers 0 or 1; or two columns of edges, with a header like source,target

Directed graphs: .json and .graphml say it themselves; for the others give directed=True, and an edge "a b" means that a
sends to b, a 1 in line a and column b of a matrix that a hears b.

Give what a file cannot store when you read it: `Network.from_file("peers.edges", byzantine=[3], weights="lazy")`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import ParseError

import numpy as np

from byzmesh import files
from byzmesh.checks import choice
from byzmesh.errors import ConfigError
from byzmesh.networks.adjacency import Parts, links_of_edges, links_of_matrix, parts_of_networkx
from byzmesh.networks.links import Links
from byzmesh.networks.weights import EXPLICIT

if TYPE_CHECKING:
    from byzmesh.networks.graph import Network

FORMAT = "byzmesh-network"
KINDS = (".json", ".graphml", ".edges", ".txt", ".csv")


def read(path: Path, byzantine: Any = None, directed: bool = False) -> Parts:
    """The contents of a network file, with other liars if given: labels for a GraphML file, ids for the others."""
    kind = _kind(path)
    try:
        text = path.read_text("utf-8")
        if kind == ".json":
            return _from_json(text, byzantine)
        if kind == ".graphml":
            return _from_graphml(text, path.stem, byzantine)
        links = _from_csv(text, directed) if kind == ".csv" else _edge_lines(text, directed)
        return Parts(links=links, name=path.stem, byzantine=byzantine)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not a text file; save the network again") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None


def write(network: Network, path: Path) -> Path:
    """Write the network in the format of the path's suffix."""
    kind = _kind(path)
    if kind == ".json":
        text = _to_json(network)
    elif kind == ".graphml":
        text = _to_graphml(network)
    elif kind == ".csv":
        matrix = network.links.dense("a .csv file").astype(int).tolist()
        text = "\n".join(",".join(map(str, row)) for row in matrix) + "\n"
    else:
        lonely = [str(node) for node in np.flatnonzero(network.degree == 0)]
        text = "\n".join([f"{i} {j}" for i, j in _edges(network)] + lonely) + "\n"
    return files.write(path, text, option="path")


def _kind(path: Path) -> str:
    kind = path.suffix.lower()
    choice(f"{path}: the suffix", kind, KINDS)
    return kind


def _edges(network: Network) -> list[tuple[int, int]]:
    return [(i, j) for i, j in network.links.edges().tolist()]


def _to_json(network: Network) -> str:
    explicit = network.weights == EXPLICIT
    record = {
        "format": FORMAT,
        "version": 1,
        "name": network.name,
        "parameters": dict(network.parameters),
        "n": network.n,
        "byzantine": network.byzantine.tolist(),
        "weights": network.mixing.tolist() if explicit else network.weights,
        "positions": None if network.positions is None else network.positions.tolist(),
        **({} if network.names is None else {"names": list(network.names)}),
        **({"directed": True} if network.directed else {}),
        **({} if network.samples is None else {"samples": network.samples.tolist()}),
        "edges": _edges(network),
    }
    lines = [f"  {json.dumps(key)}: {json.dumps(value, default=_plain)}" for key, value in record.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _plain(value: Any) -> Any:
    """A NumPy number among the parameters as a Python number."""
    if isinstance(value, np.generic):
        return value.item()
    raise ConfigError(f"parameter value {value!r} cannot be written to JSON")


def _from_json(text: str, byzantine: Any) -> Parts:
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"line {error.lineno}: not valid JSON ({error.msg}); save the network again") from None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise ConfigError(f"not a network: the key 'format' must be {FORMAT!r}")
    if record.get("version") != 1:
        raise ConfigError(f"version {record.get('version')!r} is not known, only 1; update byzmesh")
    kinds: dict[str, Any] = {
        "name": str,
        "parameters": dict,
        "n": int,
        "byzantine": list,
        "weights": (str, list),
        "edges": list,
    }
    for key, expected in kinds.items():
        if not isinstance(record.get(key), expected):
            raise ConfigError(f"the key {key!r} is missing or of the wrong type; save the network again")
    if not all(isinstance(edge, list) for edge in record["edges"]):
        raise ConfigError("the key 'edges' must contain pairs of node ids; save the network again")
    liars = record["byzantine"] if byzantine is None else byzantine
    rest = {key: record[key] for key in ("weights", "name", "parameters")}
    names = record.get("names")
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise ConfigError("the key 'names' must contain one name per node; save the network again")
    directed = record.get("directed", False)
    if not isinstance(directed, bool):
        raise ConfigError(f"the key 'directed' must be true or false, got {directed!r}")
    return Parts(
        links=links_of_edges(record["edges"], record["n"], directed),
        byzantine=liars,
        **rest,
        positions=record.get("positions"),
        names=None if names is None else tuple(names),
        samples=record.get("samples"),
    )


def _to_graphml(network: Network) -> str:
    import networkx

    graph: networkx.Graph[str] = (networkx.DiGraph if network.directed else networkx.Graph)(name=network.name)
    liars = set(network.byzantine.tolist())
    graph.add_nodes_from((network.label(node), {"byzantine": node in liars}) for node in range(network.n))
    graph.add_edges_from((network.label(i), network.label(j)) for i, j in _edges(network))
    return "\n".join(networkx.generate_graphml(graph)) + "\n"


def _from_graphml(text: str, stem: str, byzantine: Any) -> Parts:
    import networkx

    try:
        graph = networkx.parse_graphml(text, node_type=str)
    except ParseError as error:
        raise ConfigError(f"line {error.position[0]}: not valid XML ({error.msg}); save the graph again") from None
    except (networkx.NetworkXError, KeyError, ValueError) as error:
        raise ConfigError(f"not a GraphML graph ({error}); save the graph again") from None
    if isinstance(byzantine, list | tuple | np.ndarray):
        # Labels of a GraphML file are strings; a user writes the numbers that appear in it.
        byzantine = [str(label) for label in byzantine]
    return replace(parts_of_networkx(graph, byzantine), name=graph.graph.get("name") or stem)


def _edge_lines(text: str, directed: bool) -> Links:
    edges: list[tuple[int, int]] = []
    nodes: set[int] = set()
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#", 1)[0].replace(",", " ").split()
        if not words:
            continue
        if len(words) > 2 or not all(word.isascii() and word.isdigit() for word in words):
            raise ConfigError(f"line {number}: must be two node numbers like '0 1', got {line.strip()[:60]!r}")
        ends = [int(word) for word in words]
        if len(ends) == 2 and ends[0] == ends[1]:
            raise ConfigError(f"line {number}: node {ends[0]} is linked to itself; remove the line")
        nodes.update(ends)
        if len(ends) == 2:
            edges.append((ends[0], ends[1]))
    if not nodes:
        raise ConfigError("no edges in the file; write one edge like '0 1' per line")
    unnamed = next((node for node in range(len(nodes)) if node not in nodes), None)
    if unnamed is not None:
        raise ConfigError(
            f"no line names node {unnamed}, but one names {max(nodes)}; number the nodes from 0 without gaps, "
            "and put a node without edges alone on a line"
        )
    return links_of_edges(edges, len(nodes), directed)


def _from_csv(text: str, directed: bool) -> Links:
    """Two columns with a header of two words or a number above 1 are edges; anything else is a matrix."""
    lines = [line.split("#", 1)[0].strip() for line in text.splitlines()]
    rows = [[cell.strip() for cell in line.split(",")] for line in lines if line]
    header = bool(rows) and len(rows[0]) == 2 and not any(cell.isdigit() for cell in rows[0])
    pairs = all(len(row) == 2 for row in rows)
    matrix = all(cell in ("0", "1") for row in rows for cell in row)
    if header and len(rows) > 1:
        first = next(number for number, line in enumerate(lines) if line)
        return _edge_lines("\n".join(["#" if number == first else line for number, line in enumerate(lines)]), directed)
    if rows and pairs and not matrix and all(cell.isdigit() for row in rows for cell in row):
        return _edge_lines(text, directed)
    return links_of_matrix(_csv_rows(text), directed)


def _csv_rows(text: str) -> list[list[int]]:
    rows: list[list[int]] = []
    for number, line in enumerate(text.splitlines(), 1):
        content = line.split("#", 1)[0].strip()
        if not content:
            continue
        cells = [cell.strip() for cell in content.split(",")]
        if rows and len(cells) != len(rows[0]):
            raise ConfigError(f"line {number}: has {len(cells)} columns, the lines above have {len(rows[0])}")
        if not all(cell in ("0", "1") for cell in cells):
            raise ConfigError(f"line {number}: must contain only 0 and 1 separated by commas, got {content[:60]!r}")
        rows.append([int(cell) for cell in cells])
    if not rows or len(rows) != len(rows[0]):
        raise ConfigError(
            f"{len(rows)} lines of {len(rows[0]) if rows else 0} columns; an adjacency matrix is square, "
            "an edge list has two columns and a header like source,target"
        )
    return rows
