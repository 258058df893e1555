"""Stores in any state: old, new, damaged, foreign, read-only, on a full disk."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzmesh.errors import StoreError
from byzmesh.store import config_key, open_store, this_process
from byzmesh.store.keys import canonical
from byzmesh.store.schema import APPLICATION, VERSION
from tests.store import workers

OLD = {"rule": {"name": "IOS"}, "seed": 1}
STUCK = {"rule": {"name": "Krum"}, "seed": 1}


def message(path: Path, *, readonly: bool = False) -> str:
    with pytest.raises(StoreError) as caught:
        open_store(path, readonly=readonly).list()
    text = str(caught.value)
    assert str(path) in text and "\n" not in text
    return text


def run_worker(*arguments: object) -> list[str]:
    command = [sys.executable, workers.__file__, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def version_1(path: Path) -> None:
    """A store as version 1 wrote it."""
    with sqlite3.connect(path) as connection:
        connection.executescript(
            f"""
            CREATE TABLE runs (key TEXT PRIMARY KEY, status TEXT NOT NULL, config TEXT NOT NULL, failure TEXT,
                               started REAL, ended REAL);
            CREATE TABLE points (key TEXT, metric TEXT, position INTEGER, value REAL,
                                 PRIMARY KEY (key, metric, position));
            PRAGMA application_id = {APPLICATION};
            PRAGMA user_version = 1;
            """
        )
        connection.execute(
            "INSERT INTO runs VALUES (?, 'finished', ?, NULL, 10.0, 20.0)", (config_key(OLD), canonical(OLD))
        )
        connection.execute(
            "INSERT INTO runs VALUES (?, 'running', ?, NULL, 15.0, NULL)", (config_key(STUCK), canonical(STUCK))
        )
        points = [("loss", 1, float("nan")), ("loss", 0, 0.1 + 0.2), ("accuracy", 0, 0.5), ("accuracy", 1, 0.75)]
        connection.executemany(
            "INSERT INTO points VALUES (?, ?, ?, ?)", [(config_key(OLD), *point) for point in points]
        )


def test_migration_from_version_1(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    version_1(path)
    assert "schema 1" in message(path, readonly=True)
    for _ in range(2):
        with open_store(path) as store:
            assert [(run.key, run.status) for run in store.list()] == [
                (config_key(OLD), "finished"),
                (config_key(STUCK), "interrupted"),
            ]
            old = store.list({"rule.name": "IOS", "seed": 1})[0]
            assert (old.config, old.started, old.ended) == (OLD, 10.0, 20.0)
            np.testing.assert_equal(old.final, {"accuracy": 0.75, "loss": np.nan})
            np.testing.assert_array_equal(store.series(old.key)["loss"], [0.1 + 0.2, np.nan])
            np.testing.assert_array_equal(store.series(old.key)["accuracy"], [0.5, 0.75])
    with open_store(path) as store:
        assert store.claim(config_key(STUCK), this_process())
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables == {"runs", "series", "edges", "fields", "run_fields"}


LATER = ("failure_kind", "asked", "again", "code")
"""Columns that stores of version 2 did not have at first."""


def test_a_store_without_later_columns_is_read_as_it_is_and_completed_when_written(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    failures = [
        "f = 1 is infeasible for rule Krum at worker 8",
        "the process that computed this run died",
        "no such file",
    ]
    with open_store(path) as store:
        for seed, text in enumerate(failures):
            store.fail(store.plan({"seed": seed}), "bug", text)
        done = store.plan(OLD)
        store.finish(done, "finished", {"loss": [1.0]})
        store._connection.execute("PRAGMA journal_mode = DELETE")
    with sqlite3.connect(path) as connection:
        for name in LATER:
            connection.execute(f"ALTER TABLE runs DROP COLUMN {name}")
    before = path.read_bytes()
    for readonly in (True, False):
        with open_store(path, readonly=readonly) as store:
            kinds = ["infeasible", "killed", "config", None]
            assert [(run.failure_kind, run.code) for run in store.list()] == [(kind, {}) for kind in kinds]
            assert [run.key for run in store.list({"rule.name": "IOS"}, current=True)] == [done]
            assert store.get(done[:9]).settled and store.compare([done]).final == {"loss": (1.0,)}
        assert (path.read_bytes() == before) == readonly
    with open_store(path) as store:
        assert store.plan(OLD) == done


def test_a_reader_sees_what_a_writer_completes_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with open_store(path) as store:
        key = store.plan(OLD)
    with sqlite3.connect(path) as connection:
        for name in LATER:
            connection.execute(f"ALTER TABLE runs DROP COLUMN {name}")
    with open_store(path, readonly=True) as reader:
        with open_store(path) as store:
            store.fail(key, "data", "no such file")
        assert reader.get(key).failure_kind == "data"


def test_a_failed_migration_leaves_the_old_store(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    version_1(path)
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE points")
    assert "points" in message(path)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (2,)


def test_a_newer_store_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    open_store(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    for readonly in (False, True):
        assert "pip install --upgrade byzmesh" in message(path, readonly=readonly)


def test_a_file_that_is_no_store_is_refused_and_kept(tmp_path: Path) -> None:
    text = tmp_path / "notes.db"
    text.write_text("these are my notes " * 100)
    assert "not a byzmesh store" in message(text)
    assert text.read_text() == "these are my notes " * 100
    foreign = tmp_path / "music.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    assert "another program" in message(foreign)
    assert "is a directory" in message(tmp_path)
    assert "there is no store" in message(tmp_path / "none.db", readonly=True)
    assert "does not exist" in message(tmp_path / "none" / "runs.db")


def test_a_damaged_store_says_so(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with open_store(path) as store:
        for key in store.plan_all({"seed": seed} for seed in range(500)):
            store.finish(key, "finished", {"loss": np.arange(50.0)})
    data = bytearray(path.read_bytes())
    page = 4096
    data[page:] = b"\x55" * (len(data) - page)
    path.write_bytes(bytes(data))
    assert "damaged" in message(path)


def test_an_unfinished_transaction_leaves_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with open_store(path) as store:
        configs: list[dict[str, Any]] = [{"seed": 1}, {"seed": float("nan")}]
        with pytest.raises(ValueError, match="seed"):
            store.plan_all(configs)
        assert store.list() == []


def test_a_closed_or_readonly_store_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with open_store(path) as store:
        store.plan(OLD)
    with pytest.raises(StoreError, match="closed"):
        store.list()
    with open_store(path, readonly=True) as reader:
        assert len(reader.list()) == 1
        with pytest.raises(StoreError, match="readonly=True"):
            reader.plan(STUCK)


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that another user can reach (pytest's own are private)."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.parametrize("readonly", ["file", "folder"])
def test_without_permission_to_write(public_folder: Path, readonly: str) -> None:
    path = public_folder / "runs.db"
    with open_store(path) as store:
        store.plan(OLD)
    path.chmod(0o444 if readonly == "file" else 0o666)
    public_folder.chmod(0o777 if readonly == "file" else 0o555)
    (line,) = run_worker("open", path, "write")
    assert line.startswith(f"StoreError store {path} cannot be written")
    assert "readonly=True" in line
    assert run_worker("open", path, "read") == ["opened 1"]
    path.chmod(0o000)
    (line,) = run_worker("open", path, "read")
    assert line.startswith(f"StoreError store {path} cannot be read")


def test_a_log_that_cannot_be_read_is_not_passed_over(public_folder: Path, tmp_path: Path) -> None:
    path = public_folder / "runs.db"
    open_store(tmp_path / "runs.db").close()
    with open_store(tmp_path / "runs.db") as store:
        store.plan(OLD)
        for name in ("runs.db", "runs.db-wal"):  # as a copy of a store in use may be: the run is in the log
            shutil.copyfile(tmp_path / name, public_folder / name)
    public_folder.chmod(0o555)
    (line,) = run_worker("open", path, "read")
    assert line.startswith(f"StoreError store {path}")


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[int]:
    """A disk of 512 kB; where mounting is not allowed, the folder itself and a limit on the size of a file instead."""
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    try:
        yield 0 if done.returncode == 0 else 600_000
    finally:
        if done.returncode == 0:
            subprocess.run(["umount", str(folder)], check=True)


@contextlib.contextmanager
def small_files(folder: Path) -> Iterator[int]:
    yield 600_000


@pytest.mark.parametrize("limited", [small_disk, small_files])
def test_a_full_disk_loses_nothing(tmp_path: Path, limited: Callable[[Path], AbstractContextManager[int]]) -> None:
    with limited(tmp_path) as largest_file:
        path = tmp_path / "runs.db"
        *lines, last = run_worker("fill", path, largest_file)
        assert last.startswith(f"StoreError store {path}")
        assert "full" in last and "free some space" in last
        stored = [line.split() for line in lines]
        assert len(stored) > 3 and all(done == "True" for *_, done in stored)
        # The disk is still full: copy the store to read it, as a user would to save it.
        with tempfile.TemporaryDirectory() as roomy:
            for part in tmp_path.iterdir():
                shutil.copy(part, roomy)
            with open_store(Path(roomy) / path.name) as store:
                assert [run.key for run in store.list(status="finished")] == [key for key, *_ in stored]
                for key, number, _ in stored:
                    expected = workers.values("filler", int(number), 2000)
                    assert store.series(key)["loss"].tobytes() == expected.tobytes()
                # With room again, the run that did not fit is done as if nothing had happened.
                key = store.plan({"writer": "filler", "number": len(stored)})
                assert store.claim(key, this_process())
                assert store.finish(key, "finished", {"loss": [1.0]}, owner=this_process())
                assert store._connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_forked_process_must_open_its_own(tmp_path: Path) -> None:
    with open_store(tmp_path / "runs.db") as store:
        store.plan(OLD)
        child = os.fork()
        if child == 0:
            try:
                store.list()
            except StoreError:
                os._exit(42)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
