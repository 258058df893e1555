"""Several real processes on one store: writers, a reader, claims, kill -9."""

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np

from byzmesh.store import Owner, open_store, this_process
from byzmesh.store.owners import is_dead
from tests.processes import output
from tests.store import workers


def start(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, workers.__file__, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def whole(path: Path) -> bool:
    with sqlite3.connect(path) as connection:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_two_writers_and_a_reader_at_once(tmp_path: Path) -> None:
    path, count = tmp_path / "runs.db", 60
    writers = {name: start("write", path, name, count) for name in ("first", "second")}
    for process in writers.values():
        output(process).readline()
    seen = 0
    with open_store(path, readonly=True) as reader:
        while any(process.poll() is None for process in writers.values()):
            finished = reader.list(status="finished")
            assert len(finished) >= seen
            seen = len(finished)
            for run in finished[-3:]:
                expected = workers.values(run.config["writer"], run.config["number"])
                assert reader.series(run.key)["loss"].tobytes() == expected.tobytes()
        assert [process.wait() for process in writers.values()] == [0, 0]
        for name in writers:
            assert [run.config["number"] for run in reader.list({"writer": name}, "finished")] == list(range(count))
    assert seen > 0
    assert whole(path)


def test_each_run_is_claimed_exactly_once(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with open_store(path) as store:
        keys = store.plan_all({"seed": seed} for seed in range(80))
    racers = [start("claim", path, seed) for seed in range(4)]
    claimed = []
    for racer in racers:
        # Read until each one says that it tried them all, and only then let any of them end.
        claimed.append([line.strip() for line in iter(output(racer).readline, "done\n")])
    for racer in racers:
        racer.communicate()
    assert sorted(key for share in claimed for key in share) == sorted(keys)


def test_a_killed_owner_is_replaced_at_once(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with open_store(path) as store:
        key = store.plan({"seed": 1})
        owner = start("claim", path, 0)
        assert output(owner).readline().strip() == key
        former = store.get(key).owner
        assert former is not None and former.pid == owner.pid
        assert not store.claim(key, this_process())
        owner.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, owner.pid, os.WEXITED | os.WNOWAIT)  # dead, but not yet reaped
        assert store.claim(key, this_process())
        owner.communicate()
        assert not store.heartbeat(key, former)


def test_an_owner_is_dead_only_if_it_certainly_is() -> None:
    me = this_process()
    assert me.process
    assert is_dead(Owner(me.host, me.pid, me.process + "1"))  # the number now belongs to a later process
    assert not is_dead(Owner(me.host, me.pid, "another-boot/" + me.process.partition("/")[2] + "1"))
    assert not is_dead(Owner("another-host", 2**22 + 1, me.process))


def test_kill_9_loses_nothing_that_was_committed(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    committed: dict[str, int] = {}
    draw = np.random.default_rng(0)
    for _ in range(6):
        writer = start("write", path, "victim", 10**6)
        for _ in range(int(draw.integers(1, 25))):
            output(writer).readline()
        writer.send_signal(signal.SIGKILL)
        rest, _ = writer.communicate()
        with open_store(path) as store:
            finished = {run.key: run.config["number"] for run in store.list(status="finished")}
            for line in rest.splitlines():
                key, number, stored = line.split()
                assert stored == "True"
                committed[key] = int(number)
            assert committed.items() <= finished.items()
            for key, number in finished.items():
                assert store.series(key)["loss"].tobytes() == workers.values("victim", number).tobytes()
            committed = finished
        assert whole(path)
    assert sorted(committed.values()) == list(range(len(committed)))
    assert len(committed) > 20
