"""The arena's cells: which runs a programme has, and that they differ from the reproduction's in the rule only."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from byzmesh.errors import ConfigError, UnknownName
from byzmesh.networks import network
from byzmesh.studies.arena.grid import ATTACKERS, BOUNDS, OURS, RULES, Selection, bouts, programme
from byzmesh.studies.paper.cells import ATTACKS, TABLES, cells, configs


def test_the_tables_programme_is_the_reproduction_with_our_rule() -> None:
    ours = programme("tables")
    assert [(cell.labels["target"], cell.labels["attack"]) for cell in ours] == [
        (table, attack) for table in TABLES for attack in ATTACKS
    ]
    reproduced = {table: cells(table) for table in TABLES}
    for cell in ours:
        beside = next(
            c
            for c in reproduced[cell.labels["target"]]
            if c.labels["rule"] == "IOS" and c.labels["attack"] == cell.labels["attack"]
        )
        assert {**cell.config, "rule": None} == {**beside.config, "rule": None}
        assert cell.config["rule"] == {"name": OURS, "c": 3.5}


def test_the_attackers_programme() -> None:
    found = programme("attackers")
    seeds = {rule: {cell.config["seed"] for cell in found if cell.labels["rule"] == rule} for rule in RULES}
    assert {rule for rule, drawn in seeds.items() if drawn == {0, 1, 2}} == {OURS, "IOS"}
    assert Counter(cell.labels["attack"] for cell in found) == {name: len(found) // 3 for name in ATTACKERS}
    assert {cell.labels["variant"] for cell in found} == {"", "f - 1", "f + 1"}
    true = network("paper/er-12").lying_neighbours
    for cell in found:
        if cell.labels["rule"] == "IOS" and cell.labels["target"].startswith("er-12") and cell.labels["variant"]:
            np.testing.assert_array_equal(
                cell.config["f"], np.maximum(true + int(cell.labels["variant"].replace("f ", "").replace(" ", "")), 0)
            )
    assert len(configs(found)) == len(found) - 2 * 2 * 2 * 3, "CC and SCC ignore f: their columns share runs"


def test_quick_changes_the_rounds_only() -> None:
    for short, full in zip(programme("tables", quick=True), programme("tables"), strict=True):
        assert short.config["rounds"] == 1_000
        free = {"rounds", "evaluate_every"}
        assert {k: v for k, v in short.config.items() if k not in free} == {
            k: v for k, v in full.config.items() if k not in free
        }


def test_mistakes() -> None:
    with pytest.raises(UnknownName, match="unknown programme 'table': did you mean 'tables'"):
        programme("table")
    with pytest.raises(UnknownName, match=r"unknown bound 'f\+1'"):
        bouts(Selection(bounds=("f+1",)))
    with pytest.raises(UnknownName, match="unknown rule 'ois'"):
        bouts(Selection(rules=("ois",)))
    with pytest.raises(ConfigError, match="must be a whole number of at least 1"):
        bouts(Selection(seeds=0))


def test_aliases_are_spelled_in_full() -> None:
    (cell,) = bouts(Selection(rules=("readmission",), attacks=("foe",), bounds=BOUNDS[:1]))
    assert (cell.labels["target"], cell.labels["rule"], cell.labels["attack"]) == (
        "two-castle, one-class",
        "Reprieve",
        "IPM",
    )
