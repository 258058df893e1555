"""One process and one store: planning, claiming, ending, reading, deleting."""

import os
import pickle
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byzmesh.errors import ConfigError, StoreError, UnknownName, UnknownOption
from byzmesh.store import Owner, Store, config_key, open_store, this_process
from byzmesh.store.provenance import provenance

CONFIG = {"rule": {"name": "IOS", "f": 1}, "seed": 3, "lr": 0.5}
ELSEWHERE = Owner("another-host", 17)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "runs.db") as opened:
        yield opened


def grid() -> list[dict[str, Any]]:
    return [{"rule": {"name": rule}, "seed": seed} for rule in ("IOS", "Krum", "FABA") for seed in range(4)]


def test_a_run_from_plan_to_result(store: Store) -> None:
    key = store.plan(CONFIG)
    assert key == config_key(CONFIG)
    assert store.get(key).status == "planned"
    assert store.claim(key, this_process())
    running = store.get(key)
    assert (running.status, running.owner, running.leased) == ("running", this_process(), True)
    edges = [[7, 0, 95, 100], [0, 1, 2, 100]]
    assert store.finish(key, "finished", {"loss": [2.0, 1.0]}, edges=edges, rounds=100, seconds=1.5)
    run = store.get(key)
    assert (run.status, run.rounds, run.seconds, run.config) == ("finished", 100, 1.5, CONFIG)
    assert (run.final, run.provenance, run.owner) == ({"loss": 1.0}, provenance(), None)
    assert run.started is not None and run.ended is not None and run.ended >= run.started > 1.6e9
    np.testing.assert_array_equal(store.edges(key), sorted(edges))


def test_planning_again_changes_nothing(store: Store) -> None:
    key = store.plan(CONFIG)
    store.finish(key, "finished", {"loss": [1.0]})
    assert store.plan(dict(reversed(CONFIG.items()))) == key
    assert [run.status for run in store.list()] == ["finished"]


def test_a_result_is_never_overwritten(store: Store) -> None:
    key = store.plan(CONFIG)
    assert store.finish(key, "diverged", {"loss": [np.inf]})
    assert not store.finish(key, "finished", {"loss": [1.0]})
    assert not store.fail(key, "bug", "too late")
    assert not store.claim(key, this_process())
    assert (store.get(key).status, store.get(key).final) == ("diverged", {"loss": np.inf})


def test_an_interrupted_run_continues_and_a_failed_one_only_on_request(store: Store) -> None:
    key = store.plan(CONFIG)
    store.claim(key, this_process())
    assert store.finish(key, "interrupted", {"loss": [3.0]}, rounds=10, owner=this_process())
    assert store.claim(key, this_process())
    assert store.fail(key, "data", "line one\nline two \udcff", owner=this_process())
    assert (store.get(key).failure, store.get(key).failure_kind) == ("line one\nline two ?", "data")
    assert not store.claim(key, this_process())
    store.plan_all([CONFIG], again=["failed"])
    assert store.claim(key, this_process())
    assert (store.get(key).failure, store.get(key).failure_kind) == (None, None)
    assert store.finish(key, "finished", {"accuracy": [0.5]}, owner=this_process())
    assert list(store.series(key)) == ["accuracy"]


def test_the_same_config_by_other_code_is_another_run(store: Store) -> None:
    plain, first, second = (store.plan(CONFIG, code) for code in ({}, {"rule mine": "a"}, {"rule mine": "b"}))
    assert (plain, first) == (config_key(CONFIG), config_key(CONFIG, {"rule mine": "a"}))
    assert len({plain, first, second}) == 3
    assert [run.code for run in store.list()] == [{}, {"rule mine": "a"}, {"rule mine": "b"}]
    assert store.compare([first, second]).differing == {"rule mine": ("a", "b")}
    with pytest.raises(ConfigError, match="code must map"):
        store.plan(CONFIG, cast(Any, {"rule mine": 3}))


def test_current_is_the_code_last_planned(store: Store) -> None:
    first, second = (store.plan(CONFIG, {"rule mine": code}) for code in "ab")
    other = store.plan({"seed": 4})
    for key in (first, other):
        store.finish(key, "finished", {"loss": [1.0]})
    assert [run.key for run in store.list(current=True)] == [second, other]
    assert [run.key for run in store.list(status="finished", current=True)] == [other]
    assert [run.key for run in store.list(limit=1, current=True)] == [other]
    assert store.list(limit=0, current=True) == []
    assert store.plan(CONFIG, {"rule mine": "a"}) == first  # the edit was taken back
    assert [run.key for run in store.list(current=True)] == [first, other]
    assert len(store.list()) == len(store.frame(current=False)) == 3 and len(store.frame()) == 2


