"""The network file: validated, no secrets, and the same run whatever the addresses."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from byzmesh.config.schema import TRAINING, resolve
from byzmesh.errors import ConfigError, InfeasibleBound
from byzmesh.files import CHECKPOINT_SECONDS
from byzmesh.networks import Network
from byzmesh.peers.identity import keygen, load_keys
from byzmesh.peers.network_file import NetworkFile, load_network, network_file
from byzmesh.peers.plan import addresses, plan_network
from byzmesh.peers.share import bind_share
from byzmesh.rules.base import rules
from tests.peers.networks import make_network, two_castle


def content(file: NetworkFile) -> dict[str, Any]:
    return file.model_dump(mode="json")


def test_round_trip_through_yaml_without_secrets(tmp_path: Path) -> None:
    file = two_castle(tmp_path)
    text = (tmp_path / "network.yaml").read_text()
    assert load_network(tmp_path / "network.yaml") == file
    for peer in range(12):
        assert load_keys(tmp_path / f"peer{peer}.key").secret not in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rouns": 3}, "did you mean 'rounds'"),
        ({"timeouts": {"rond": 3}}, "did you mean 'round'"),
        ({"rounds": 0}, "rounds"),
        ({"topology": None}, "exactly one"),
        ({"edges": [[0, 1]]}, "exactly one"),
        ({"topology": {"k": 3}}, "name"),
        ({"topology": {"name": "ring", "n": 5}}, "12 peers for a graph of 5"),
        ({"rule": {"name": "ois"}}, "did you mean"),
        ({"rule": {"name": "ios", "tau": 1}}, "tau"),
        ({"problem": {"name": "softmax", "partitions": "iid"}}, "partition"),
        ({"wire": "zip"}, "wire must be raw, float16 or int8"),
        ({"wire": "int8", "channel": ["int8"]}, "wire is the former name"),
        ({"channel": ["zip"]}, "unknown stage 'zip'"),
        ({"channel": ["int8", "float16"]}, "int8 must be the last stage"),
        ({"channel": ["top-k"], "process": "link-loss", "f": 0}, "top-k builds on the last message"),
        ({"f": -1}, "at least 0"),
        ({"f": {0: 1}}, "every peer"),
        ({"shares": 5}, "share of peer 5 must be below shares"),
        ({"step": {"name": "sqr"}}, "schedule"),
        ({"local": {"decya": 1}}, "local has no option 'decya': did you mean 'decay'"),
        ({"local": {"variance": "svrg"}}, "local variance must be none, saga or lsvrg"),
        ({"local": 3}, "network file local must be a mapping"),
        ({"peers": 3}, "network file peers"),
        ({"peers": None}, "network file peers"),
        ({"peers": [{"id": 0, "adress": "a:1"}]}, "did you mean 'address'"),
        ({"rounds": "many"}, "network file rounds"),
        ({"dtype": "float16"}, "network file dtype: must be float32 or float64, got 'float16'"),
        ({"checkpoint_seconds": 0}, "checkpoint_seconds"),
        ({"checkpoint_every": 100}, "checkpoint_every counted rounds and is gone; write checkpoint_seconds"),
        ({"timeouts": {"round": -1}}, "timeout"),
    ],
)
def test_mistakes_are_one_line_that_names_them(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    good = content(two_castle(tmp_path))
    with pytest.raises(ConfigError, match=message) as caught:
        network_file({**good, **change})
    assert "\n" not in str(caught.value)


def test_infeasible_bound_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InfeasibleBound):
        two_castle(tmp_path, rule={"name": "trimean"}, f=5)


@pytest.mark.parametrize(
    ("field", "value"), [("address", "nowhere"), ("address", "host:0"), ("public_key", '"' * 40), ("public_key", "")]
)
def test_bad_entries(tmp_path: Path, field: str, value: str) -> None:
    good = content(two_castle(tmp_path))
    good["peers"][3][field] = value
    with pytest.raises(ConfigError, match="peer 3"):
        network_file(good)


def test_two_peers_with_one_key_or_wrong_ids(tmp_path: Path) -> None:
    good = content(two_castle(tmp_path))
    good["peers"][3]["public_key"] = good["peers"][4]["public_key"]
    with pytest.raises(ConfigError, match="two peers"):
        network_file(good)
    good["peers"] = good["peers"][::-1]
    with pytest.raises(ConfigError, match="ids"):
        network_file(good)


def test_run_is_what_peers_must_agree_on(tmp_path: Path) -> None:
    file = two_castle(tmp_path)
    same = content(file)
    same["peers"][0]["address"] = "10.0.0.1:80"
    same["rounds"], same["timeouts"] = 7, {"round": 1.0}
    assert network_file(same).run == file.run
    changes: list[dict[str, Any]] = [{"f": 1}, {"rule": "weimean"}, {"seed": 1}, {"dtype": "float64"}]
    for change in [*changes, {"wire": "int8"}, {"channel": ["int8"]}]:
        assert network_file({**content(file), **change}).run != file.run


@pytest.mark.parametrize("text", ["peers: [", "- a", "\x00"])
def test_not_a_network_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "n.yaml").write_text(text)
    with pytest.raises(ConfigError):
        load_network(tmp_path / "n.yaml")


def test_plan_follows_the_simulator_and_does_not_say_who_lies(tmp_path: Path) -> None:
    config = resolve(
        {
            "network": "paper/two-castle",
            "rule": "ios",
            "attack": "isolation",
            "problem": {"name": "softmax", "partition": "one-class"},
            "rounds": 40,
        }
    )
    graph = Network.from_spec(config["network"])
    public = keygen(tmp_path, 12)
    file = plan_network(config, graph, addresses("127.0.0.1:7000", 12), public)
    assert np.array_equal(file.network.adjacency, graph.adjacency)
    assert np.allclose(file.network.mixing, graph.mixing)
    assert [file.bound(peer) for peer in graph.honest] == graph.bounds("exact").tolist()
    assert [file.share(peer) for peer in graph.honest] == list(range(10))
    assert file.shares == 10 and len(file.network.byzantine) == 0
    text = yaml.safe_dump(content(file))
    assert "byzantine" not in text and "isolation" not in text


@pytest.mark.parametrize("told", [{"f": "tolerable"}, {"b": 0.25}], ids=str)
def test_bounds_that_follow_from_the_weights_do_not_say_who_lies(told: dict[str, Any], tmp_path: Path) -> None:
    bounds = []
    for liars in ([7, 9], [0, 3]):
        network = {"name": "paper/two-castle", "byzantine": liars}
        config = resolve({"network": network, "rule": "ios", "attack": "isolation", **told})
        graph = Network.from_spec(config["network"])
        file = plan_network(config, graph, addresses("127.0.0.1:7000", 12), keygen(tmp_path / str(liars), 12))
        bounds.append([file.bound(peer) for peer in range(12)])
        assert [bounds[-1][peer] for peer in graph.honest] == graph.bounds(config["f"], lambda d: d).tolist()
    assert bounds[0] == bounds[1]


def test_plan_of_a_run_without_attack_has_the_honest_peers_only(tmp_path: Path) -> None:
    config = resolve({"network": "paper/two-castle", "rule": "ios"})
    graph = Network.from_spec(config["network"])
    file = plan_network(config, graph, addresses("127.0.0.1:7000", 10), keygen(tmp_path, 10))
    assert len(file.peers) == 10


def test_host_maps(tmp_path: Path) -> None:
    path = tmp_path / "hosts.yaml"
    path.write_text("0: 'a:1'\n1: 'b:2'\n")
    assert addresses(str(path), 2) == {0: "a:1", 1: "b:2"}
    for bad in ("nowhere", str(path)):
        with pytest.raises(ConfigError, match="host map"):
            addresses(bad, 3)


def test_explicit_weights_and_edges(tmp_path: Path) -> None:
    weights = [[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.5, 0.5]]
    file = make_network(tmp_path, 3, edges=[[0, 1], [1, 2]], weights=weights, problem="quadratic", rule="weimean")
    assert np.allclose(file.network.mixing, weights)


def test_how_to_train_is_written_and_meant_as_in_a_config(tmp_path: Path) -> None:
    told: dict[str, Any] = {
        "rule": "tm",
        "step": 0.1,
        "local": {"momentum": "heavy-ball"},
        "measure": "class-accuracy",
        "seed": None,
        "labels": {"a": 1},
    }
    file = make_network(tmp_path, 5, topology={"name": "ring", "n": 5}, f=0, **told)
    run = resolve({"network": {"name": "ring", "n": 5}, **told})
    assert {key: run[key] for key in TRAINING if key in run} == {
        key: getattr(file, key) for key in TRAINING if key in run
    }
    assert file.checkpoint_seconds == CHECKPOINT_SECONDS


def test_file_names_are_relative_to_the_file_and_the_run_is_the_same_in_every_folder(
    tmp_path: Path, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two machines have the same file, each in a folder of its own."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "mine.npz").write_bytes(samples.read_bytes())
    (home / "office.edges").write_text("0 1\n1 2\n")
    (home / "planned.py").write_text(
        "import byzmesh as bm\n\n@bm.register_rule('relative')\ndef relative():\n    return bm.rule('weimean')\n"
    )
    more: dict[str, Any] = {"topology": {"file": "office.edges"}, "rule": "relative", "plugins": "planned.py"}
    monkeypatch.chdir(tmp_path)
    with rules.temporary():
        file = make_network(home, 3, problem={"name": "softmax", "dataset": "mine.npz", "batch": 2}, **more)
        assert str(home) not in (home / "network.yaml").read_text()
        shutil.copytree(home, tmp_path / "other")
        for folder in ("home", "other"):
            read = load_network(Path(folder) / "network.yaml")
            assert read.run == file.run and read.network.n == 3
            assert read.made_problem.options["dataset"] == str(tmp_path / folder / "mine.npz")
            assert bind_share(read, 0)[0].dimension == 84


def test_data_of_a_peers_own_are_where_its_command_says(
    tmp_path: Path, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = make_network(
        tmp_path / "net", 2, edges=[[0, 1]], rule="weimean", problem={"name": "softmax", "dataset": "a.npz"}
    )
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "a.npz").write_bytes(samples.read_bytes())
    monkeypatch.chdir(tmp_path)
    assert bind_share(file, 1, "here")[1] == 1
    assert bind_share(file, 1, "here/a.npz")[1] == 0


def test_a_plan_names_files_beside_it_by_their_path_from_it(tmp_path: Path, samples: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mine.npz").write_bytes(samples.read_bytes())
    for data, name in (("data/mine.npz", "data/mine.npz"), (str(samples), str(samples))):
        run = resolve({"network": {"name": "ring", "n": 3}, "problem": {"name": "softmax", "dataset": data}}, tmp_path)
        graph = Network.from_spec(run["network"])
        keys = keygen(tmp_path / str(len(name)), 3)
        file = plan_network(run, graph, addresses("127.0.0.1:7000", 3), keys, tmp_path)
        assert file.problem["dataset"] == name
        assert bind_share(file, 0)[0].workers == 3


def test_a_key_given_twice_is_not_dropped(tmp_path: Path) -> None:
    make_network(tmp_path, 2, edges=[[0, 1]], rule="weimean", problem="quadratic", f={0: 0, 1: 0})
    path = tmp_path / "network.yaml"
    assert load_network(path).f == {0: 0, 1: 0}
    path.write_text(path.read_text() + "rounds: 7\nrounds: 8\n")
    with pytest.raises(ConfigError, match="key 'rounds' is given twice"):
        load_network(path)
