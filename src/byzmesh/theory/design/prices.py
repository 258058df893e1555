"""What new links cost, which are forbidden, and how many a site may have.

site,site,cost         a header, then a line per pair; sites by name or number
H03-Dub,H07-Ham,12.5
H03-Dub,*,40           every other link of this site; of two such lines the larger counts
*,*,10                 every other link (default 1)
H01-Lon,H02-Par,inf    forbidden
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from byzmesh.checks import is_number
from byzmesh.errors import ConfigError
from byzmesh.networks import Network
from byzmesh.types import Booleans, Floats, Integers

ANY = "*"
"""Any site."""
Pair = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Prices:
    """What may be built.

    cost   (n, n) symmetric, of a new link; infinite: forbidden
    most   (n,) how many links a node may have, old ones included

    >>> from byzmesh.networks import network
    >>> told = prices(network("chain", n=3), {("0", "2"): 5.0}, most=1)
    >>> told.of((0, 2)), bool(told.allowed(network("chain", n=3).adjacency).any())
    (5.0, False)
    """

    cost: Floats
    most: Integers

    def of(self, link: tuple[int, int]) -> float:
        """The cost of a new link."""
        return float(self.cost[link])

    def allowed(self, links: Booleans) -> Booleans:
        """(n, n) the links that may be added to these."""
        free = links.sum(axis=1) < self.most
        open_pairs: Booleans = np.isfinite(self.cost) & ~links & ~np.eye(len(links), dtype=bool)
        open_pairs &= free[:, None] & free[None, :]
        return open_pairs


def prices(
    network: Network,
    cost: Mapping[Pair, float] | None = None,
    forbid: Iterable[Pair] = (),
    most: Any = None,
) -> Prices:
    """Prices from costs of pairs of sites, forbidden pairs, and the most links per node (one number or one per node).

    Sites are named as in `Network.node`, and `*` is any site; what is not named costs 1.
    """
    named = {_pair(network, pair): value for pair, value in (cost or {}).items()}
    for pair, value in named.items():
        if not is_number(value) or not value >= 0.0:
            raise ConfigError(f"cost of {_words(network, pair)} must be a number of at least 0 or inf, got {value!r}")
    n = network.n
    table = np.full((n, n), named.pop((None, None), 1.0))
    site = np.full(n, -math.inf)
    for (first, second), value in named.items():
        if second is None and first is not None:
            site[first] = value
    larger = np.maximum.outer(site, site)
    table = np.where(np.isfinite(larger) | (larger == math.inf), larger, table)
    for (first, second), value in named.items():
        if first is not None and second is not None:
            table[first, second] = table[second, first] = value
    for ends in forbid:
        _forbid(network, table, _pair(network, ends))
    limit = n if most is None else most
    return Prices(cost=table, most=network.with_byzantine("none").bounds(limit))


def _forbid(network: Network, table: Floats, pair: tuple[int | None, int | None]) -> None:
    first, second = pair
    if first is None:
        raise ConfigError(
            "forbid must name at least one site of a link, got * and *; leave the network as it is instead"
        )
    others = slice(None) if second is None else second
    if second is not None and network.adjacency[first, second]:
        raise ConfigError(f"forbid names {_words(network, pair)}, which the network already has; remove it there first")
    table[first, others] = table[others, first] = math.inf


def _pair(network: Network, pair: Any) -> tuple[int | None, int | None]:
    """A pair of sites as numbers, None for any; a named one comes first."""
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise ConfigError(f"a link must be a pair of sites, got {pair!r}")
    first, second = (None if str(name) == ANY else network.node(str(name)) for name in pair)
    if first is not None and first == second:
        raise ConfigError(f"a link must have two ends, got {network.label(first)} twice")
    if first is None or (second is not None and second < first):
        return second, first
    return first, second


def _words(network: Network, pair: tuple[int | None, int | None]) -> str:
    return link_words(*(ANY if node is None else network.label(node) for node in pair))


def link_words(first: str, second: str) -> str:
    """A link as text. Names often contain a hyphen, so there are two.

    >>> link_words("H03-Dub", "H07-Ham")
    'H03-Dub--H07-Ham'
    """
    return f"{first}--{second}"


def split_link(text: str, network: Network) -> Pair:
    """The ends of a link written A--B, or A-B where that can be read in one way only.

    >>> from byzmesh.networks import network
    >>> split_link("0-2", network("ring", n=3)), split_link("1--*", network("ring", n=3))
    (('0', '2'), ('1', '*'))
    """
    known = set(map(str, range(network.n))) | set(network.names or ()) | {ANY}
    if text.count("--") == 1:
        first, second = text.split("--")
        return first.strip(), second.strip()
    dashes = [place for place, letter in enumerate(text) if letter == "-"]
    ways = [(text[:place].strip(), text[place + 1 :].strip()) for place in dashes]
    ways = [way for way in ways if set(way) <= known]
    if len(ways) != 1:
        raise ConfigError(f"a link must be written A--B with two sites of network {network.name}, got {text!r}")
    return ways[0]


def read_costs(path: Path, network: Network) -> dict[Pair, float]:
    """The costs in a CSV file, as the module's docstring shows."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = [(number, [cell.strip() for cell in row]) for number, row in enumerate(csv.reader(file), 1) if row]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or 'not a text file'})") from None
    costs: dict[Pair, float] = {}
    for number, row in rows:
        try:
            first, second, value = row
            cost = float(value)
        except ValueError:
            if number == rows[0][0] and len(row) == 3:
                continue  # the header
            raise ConfigError(
                f"{path}: line {number}: must be two sites and a cost, got {','.join(row)[:60]!r}"
            ) from None
        try:
            _pair(network, (first, second))
        except ConfigError as error:
            raise ConfigError(f"{path}: line {number}: {error}") from None
        if (first, second) in costs or (second, first) in costs:
            raise ConfigError(f"{path}: line {number}: {link_words(first, second)} is listed twice; keep one")
        costs[first, second] = cost
    if not costs:
        raise ConfigError(f"{path}: no costs in the file; write a header and a line like A,B,12.5 per link")
    return costs