def test_a_result_asked_for_again_stays_until_there_is_a_new_one(store: Store) -> None:
    key = store.plan(CONFIG)
    store.finish(key, "finished", {"loss": [1.0]}, rounds=10, seconds=1.0)
    store.plan_all([CONFIG], again=["failed"])
    assert not store.claim(key, this_process())
    store.plan_all([CONFIG], again=["finished", "diverged"])
    assert not store.get(key).settled
    for end in ("interrupted", "failed"):
        assert store.claim(key, this_process()) and not store.claim(key, ELSEWHERE)
        assert (store.get(key).status, store.get(key).leased) == ("finished", True)
        if end == "failed":
            assert store.fail(key, "memory", "no room", owner=this_process())
        else:
            assert store.finish(key, end, {"loss": [5.0]}, rounds=3, owner=this_process())
        run = store.get(key)
        assert (run.status, run.final, run.rounds, run.leased) == ("finished", {"loss": 1.0}, 10, False)
        assert run.settled == (end == "failed")
    assert store.get(key).failure_kind == "memory"
    store.plan_all([CONFIG], again=["finished"])
    assert store.claim(key, this_process())
    assert store.finish(key, "diverged", {"loss": [2.0]}, rounds=20, seconds=0.5, owner=this_process())
    run = store.get(key)
    assert (run.status, run.final, run.rounds, run.failure, run.settled) == ("diverged", {"loss": 2.0}, 20, None, True)
    assert run.started is not None and run.ended is not None and run.ended >= run.started
    with pytest.raises(ConfigError, match="'planned' cannot be computed again"):
        store.plan_all([CONFIG], again=["planned"])


def test_unknown_facts_and_kinds_are_refused(store: Store) -> None:
    key = store.plan(CONFIG)
    with pytest.raises(UnknownOption, match="'round': did you mean 'rounds'"):
        store.finish(key, "finished", {}, round=3)
    with pytest.raises(ConfigError, match=r"kind of failure must be .*, got 'memori'"):
        store.fail(key, "memori", "no room")


def test_a_lease_protects_and_runs_out(store: Store) -> None:
    key = store.plan(CONFIG)
    assert store.claim(key, ELSEWHERE, lease_seconds=1000)
    assert not store.claim(key, this_process())
    assert store.heartbeat(key, ELSEWHERE, lease_seconds=1e-9)
    assert store.claim(key, this_process())
    assert not store.heartbeat(key, ELSEWHERE)
    assert not store.finish(key, "finished", {"loss": [9.0]}, owner=ELSEWHERE)
    assert not store.fail(key, "bug", "late", owner=ELSEWHERE)
    assert store.get(key).owner == this_process()


def test_a_heartbeat_makes_the_lease_longer(store: Store) -> None:
    key = store.plan(CONFIG)
    store.claim(key, ELSEWHERE, lease_seconds=10)
    before = store.get(key)
    assert store.heartbeat(key, ELSEWHERE, lease_seconds=1000)
    after = store.get(key)
    assert before.lease_until is not None and after.lease_until is not None
    assert after.lease_until > before.lease_until + 900
    assert before.heartbeat is not None and after.heartbeat is not None
    assert after.heartbeat >= before.heartbeat


@given(st.lists(st.integers(0, 2**64 - 1), max_size=50))
@settings(max_examples=40, deadline=None)
def test_series_come_back_bit_for_bit(tmp_path_factory: pytest.TempPathFactory, bits: list[int]) -> None:
    sent = np.array(bits, np.uint64).view(np.float64)
    with open_store(tmp_path_factory.mktemp("bits") / "runs.db") as store:
        key = store.plan({})
        store.finish(key, "finished", {"any bits": sent})
        assert store.series(key)["any bits"].tobytes() == sent.tobytes()
        if bits:
            np.testing.assert_equal(store.get(key).final["any bits"], sent[-1])


def test_series_of_other_types_are_exact_too(store: Store) -> None:
    key = store.plan({})
    store.finish(key, "finished", {"single": np.array([0.1], np.float32), "count": [2**53], "none": []})
    series = store.series(key)
    assert (series["single"][0], series["count"][0], len(series["none"])) == (np.float32(0.1), 2**53, 0)
    assert store.get(key).final.keys() == {"single", "count"}


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("ended", {}), "got 'ended'"),
        (("finished", {"loss": [[1.0]]}), "metric 'loss'"),
        (("finished", {"loss": ["a"]}), "metric 'loss'"),
        (("finished", {"loss": np.ones(2, complex)}), "metric 'loss'"),
    ],
)
def test_what_is_not_a_result_is_refused_and_nothing_stored(
    store: Store, arguments: tuple[str, dict[str, Any]], part: str
) -> None:
    key = store.plan(CONFIG)
    with pytest.raises(ConfigError, match=part):
        store.finish(key, *arguments)
    assert store.get(key).status == "planned"


@pytest.mark.parametrize("edges", [[[1, 2, 3]], [[0.5, 1, 2, 3]], [[1, 2, 3, 4], [1, 2, 5, 6]]])
def test_edges_of_the_wrong_form_are_refused(store: Store, edges: list[list[float]]) -> None:
    key = store.plan(CONFIG)
    with pytest.raises(ConfigError, match="edges must"):
        store.finish(key, "finished", {}, edges=edges)
    assert store.get(key).status == "planned"


