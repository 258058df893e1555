"""The grids vary what the paper varies and nothing else."""

from __future__ import annotations

import pytest

from byzmesh.errors import ConfigError, UnknownName
from byzmesh.networks import network
from byzmesh.studies.paper.cells import QUICK_ROUNDS, TABLES, TARGETS, cells, configs


@pytest.mark.parametrize("target", list(TABLES))
def test_cells_of_a_table_differ_in_rule_and_attack_only(target: str) -> None:
    rest = {
        repr({key: value for key, value in cell.config.items() if key not in ("rule", "attack")})
        for cell in cells(target)
    }
    assert len(rest) == 1


@pytest.mark.parametrize(
    ("target", "network_name", "partition", "rounds"),
    [
        ("table-2", "paper/two-castle", "iid", 50_000),
        ("table-3", "paper/two-castle", "one-class", 50_000),
        ("table-4", "paper/octopus", "one-class", 150_000),
        ("table-5", "paper/er-12", "iid", 50_000),
        ("table-6", "paper/er-12", "one-class", 50_000),
    ],
)
def test_settings_of_the_tables(target: str, network_name: str, partition: str, rounds: int) -> None:
    config = cells(target)[0].config
    assert config["network"]["name"] == network_name
    assert config["network"]["weights"] == "metropolis-hastings"
    assert config["problem"]["partition"] == {"name": partition}
    assert (config["problem"]["batching"], config["problem"]["init"], config["problem"]["scale"]) == (
        "consecutive",
        "normal",
        6.0,
    )
    assert (config["rounds"], config["evaluate_every"], config["dtype"]) == (rounds, 500, "float64")
    assert config["f"] == "exact"


def test_published_options_by_split() -> None:
    def options(target: str, rule: str) -> dict[str, object]:
        return next(cell.config["rule"] for cell in cells(target) if cell.labels["rule"] == rule)

    assert options("table-2", "SCC")["tau"] == 0.1
    assert options("table-3", "SCC")["tau"] == options("table-4", "CC")["tau"] == 0.3
    assert options("table-2", "DRSA")["penalty"] == 0.001
    assert options("table-6", "DRSA")["penalty"] == 0.5
    assert options("table-2", "CooMed")["even"] == "lower"
    gaussian = next(cell.config["attack"] for cell in cells("table-2") if cell.labels["attack"] == "gaussian")
    assert gaussian == {"name": "gaussian", "std": 30.0, "mean": "plain"}


def test_no_cell_is_computed_twice() -> None:
    everything = cells("all")
    keys = {cell.key for cell in everything}
    assert len(configs(everything)) == len(keys) < len(everything)
    tables = {cell.key for table in TABLES for cell in cells(table)}
    assert len(tables) == 292
    assert {cell.key for cell in cells("figure-1")} <= tables
    exact = {cell.key for cell in cells("misjudged-f") if cell.labels["variant"].endswith("exact")}
    assert len(exact & tables) == 2 * 4 * 3 + 2 * 3  # all on two graphs, FABA and IOS on the octopus


def test_figure_4() -> None:
    found = cells("figure-4")
    assert len(found) == 30
    rounds = {cell.labels["variant"]: cell.config["rounds"] for cell in found}
    assert rounds == {f"{liars} liars": 50_000 if liars == 10 else 25_000 for liars in (2, 4, 6, 7, 8, 10)}
    for cell in found:
        assert len(cell.config["network"]["byzantine"]) == int(cell.labels["variant"].split()[0])


def test_misjudged_bounds_are_one_off() -> None:
    true = network("paper/two-castle").lying_neighbours.tolist()
    bounds = {
        cell.labels["variant"].split(", ")[1]: cell.config["f"]
        for cell in cells("misjudged-f")
        if cell.labels["variant"].startswith("two-castle")
    }
    assert bounds == {
        "f - 1": [max(0, count - 1) for count in true],
        "exact": "exact",
        "f + 1": [count + 1 for count in true],
        "max": "max",
    }
    allowed = {
        cell.labels["variant"].split(", ")[1]: cell.config["f"]
        for cell in cells("misjudged-f")
        if cell.labels["rule"] == "FABA"
    }
    assert allowed["max"] == [1] * 6 + [0] * 4, "an arm of the octopus has one neighbour"


def test_the_text_of_krum_is_its_misjudged_f() -> None:
    text = next(cell for cell in cells("claims") if cell.labels["variant"] == "Krum, text")
    assert text.config in [
        cell.config for cell in cells("misjudged-f") if cell.labels["variant"] == "two-castle, f - 1"
    ]


def test_quick_changes_rounds_only() -> None:
    for long, short in zip(cells("table-3"), cells("table-3", quick=True)):
        same = {**long.config, "rounds": QUICK_ROUNDS, "evaluate_every": 100}
        assert same == short.config


def test_seeds() -> None:
    found = cells("figure-1", seeds=3)
    assert [cell.config["seed"] for cell in found] == [0] * 5 + [1] * 5 + [2] * 5


def test_targets() -> None:
    assert len(TARGETS) == 14
    assert all(cells(target) == [] for target in ("table-1", "figure-2", "figure-3"))
    with pytest.raises(UnknownName, match="did you mean 'table-3'"):
        cells("tabel-3")
    with pytest.raises(ConfigError, match="seeds"):
        cells("table-3", seeds=0)


def test_keys_of_the_committed_reproduction_stay() -> None:
    """A new option with a default in the canonical config would orphan hours of stored runs: say so and migrate."""
    cell = cells("table-3")[-1]
    assert (cell.labels["rule"], cell.labels["attack"]) == ("IOS", "alie")
    assert cell.key.startswith("cd3cdf81cdcb736d")
