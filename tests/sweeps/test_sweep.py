"""Sweeps on this machine: results, failures, interruptions, killed workers, concurrent sweeps."""

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from byzmesh.config.grid import read_grid
from byzmesh.errors import ConfigError
from byzmesh.rules.base import rules
from byzmesh.store import Owner, open_store, this_process
from byzmesh.sweeps.dask import Tls
from byzmesh.sweeps.queue import Backlog
from byzmesh.sweeps.run import compute
from byzmesh.sweeps.sweep import sweep
from tests.conftest import GridFile
from tests.processes import PATIENCE, alive, command, configs, descendants, results, start, statuses, wait_for


def test_a_sweep_computes_what_is_missing_and_nothing_twice(grid_file: GridFile, tmp_path: Path) -> None:
    written = configs(grid_file(axes={"rule": ["ios", "cc", "coomed"], "seed": [0, 1]}))
    store = tmp_path / "runs.db"
    shown = []
    first = sweep(written[:4], store, workers=2, show=lambda backlog, run: shown.append(run and run.status))
    assert set(first.statuses.values()) == {"finished"}
    assert (first.computed, first.interrupted, first.failed) == (4, False, [])
    assert shown.count("finished") == 4
    before = results(store)
    again = sweep(written, store, workers=2)
    assert (len(again.statuses), again.computed) == (6, 2)
    after = results(store)
    assert before.items() <= after.items()
    for config, (_, _, series, edges) in zip(written, after.values(), strict=True):
        alone = compute(config)
        assert series == {name: values.tobytes() for name, values in alone.metrics.items()}
        assert edges == ([] if alone.edges is None else sorted(alone.edges.counts.tolist()))
    assert sweep(written, store, workers=2).computed == 0
    with open_store(store, readonly=True) as opened:
        assert all(run.provenance["version"] and (run.seconds or 0) > 0 for run in opened.list())
    assert not (tmp_path / "runs.db.checkpoints").exists()


def test_failures_and_divergence_do_not_stop_the_others(grid_file: GridFile, tmp_path: Path) -> None:
    # Krum cannot bear this f on this graph, and a step this large blows the models up.
    cases = {
        "good": {"rule": "ios"},
        "infeasible": {"rule": "krum", "f": 9},
        "diverging": {"rule": "mean", "step": 1e30, "attack": "sign-flipping"},
    }
    written = configs(grid_file(cases=cases, axes={"seed": [0, 1]}))
    store = tmp_path / "runs.db"
    told = sweep(written, store, workers=2)
    assert list(told.statuses.values()) == ["finished"] * 2 + ["failed"] * 2 + ["diverged"] * 2
    assert told.failed == list(told.statuses)[2:4]
    with open_store(store, readonly=True) as opened:
        refused = opened.get(told.failed[0])
        assert "f = 9 is infeasible for rule Krum at worker 0" in str(refused.failure)
        assert refused.failure_kind == "infeasible"
    assert sweep(written, store, workers=2).computed == 0
    again = sweep(written, store, workers=2, retry_failed=True)
    assert (again.computed, list(again.statuses.values())) == (2, list(told.statuses.values()))


def test_recomputing_gives_the_same_and_replaces_only_at_the_end(grid_file: GridFile, tmp_path: Path) -> None:
    written = configs(grid_file(axes={"seed": [0, 1]}))
    store = tmp_path / "runs.db"
    sweep(written, store, workers=2)
    with open_store(store) as opened:
        first, second = opened.list()
        # a result that the code of today would not give
        opened.plan_all([first.config], [first.code], again=["finished"])
        opened.finish(first.key, "diverged", {"loss": [9.0]})
        opened.plan_all(written, [first.code, second.code], again=["finished", "diverged"])
        opened.claim(first.key, this_process())
        assert opened.get(first.key).status == "diverged" and opened.series(first.key)["loss"] == [9.0]
        opened.finish(first.key, "interrupted", {}, owner=this_process())
    # what was asked for stays to be done, by any sweep
    assert sweep(written, store, workers=2).computed == 2
    assert sweep(written, store, workers=2).computed == 0
    again = sweep(written, store, workers=2, recompute=True)
    assert (again.computed, list(again.statuses.values())) == (2, ["finished", "finished"])
    with open_store(store, readonly=True) as opened:
        for config, before in zip(written, (first, second), strict=True):
            after = opened.get(before.key)
            assert after.ended is not None and before.ended is not None and after.ended > before.ended
            assert after.status == "finished"
            assert opened.series(after.key)["loss"].tobytes() == compute(config).metrics["loss"].tobytes()


