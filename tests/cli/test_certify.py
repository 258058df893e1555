"""`byzmesh certify` and `byzmesh design`."""

from __future__ import annotations

import json
from pathlib import Path

import networkx
import pytest

from byzmesh.cli import main
from byzmesh.config.schema import resolve
from byzmesh.errors import ConfigError
from byzmesh.networks import Network, network
from byzmesh.store import open_store
from byzmesh.theory.design.suggest import suggest
from byzmesh.theory.search.climb import Witness
from tests.cli import commands


def run(*words: str) -> tuple[int, str]:
    result = commands.run(*words)
    return result.exit_code, result.stdout


def test_certify_in_words() -> None:
    code, text = run("certify", "paper/two-castle", "--rule", "ios")
    assert code == 0
    assert text.startswith("IOS on paper/two-castle: 10 honest workers, 2 lying (7, 9).")
    assert "lambda 0.9256" in text


def test_certify_gates_a_script() -> None:
    assert run("certify", "paper/two-castle", "--rule", "scc", "--search", "0")[0] == 1
    assert run("certify", "paper/two-castle", "--rule", "krum", "--search", "0")[0] == 3
    assert run("certify", "paper/two-castle", "--guarantee", "rca", "--search", "0")[0] == 3
    assert run("certify", "paper/two-castle", "--f", "4", "--search", "0")[0] == 3
    assert run("certify", "paper/two-castle-3", "--guarantee", "agrees", "--f", "0", "--search", "0")[0] == 0
    assert run("certify", "two-castle", "--param", "k=6", "--f", "2", "--guarantee", "fair", "--search", "0")[0] == 0
    assert run("certify", "two-castle", "--param", "k=6", "--total", "3", "--rho", "3", "--search", "0")[0] == 0
    assert run("certify", "two-castle", "--param", "k=6", "--b", "3=0.1,*=0.2", "--rho", "1.1", "--search", "0")[0] == 0


def test_certify_as_json_with_a_witness(tmp_path: Path) -> None:
    file = tmp_path / "witness.npz"
    words = ["two-castle", "--param", "k=3", "--byzantine", "3,4", "--rule", "coomed", "--witness", str(file), "--json"]
    code, text = run("certify", *words)
    told = json.loads(text)
    assert code == 1
    assert told["byzantine"] == [3, 4]
    assert told["rho_searched"] > 1.0
    assert Witness.load(file).verify() == pytest.approx(told["rho_searched"])


@pytest.mark.parametrize(("told", "f"), [("f: tolerable", 6), ("b: 0.25", 5)])
@pytest.mark.parametrize("few", [("--total", "1"), ("--b", "0.05")])
def test_that_few_lie_does_not_change_what_the_config_tells_the_rule(
    told: str, f: int, few: tuple[str, str], tmp_path: Path
) -> None:
    config = tmp_path / "run.yaml"
    config.write_text(f"network: {{name: complete, n: 20}}\nrule: ios\n{told}\n")
    _, text = run("certify", str(config), *few, "--search", "0", "--json")
    assert {worker["f"] for worker in json.loads(text)["workers"]} == {f}


def test_certify_files_and_configs(tmp_path: Path) -> None:
    graph = network("ring", n=9).save(tmp_path / "ring.edges")
    code, text = run("certify", str(graph), "--byzantine-count", "2", "--json", "--search", "0")
    assert (code, len(json.loads(text)["byzantine"])) == (3, 2)
    config = tmp_path / "run.yaml"
    config.write_text("network: {name: two-castle, k: 4}\nrule: ios\n")
    code, text = run("certify", str(config), "--f", "1", "--json", "--search", "0")
    assert len(json.loads(text)["workers"]) == 8
    config.write_text("network: ring.edges\n")
    assert len(json.loads(run("certify", str(config), "--f", "0", "--json", "--search", "0")[1])["workers"]) == 9


