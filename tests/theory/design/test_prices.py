"""Costs, forbidden links and limits as users write them."""

from __future__ import annotations

import math
from pathlib import Path

import networkx
import numpy as np
import pytest

from byzmesh.errors import ConfigError
from byzmesh.networks import Network
from byzmesh.theory.design.prices import prices, read_costs, split_link

SITES = ["H01-Lon", "H02-Par", "H03-Dub", "H04-Ber"]


@pytest.fixture
def sites() -> Network:
    return Network.from_networkx(networkx.path_graph(SITES))


def test_a_file_of_costs(sites: Network, tmp_path: Path) -> None:
    file = tmp_path / "fibre.csv"
    file.write_text('site,site,cost\nH01-Lon,H03-Dub,12.5\n"H04-Ber",*,40\n\n*,*,10\nH02-Par, H04-Ber, inf\n')
    table = prices(sites, read_costs(file, sites)).cost
    assert (table[0, 2], table[2, 0], table[0, 3], table[0, 1]) == (12.5, 12.5, 40.0, 10.0)
    assert math.isinf(table[3, 1])
    file.write_text("0,2,7\n")
    assert read_costs(file, sites) == {("0", "2"): 7.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,cost\nH01-Lon,H99,3\n", "line 2: no node 'H99'"),
        ("a,b,cost\nH01-Lon,H02-Par\n", "line 2: must be two sites and a cost"),
        ("a,b,cost\nH01-Lon,H02-Par,dear\n", "line 2: must be two sites and a cost"),
        ("a,b,cost\nH01-Lon,H01-Lon,3\n", "line 2: a link must have two ends, got H01-Lon twice"),
        ("a,b,cost\nH01-Lon,H03-Dub,3\nH03-Dub,H01-Lon,4\n", "line 3: H03-Dub--H01-Lon is listed twice"),
        ("a,b,cost\n", "no costs in the file"),
    ],
)
def test_what_is_wrong_with_a_file(sites: Network, tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "fibre.csv"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_costs(file, sites)


def test_a_file_that_is_not_there(sites: Network, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.csv: cannot be read \(No such file"):
        read_costs(tmp_path / "gone.csv", sites)


def test_the_dearer_of_two_sites_counts(sites: Network) -> None:
    table = prices(sites, {("H01-Lon", "*"): 5.0, ("*", "H03-Dub"): 8.0}).cost
    assert (table[0, 2], table[0, 3], table[2, 3], table[1, 3]) == (8.0, 5.0, 8.0, 1.0)


def test_links_by_names_with_hyphens(sites: Network) -> None:
    assert split_link("H03-Dub-H01-Lon", sites) == ("H03-Dub", "H01-Lon")
    assert split_link("H03-Dub--*", sites) == ("H03-Dub", "*")
    assert split_link("2-0", sites) == ("2", "0")
    for text in ("H03-H01", "H03", "H03-Dub-H09"):
        with pytest.raises(ConfigError, match="must be written A--B with two sites of network"):
            split_link(text, sites)


def test_forbidden_links_and_limits(sites: Network) -> None:
    told = prices(sites, forbid=[("H01-Lon", "H03-Dub"), ("H04-Ber", "*")], most=2)
    assert np.argwhere(np.triu(told.allowed(sites.adjacency))).tolist() == []
    told = prices(sites, forbid=[("H01-Lon", "H03-Dub")])
    assert np.argwhere(np.triu(told.allowed(sites.adjacency))).tolist() == [[0, 3], [1, 3]]
    with pytest.raises(ConfigError, match="forbid names H01-Lon--H02-Par, which the network already has"):
        prices(sites, forbid=[("H02-Par", "H01-Lon")])
    with pytest.raises(ConfigError, match="forbid must name at least one site"):
        prices(sites, forbid=[("*", "*")])
    with pytest.raises(ConfigError, match="cost of H01-Lon--H03-Dub must be a number of at least 0 or inf, got -1"):
        prices(sites, {("H03-Dub", "H01-Lon"): -1})