def test_workers_have_the_environment_of_their_sweep(
    grid_file: GridFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that they are forked from is older."""
    (tmp_path / "told.py").write_text(
        "import os\nimport byzmesh as bm\n\n"
        "@bm.register_rule('told')\ndef told():\n    'What the environment says.'\n"
        "    return bm.rule(os.environ['RULE_OF_THIS_TEST'])\n"
    )
    monkeypatch.setenv("RULE_OF_THIS_TEST", "ios")
    with rules.temporary():
        written = configs(grid_file(rounds=5, base={"rule": "told"}, plugins=["told.py"]))
        told = sweep(written, tmp_path / "runs.db", workers=1)
    assert list(told.statuses.values()) == ["finished"]


def test_bad_arguments(tmp_path: Path) -> None:
    for arguments, words in (
        ({"workers": -1}, "workers must be a whole number of at least 0, got -1"),
        ({"checkpoint_seconds": 0}, "checkpoint_seconds must be a positive number, got 0"),
        ({"workers": 2, "dask": "tcp://127.0.0.1:1"}, "give one of them"),
        ({"tls": Tls("a", "b", "c")}, "give the address"),
    ):
        with pytest.raises(ConfigError, match=words):
            sweep([], tmp_path / "runs.db", **arguments)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_sweep_says_how_to_continue_and_continues(grid_file: GridFile, tmp_path: Path, number: int) -> None:
    grid = grid_file(rounds=4000, axes={"rule": ["ios", "cc"]})
    store = tmp_path / "runs.db"
    process = start("sweep", grid, "--store", store, "--workers", 2, "--checkpoint-seconds", 1000)
    wait_for(lambda: store.exists() and "running" in statuses(store), process)
    workers = descendants(process.pid)
    # As a terminal does it: Ctrl-C goes to the workers too. A batch system tells the first process only.
    os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "the same command continues" in said
    wait_for(lambda: not any(alive(pid) for pid in workers))
    found = statuses(store)
    assert "interrupted" in found and "running" not in found
    # The interval was too long for a checkpoint: those there are were written because of the stop.
    assert len(os.listdir(tmp_path / "runs.db.checkpoints")) == found.count("interrupted")
    again = command("sweep", grid, "--store", store, "--workers", 2, "--json")
    assert again.returncode == 0, again.stderr
    assert [run["status"] for run in json.loads(again.stdout)] == ["finished"] * 2
    assert not (tmp_path / "runs.db.checkpoints").exists()
    for config, (_, rounds, series, _) in zip(configs(grid), results(store).values(), strict=True):
        assert rounds == 4000
        assert series == {name: values.tobytes() for name, values in compute(config).metrics.items()}


def test_workers_of_a_killed_sweep_stop_after_a_checkpoint(grid_file: GridFile, tmp_path: Path) -> None:
    grid = grid_file(rounds=200_000, axes={"seed": [0, 1]})
    store = tmp_path / "runs.db"
    process = start("sweep", grid, "--store", store, "--workers", 2, "--checkpoint-seconds", 1000)
    wait_for(lambda: store.exists() and statuses(store) == ["running"] * 2, process)
    workers = descendants(process.pid)
    process.kill()
    process.communicate()
    wait_for(lambda: not any(alive(pid) for pid in workers))
    assert statuses(store) == ["interrupted"] * 2
    assert len(os.listdir(tmp_path / "runs.db.checkpoints")) == 2


def test_a_killed_worker_is_replaced_and_a_run_that_always_dies_fails(grid_file: GridFile, tmp_path: Path) -> None:
    grid = grid_file(rounds=3000, axes={"rule": ["ios", "cc"]})
    store = tmp_path / "runs.db"
    process = start("sweep", grid, "--store", store, "--workers", 1, "--checkpoint-seconds", 0.05)
    with open_store(store) as opened:

        def owner() -> int | None:
            running = opened.list(status="running")
            holder = running[0].owner if running and running[0].leased else None
            return None if holder is None else holder.pid

        def replaced(victim: int | None) -> bool:
            return owner() != victim

        for _ in range(3):
            wait_for(owner, process)
            victim = owner()
            assert victim is not None
            os.kill(victim, signal.SIGKILL)
            wait_for(partial(replaced, victim), process)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 1
        first, second = opened.list()
        assert (first.status, second.status) == ("failed", "finished")
        assert "died 3 times (exit code -9)" in str(first.failure)
    again = command("sweep", grid, "--store", store, "--workers", 1, "--retry-failed")
    assert again.returncode == 0, again.stderr
    alone = compute(configs(grid)[0])
    first, _ = results(store).values()
    assert first[2] == {name: values.tobytes() for name, values in alone.metrics.items()}


def test_a_sweep_ends_when_nobody_reads_its_output(grid_file: GridFile, tmp_path: Path) -> None:
    grid = grid_file(rounds=200, axes={"seed": {"from": 0, "to": 5}})
    process = start("sweep", grid, "--store", tmp_path / "runs.db", "--workers", 1)
    assert process.stdout is not None and process.stderr is not None
    assert "finished" in process.stderr.readline()
    workers = descendants(process.pid)
    process.stderr.close()
    process.stdout.close()
    assert process.wait(timeout=PATIENCE) != 0
    wait_for(lambda: not any(alive(pid) for pid in workers))
    assert "running" not in statuses(tmp_path / "runs.db")


def test_two_sweeps_and_a_reader_on_one_store(grid_file: GridFile, tmp_path: Path) -> None:
    grid = grid_file(rounds=1000, axes={"rule": ["ios", "cc"], "seed": {"from": 0, "to": 4}})
    store = tmp_path / "runs.db"
    sweeps = [start("sweep", grid, "--store", store, "--workers", 1, "--json") for _ in range(2)]
    wait_for(store.exists, sweeps[0])
    seen = [0]
    with open_store(store) as reader:

        def ended() -> bool:
            done = reader.list(status="finished")
            assert len(done) >= seen[-1]
            seen.append(len(done))
            for run in done[-2:]:
                assert len(reader.series(run.key)["round"]) == 11
            return all(process.poll() is not None for process in sweeps)

        wait_for(ended)
    told = [process.communicate(timeout=PATIENCE) for process in sweeps]
    assert [process.returncode for process in sweeps] == [0, 0]
    for out, _ in told:
        assert [run["status"] for run in json.loads(out)] == ["finished"] * 10
    computed = [int(err.rsplit("; ", 1)[1].split()[0]) for _, err in told]
    assert len(results(store)) == 10
    assert min(computed) > 0  # both had their share


def test_a_sweep_waits_for_what_others_compute_and_takes_over_what_they_leave(
    grid_file: GridFile, tmp_path: Path
) -> None:
    (cell,) = read_grid(grid_file())
    other = Owner("another-host", 1)
    with open_store(tmp_path / "runs.db") as store:
        key = store.plan(cell.config, cell.code)
        assert store.claim(key, other, 1e6)
        looks: list[int] = []

        def show(backlog: Backlog, run: object) -> None:
            looks.append(len(backlog.elsewhere))
            if looks.count(1) == 5:
                store.finish(key, "interrupted", {}, owner=other)

        assert sweep([cell.config], store.path, workers=1, show=show).statuses == {key: "finished"}
        assert looks.count(1) >= 5
        assert store.get(key).provenance["host"] == this_process().host


def test_a_full_disk_is_one_line_and_loses_nothing(grid_file: GridFile, tmp_path: Path) -> None:
    grid = grid_file(rounds=300, axes={"rule": ["ios", "cc"], "seed": {"from": 0, "to": 5}})
    store = tmp_path / "runs.db"
    with open_store(store) as opened:
        opened.plan_all(*zip(*((cell.config, cell.code) for cell in read_grid(grid)), strict=True))
    size = max(path.stat().st_size for path in tmp_path.glob("runs.db*")) + 30_000

    full = command("sweep", grid, "--store", store, "--workers", 2, file_size=size)
    assert full.returncode == 2
    last = full.stderr.strip().split("\n")[-1]
    assert "could not be written" in last and "is the disk full?" in last
    assert "Traceback" not in full.stderr
    before = {key: held for key, held in results(store).items() if held[0] == "finished"}
    again = command("sweep", grid, "--store", store, "--workers", 2)
    assert again.returncode == 0, again.stderr
    assert statuses(store) == ["finished"] * 12
    assert before.items() <= results(store).items()


def test_stores_that_cannot_be_used_are_refused_before_anything_is_computed(
    grid_file: GridFile, tmp_path: Path
) -> None:
    grid = grid_file()
    store = tmp_path / "broken.db"
    store.write_bytes(b"these are not the runs you are looking for" * 100)
    told = command("sweep", grid, "--store", store)
    assert (told.returncode, told.stderr.count("\n")) == (2, 1)
    assert "is not a byzmesh store" in told.stderr
    told = command("sweep", grid, "--store", tmp_path / "none" / "runs.db")
    assert told.returncode == 2 and "create" in told.stderr


def test_a_script_without_the_main_guard_gets_a_clear_error(grid_file: GridFile, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from byzmesh.config.grid import read_grid\n"
        "from byzmesh.sweeps.sweep import sweep\n"
        f"sweep([p.config for p in read_grid({str(grid_file())!r})], {str(tmp_path / 'runs.db')!r}, workers=1)\n"
    )
    told = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert told.returncode != 0
    assert "__name__" in told.stderr