def test_certify_a_stored_run(tmp_path: Path) -> None:
    base = {"problem": "quadratic", "network": "paper/two-castle", "attack": "alie", "rounds": 1}
    with open_store(tmp_path / "runs.db") as store:
        ios, cc, calm = store.plan_all(
            resolve({**base, **more}) for more in ({"f": 1}, {"rule": {"name": "cc", "tau": 0.5}}, {"attack": "none"})
        )
    where = ["--store", str(tmp_path / "runs.db"), "--guarantee", "bounded", "--search", "0", "--json"]
    told = json.loads(run("certify", "--run", ios[:9], *where)[1])
    direct = json.loads(run("certify", "paper/two-castle", "--f", "1", "--search", "0", "--json")[1])
    assert (told["rule"], told["byzantine"], told["workers"]) == ("IOS", [7, 9], direct["workers"])
    assert {worker["f"] for worker in told["workers"]} == {1}
    other = json.loads(run("certify", "--run", ios, "--rule", "weimean", "--f", "exact", *where)[1])
    assert other["rule"] == "WeiMean"
    assert json.loads(run("certify", "--run", cc, *where)[1])["rule"] == "CC"
    assert (
        json.loads(run("certify", "--run", calm, "--f", "0", *where)[1])["byzantine"] == []
    )  # as it is run: nobody lies
    for words in ([], ["ring", "--run", ios]):
        with pytest.raises(ConfigError, match="give either a network or a stored run"):
            run("certify", *words, *where)


def test_certify_holds_the_theorems_against_a_stored_run(tmp_path: Path) -> None:
    problem = {"name": "noisy-quadratic", "dimension": 3, "init": "common"}
    base = {"problem": problem, "rounds": 20, "step": 0.05, "local": {"decay": 0.0}, "dtype": "float64"}
    with open_store(tmp_path / "runs.db") as store:
        calm, castle = store.plan_all(
            resolve({**base, **more})
            for more in (
                {"network": {"name": "complete", "n": 5}, "rule": "weimean"},
                {"network": "paper/two-castle", "rule": "ios", "attack": "alie"},
            )
        )
    where = ["--store", str(tmp_path / "runs.db")]
    code, text = run("certify", "--run", calm, *where)
    assert code == 0
    assert text.startswith("WeiMean on complete, 5 honest workers, nobody lying, 20 rounds")
    assert "Theorem 1 (the mean squared gradient at the average model) held: " in text
    assert run("certify", "--run", calm, *where, "--gap", "0", "--draws", "12")[0] == 1
    code, text = run("certify", "--run", castle[:9], *where, "--json")
    told = {one["name"]: one for one in json.loads(text)["comparisons"]}
    assert (code, told["Theorem 1"]["status"]) == (3, "held")
    assert told["Theorem 2"]["unmet"] == ["rho 0.9206 is not below rho* = lambda / (8 sqrt N) = 0.03659"]
    assert run("certify", "--run", castle, *where, "--guarantee", "theorem-1")[0] == 0
    assert run("certify", "--run", castle, *where, "--guarantee", "theorem-2")[0] == 3
    with pytest.raises(ConfigError, match="--f does not go with a run's theorems"):
        run("certify", "--run", castle, *where, "--f", "1")
    with pytest.raises(ConfigError, match="--draws goes with the theorems along a run"):
        run("certify", "paper/two-castle", "--draws", "2")
    with pytest.raises(ConfigError, match="guarantee must be"):
        run("certify", "paper/two-castle", "--guarantee", "theorem-1")


def test_certify_with_the_theorems() -> None:
    words = ["--L", "1", "--delta-in", "1", "--delta-out", "1", "--rounds", "100", "--gap", "1", "--search", "0"]
    text = run("certify", "complete", "--param", "n=5", "--f", "0", *words)[1]
    assert "omega 1, Delta 0; step at most 0.2887 (Theorem 1), 0.1667 (Theorem 2)" in text