def test_a_key_may_be_shortened_while_unique(store: Store) -> None:
    keys = store.plan_all({"seed": seed} for seed in range(300))
    assert store.get(keys[0][:20]).key == keys[0]
    assert store.claim(keys[0][:20], this_process())
    assert store.get(keys[0]).status == "running"
    with pytest.raises(StoreError, match="several"):
        store.get(keys[0][:1])
    absent = next(letter * 64 for letter in "0123456789abcdef" if letter * 64 not in keys)
    with pytest.raises(StoreError, match="no run has the key"):
        store.get(absent)
    for wrong in ("", "XYZ", keys[0].upper() + "_", 7):
        with pytest.raises(StoreError, match="hexadecimal"):
            store.get(cast(str, wrong))


def test_filters(store: Store) -> None:
    store.plan_all(grid())
    store.finish(config_key(grid()[1]), "finished", {})
    assert [run.config for run in store.list()] == grid()
    assert [run.config["seed"] for run in store.list({"rule.name": "IOS"})] == [0, 1, 2, 3]
    assert [run.config["rule"]["name"] for run in store.list({"seed": 2.0})] == ["IOS", "Krum", "FABA"]
    assert [run.config for run in store.list({"rule.name": "Krum", "seed": 3})] == [grid()[7]]
    assert [run.config for run in store.list(status="finished")] == [grid()[1]]
    assert [run.config for run in store.list({"rule.name": "FABA"}, limit=2)] == grid()[10:]
    assert store.list({"seed": "2"}) == store.list({"seed": True}) == store.list(limit=0) == []


def test_filters_by_values_that_are_no_numbers(store: Store) -> None:
    values: list[Any] = ["exact", 1, None, True, [1, 2], {}, list(range(99))]
    configs = [{"f": value} for value in values]
    store.plan_all(configs)
    for config in configs:
        assert [run.config for run in store.list(config)] == [config]


def test_a_filter_by_an_unknown_field_names_the_nearest(store: Store) -> None:
    assert store.list({"rule.nam": "IOS"}) == []
    store.plan_all(grid())
    with pytest.raises(UnknownName, match=r"'rule.nam': did you mean 'rule.name'"):
        store.list({"rule.nam": "IOS"})
    with pytest.raises(ConfigError, match="'done'"):
        store.list(status="done")
    with pytest.raises(ConfigError, match="limit must be a whole number of at least 0, got -1"):
        store.list(limit=-1)


def test_delete_leaves_nothing_of_a_run_and_all_of_the_others(store: Store) -> None:
    keys = store.plan_all(grid())
    for key in keys:
        store.finish(key, "finished", {"loss": [1.0]}, edges=[[0, 1, 2, 3]])
    store.delete(keys[0], keys[5][:16])
    rest = [key for key in keys if key not in (keys[0], keys[5])]
    assert [run.key for run in store.list()] == rest
    assert [run.key for run in store.list({"rule.name": "IOS"})] == rest[:3]
    assert all(len(store.edges(key)) == 1 and len(store.series(key)) == 1 for key in rest)
    with sqlite3.connect(store.path) as connection:
        counts = [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("series", "edges")]
        assert counts == [10, 10]
        assert connection.execute("SELECT count(*) FROM run_fields").fetchone()[0] == 20
    assert store.plan(grid()[0]) == keys[0]
    assert store.get(keys[0]).status == "planned"


def test_delete_is_all_or_nothing_and_spares_running_runs(store: Store) -> None:
    first, second = store.plan_all(grid()[:2])
    store.claim(second, this_process())
    with pytest.raises(StoreError, match=f"computed by process {os.getpid()}"):
        store.delete(first, second)
    assert len(store.list()) == 2


def test_claiming_needs_a_planned_run_and_a_positive_lease(store: Store) -> None:
    with pytest.raises(StoreError, match="plan it"):
        store.claim("0" * 64, this_process())
    with pytest.raises(ConfigError, match="lease_seconds = 0"):
        store.claim(store.plan(CONFIG), this_process(), 0)


def test_threads_share_a_store(store: Store) -> None:
    keys = store.plan_all({"seed": seed} for seed in range(40))

    def work(_: int) -> list[str]:
        return [key for key in keys if store.claim(key, this_process())]

    with ThreadPoolExecutor(4) as pool:
        claimed = [key for share in pool.map(work, range(4)) for key in share]
    assert sorted(claimed) == sorted(keys)


def test_a_pickled_store_opens_the_same_file(store: Store) -> None:
    key = store.plan(CONFIG)
    with pickle.loads(pickle.dumps(store)) as again:
        assert again.get(key).config == CONFIG


def test_provenance_says_what_ran_where() -> None:
    facts = provenance()
    assert facts["packages"]["numpy"] == np.__version__
    assert facts["host"] and facts["platform"] and facts["version"]
    facts["packages"].clear()
    assert provenance()["packages"]
