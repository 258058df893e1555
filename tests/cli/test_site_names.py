"""Sites keep the user's names from a graph file through a stored run to suspects and pictures."""

from __future__ import annotations

import json
from pathlib import Path

import networkx
import pytest

from byzmesh.config.schema import resolve
from byzmesh.errors import ConfigError
from byzmesh.networks import Network
from byzmesh.store.keys import config_key
from byzmesh.theory.connectivity import connectivity
from byzmesh.theory.question import ask
from tests.cli import commands

SITES = ["H01-Lon", "H02-Par", "H03-Dub", "H04-Ber", "H05-Mad", "H06-Rom", "H07-Ham", "H08-Vie"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    graph = networkx.relabel_nodes(networkx.complete_graph(8), dict(enumerate(SITES)))
    networkx.write_graphml(graph, tmp_path / "sites.graphml")
    (tmp_path / "run.yaml").write_text(
        "network: {file: sites.graphml, byzantine: [H03-Dub]}\nproblem: {name: quadratic, dimension: 3}\n"
        "rule: ios\nattack: huge\nrounds: 24\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> str:
    return commands.run(*words).stdout


def test_suspects_and_pictures_show_names(folder: Path) -> None:
    run("run", "run.yaml")
    text = run("suspects", "--where", "rule=IOS", "--draw", "cuts.svg")
    assert "Named: H03-Dub, cut" in text
    assert all(site in text for site in SITES)
    assert "cuts by worker H01-Lon" in run("suspects", "--where", "rule=IOS", "--worker", "H01-Lon")
    assert json.loads(run("suspects", "--where", "rule=IOS", "--json"))["names"] == SITES
    run("draw", "run.yaml", "--out", "sites.svg")
    for picture in ("cuts.svg", "sites.svg"):
        assert all(site in (folder / picture).read_text() for site in SITES)


def test_names_are_no_part_of_a_runs_key(folder: Path) -> None:
    config = resolve({"network": {"file": "sites.graphml", "byzantine": ["H03-Dub"]}, "problem": "quadratic"})
    assert config["network"]["names"] == SITES
    unnamed = {**config, "network": {key: config["network"][key] for key in config["network"] if key != "names"}}
    assert config_key(config) == config_key(unnamed)
    assert resolve(config)["network"] == config["network"]


def test_a_cut_is_told_by_names() -> None:
    chain = Network.from_networkx(networkx.path_graph(SITES[:3]))
    assert connectivity(ask(chain, 1)).verdict.reason == "liars at H02-Par leave the honest workers in pieces"


def test_every_node_has_a_name_of_its_own() -> None:
    edges = {"edges": [[0, 1], [1, 2]]}
    assert Network.from_spec({**edges, "names": ["a", "b", "c"]}).label(2) == "c"
    for names in (["a", "b"], ["a", "b", "b"], "abc"):
        with pytest.raises(ConfigError, match="names must give each of the 3 nodes a name of its own"):
            Network.from_spec({**edges, "names": names})