def test_design(tmp_path: Path) -> None:
    code, text = run("design", "--nodes", "9", "--f", "1", "--save", str(tmp_path / "net.json"))
    assert code == 0
    assert "Add " in text
    assert run("certify", str(tmp_path / "net.json"), "--f", "1", "--guarantee", "fair", "--search", "0")[0] == 0
    code, text = run("design", "octopus", "--param", "head=4", "--f", "1", "--json")
    assert (code, json.loads(text)["possible"]) == (0, True)
    assert run("design", "--nodes", "9", "--f", "3", "--scale", "1")[0] == 1


def test_design_with_prices_and_names(tmp_path: Path) -> None:
    sites = ["H01-Lon", "H02-Par", "H03-Dub", "H04-Ber", "H05-Mad", "H06-Rom"]
    graph, cost = tmp_path / "sites.graphml", tmp_path / "fibre.csv"
    networkx.write_graphml(networkx.cycle_graph(sites), graph)
    cost.write_text("site,site,cost\n*,*,10\nH01-Lon,H03-Dub,2.5\nH02-Par,*,30\n")
    words = [
        "--f",
        "H03-Dub=2,*=1",
        "--cost",
        str(cost),
        "--forbid",
        "H04-Ber-H06-Rom",
        "--most-links",
        "H01-Lon=4,*=5",
    ]
    code, text = run("design", str(graph), *words, "--json")
    told = json.loads(text)
    assert (code, told["possible"], told["minimal"]) == (0, True, True)
    assert "H04-Ber--H06-Rom" not in told["links"]
    listed = {"H01-Lon--H03-Dub": 2.5}
    assert told["cost"] == sum(listed.get(link, 30.0 if "H02-Par" in link else 10.0) for link in told["links"])
    text = run("design", str(graph), *words)[1]
    assert "Before\nIOS on sites" in text
    assert ", ".join(f"{link} (" for link in told["links"][:1]) in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["certify", "two-castle", "--param", "k"], "--param takes KEY=VALUE"),
        (["certify", "two-castle", "--byzantine", "x"], "no node 'x' in network two-castle; its nodes are 0 to 11"),
        (["certify", "two-castel"], "unknown topology"),
        (["certify", "ring", "--param", "n=5"], "nobody lies in this network and f is not given"),
        (["certify", "ring", "--param", "n=5", "--f", "exact"], "nobody lies in this network and f = 'exact' counts"),
        (["certify", "paper/two-castle", "--total", "2"], "this network names its liars"),
        (["certify", "ring", "--param", "n=5", "--b", "1=x"], "--b takes NAME=NUMBER"),
        (["certify", "ring", "--param", "n=5", "--b", "light"], "--b must be a weight below 1"),
        (["certify", "ring", "--param", "n=5", "--f", "1.5"], "f must be a whole number"),
        (["certify", "ring", "--param", "n=5", "--f=--5"], "f must be a whole number"),
        (["certify", "ring", "--param", "n=5", "--f", "²"], "f must be a whole number"),
        (["certify", "ring", "--param", "n=5", "--f", "1=²,*=1"], "--f takes NAME=NUMBER"),
        (["certify", "ring", "--param", "n=5", "--f", "1=2"], r"--f says nothing about 0; add \*=NUMBER"),
        (["certify", "ring", "--param", "n=5", "--f", "1", "--search", "-5"], "search must be a whole number"),
        (
            ["certify", "ring", "--param", "n=5", "--f", "1", "--search", "50", "--witness", "missing/w.npz"],
            "missing/w.npz cannot be written .* give another --witness",
        ),
        (["design", "--f", "1"], "either a network"),
        (["design", "--nodes", "9", "--f", "exact"], "--f takes a number, or one per site as H03=2"),
        (["design", "--nodes", "9", "--forbid", "0-99"], "a link must be written A--B with two sites"),
        (["design", "--nodes", "9", "--most-links", "4=x"], "--most-links takes NAME=NUMBER"),
        (["design", "--nodes", "9", "--most-links", "4=5"], r"--most-links says nothing about 0; add \*=NUMBER"),
        (["design", "--nodes", "9", "--most-links", "few"], "--most-links takes a number, or one per site"),
    ],
)
def test_mistakes(words: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        run(*words)


def test_sites_are_given_and_shown_by_name(tmp_path: Path) -> None:
    """A GraphML with names: liars and f by name, and names in what is printed."""
    import networkx

    graph = networkx.complete_graph(12)
    networkx.relabel_nodes(graph, {node: f"H{node:02d}-Dub" for node in graph}, copy=False)
    file = tmp_path / "sites.graphml"
    networkx.write_graphml(graph, file)
    code, text = run("certify", str(file), "--byzantine", "H03-Dub,H07-Dub", "--search", "0")
    assert (code, "2 lying (H03-Dub, H07-Dub)" in text) == (0, True)
    told = json.loads(run("certify", str(file), "--f", "H03-Dub=2,*=1", "--search", "0", "--json")[1])
    assert [worker["f"] for worker in told["workers"]] == [1, 1, 1, 2, *[1] * 8]
    assert told["workers"][3]["name"] == "H03-Dub"
    again = network(str(file)).save(tmp_path / "sites.json")
    assert network(str(again)).names == network(str(file)).names
    assert json.loads(run("certify", str(again), "--byzantine", "8", "--search", "0", "--json")[1])["byzantine"] == [8]


def test_other_weights_come_before_links() -> None:
    """On a wheel, constant weights suffice where Metropolis-Hastings weights do not: no link is suggested."""
    import networkx

    plan = suggest(Network.from_networkx(networkx.wheel_graph(11)), f=1)
    assert not plan.before.holds
    assert plan.after.holds and plan.added == ()
    assert plan.options[0].weights == "best-constant"


def test_a_design_is_saved_with_the_weights_that_it_was_certified_with(tmp_path: Path) -> None:
    """A graph file without weights would be read with others, for which nothing was certified."""
    words = ["design", "complete", "--param", "n=6", "--f", "2", "--save"]
    with pytest.raises(ConfigError, match=r"only a \.json file keeps the weights of this design"):
        run(*words, str(tmp_path / "safe.graphml"))
    assert not (tmp_path / "safe.graphml").exists()
    assert run(*words, str(tmp_path / "safe.json"))[0] == 0
    assert run("certify", str(tmp_path / "safe.json"), "--f", "2", "--guarantee", "fair", "--search", "0")[0] == 0


def test_names_of_sites_are_no_markup(tmp_path: Path) -> None:
    graph = tmp_path / "sites.graphml"
    networkx.write_graphml(networkx.complete_graph(["[Dub]", "[/b]", "Rom", "x[bold]y", "Oslo"]), graph)
    code, text = run("certify", str(graph), "--f", "1", "--rho", "2", "--search", "0")
    table = text.partition("bears")[2]
    assert code == 0 and all(name in table for name in ("[Dub]", "[/b]", "x[bold]y"))


def test_a_defect_does_not_look_like_an_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1 means that the guarantee does not hold, 2 a mistake of the user."""

    def broken(*_: object, **__: object) -> None:
        raise ArithmeticError("a defect")

    monkeypatch.setattr("byzmesh.theory.certify.certify", broken)
    monkeypatch.setattr("sys.argv", ["byzmesh", "certify", "ring", "--param", "n=5", "--f", "1"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 3 and "a defect" in capsys.readouterr().err


def test_a_changing_network_is_described_in_words_and_in_json(tmp_path: Path) -> None:
    config = tmp_path / "lossy.yaml"
    config.write_text("network: {name: ring, n: 6, byzantine: [5]}\nprocess: [{name: link-loss, p: 0.2}]\nf: exact\n")
    text = run("certify", str(config), "--search", "0")[1]
    assert "Under link-loss:" in text and "contraction: lambda of E[W^T W] is" in text
    told = json.loads(run("certify", str(config), "--search", "0", "--json")[1])
    assert [line.split(":")[0] for line in told["process"]] == ["inboxes", "contraction", "connectivity"]
