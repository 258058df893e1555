"""Twenty thousand runs: filters answer what reading every config would answer. (Times: benchmarks/store.py.)"""

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from byzmesh.store import Store, open_store

pytestmark = pytest.mark.xdist_group("large")  # planned once for all of them
RULES = ("IOS", "Krum", "FABA", "CC", "SCC", "CooMed", "GeoMed", "TriMean")
CONFIGS: list[dict[str, Any]] = [
    {"rule": {"name": RULES[number % 8], "f": (1, "exact")[number // 8 % 2]}, "lr": 0.25 * (number % 3), "seed": number}
    for number in range(20_000)
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with open_store(tmp_path_factory.mktemp("large") / "runs.db") as opened:
        opened.plan_all(CONFIGS)
        with sqlite3.connect(opened.path) as connection:
            connection.execute("UPDATE runs SET status = 'finished' WHERE id % 5 = 0")
        yield opened


@pytest.mark.parametrize(
    "where",
    [
        {"seed": 17_777},
        {"rule.name": "IOS", "rule.f": "exact"},
        {"rule.name": "Krum", "rule.f": 1, "lr": 0.5},
        {"rule.name": "Krum", "seed": 8},
    ],
)
def test_filters_find_exactly_the_right_runs(store: Store, where: dict[str, Any]) -> None:
    def fits(config: dict[str, Any]) -> bool:
        flat = {"rule.name": config["rule"]["name"], "rule.f": config["rule"]["f"], **config}
        return all(flat[path] == value for path, value in where.items())

    expected = [config["seed"] for config in CONFIGS if fits(config)]
    assert [run.config["seed"] for run in store.list(where)] == expected
    finished = [seed for seed in expected if (seed + 1) % 5 == 0]
    assert [run.config["seed"] for run in store.list(where, "finished")] == finished
    assert [run.config["seed"] for run in store.list(where, limit=7)] == expected[-7:]


def test_filters_use_the_index_and_never_walk_through_all_configs(store: Store) -> None:
    with sqlite3.connect(store.path) as connection:
        statements: list[str] = []
        store._connection.set_trace_callback(statements.append)
        store.list({"rule.name": "IOS", "seed": 8}, "finished", 5)
        store._connection.set_trace_callback(None)
        query = next(statement for statement in statements if "ORDER BY id" in statement)
        plan = [row[3] for row in connection.execute("EXPLAIN QUERY PLAN " + query)]
    assert plan and not [step for step in plan if step.startswith("SCAN")]
