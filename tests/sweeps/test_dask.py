"""A real Dask scheduler and real worker processes on loopback."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from byzmesh.errors import ByzmeshError, ConfigError
from byzmesh.store import open_store
from byzmesh.store.records import RunRecord
from byzmesh.sweeps.build import build
from byzmesh.sweeps.dask import Tls
from byzmesh.sweeps.models import kept_rounds, models_file, read_models
from byzmesh.sweeps.queue import Backlog
from byzmesh.sweeps.sweep import sweep
from tests.conftest import GridFile
from tests.processes import alone, command, configs, results, start, statuses, wait_for


class Cluster:
    """A scheduler and workers, each in a process group of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.options = options
        self.processes: list[subprocess.Popen[str]] = []
        self.file = folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        wait_for(self.file.exists, self.scheduler)
        pause = threading.Event()
        while not (text := self.file.read_text()):
            pause.wait(0.02)
        self.address = json.loads(text)["address"]

    def _start(self, kind: str, *options: str) -> subprocess.Popen[str]:
        arguments = [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--scheduler-file", str(self.file)]
        log = (self.folder / f"{kind}{len(self.processes)}.log").open("w")
        process = subprocess.Popen(
            [*arguments, *options, *self.options], stdout=log, stderr=log, text=True, start_new_session=True
        )
        log.close()
        self.processes.append(process)
        return process

    def worker(self) -> subprocess.Popen[str]:
        # Without a nanny: killing the process is the end of the worker.
        place = ("--local-directory", str(self.folder), "--host", "127.0.0.1")
        return self._start("worker", "--nthreads", "1", "--no-nanny", "--no-dashboard", *place)

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    started = Cluster(tmp_path)
    yield started
    started.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One worker, for tests that leave it as it was."""
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    started.worker()
    yield started
    started.close()


SHARE = pytest.mark.xdist_group("cluster")


def test_a_worker_killed_mid_sweep_changes_nothing(cluster: Cluster, grid_file: GridFile, tmp_path: Path) -> None:
    first, _ = cluster.worker(), cluster.worker()
    axes = {"rule": ["ios", "cc", "krum"], "attack": ["gaussian", "alie"], "seed": [0, 1]}
    grid = grid_file(rounds=1500, axes=axes, cases={"fine": {}, "hopeless": {"f": 9}}, exclude=[
        {"case": "hopeless", "rule": ["ios", "cc"]}, {"case": "hopeless", "seed": 1}
    ])  # fmt: skip
    store = tmp_path / "runs.db"
    process = start("sweep", grid, "--store", store, "--dask", cluster.address)
    wait_for(lambda: store.exists() and statuses(store).count("finished") >= 2, process)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    assert len(statuses(store)) == 14 and "running" in statuses(store)
    _, said = process.communicate(timeout=200)
    assert process.returncode == 1, said  # the hopeless ones
    found = results(store)
    written = configs(grid)
    assert len(found) == len(written) == 14
    assert [held[0] for held in found.values()] == ["finished"] * 12 + ["failed"] * 2
    for config, held in list(zip(written, found.values(), strict=True))[:12:5]:
        assert held == alone(config)
    with open_store(store) as opened:
        assert "f = 9 is infeasible" in str(opened.list(status="failed")[0].failure)
    # What was done on the cluster is done: nothing is left for this machine, and nothing was stored twice.
    again = command("sweep", grid, "--store", store, "--workers", 1)
    assert (again.returncode, results(store)) == (1, found)
    assert "0 of them now" in again.stderr


@SHARE
def test_models_come_back_from_the_cluster(shared: Cluster, grid_file: GridFile, tmp_path: Path) -> None:
    (config,) = configs(grid_file(base={"evaluate_every": 25}))
    store = tmp_path / "runs.db"
    (key,) = sweep([config], store, dask=shared.address, keep_models="all").statuses
    assert kept_rounds(store, key) == [0, 25, 50]
    assert read_models(models_file(store, key)).models.tobytes() == build(config).run().models.tobytes()


@SHARE
def test_a_script_that_only_the_client_has_runs_on_the_cluster(shared: Cluster, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import byzmesh as bm\n\n@bm.register_rule('from-afar')\ndef from_afar(own, received, weights, f):\n"
        "    'Its own model.'\n    return own\n"
    )
    grid = {"base": {"problem": "quadratic", "network": {"name": "ring", "n": 5}, "rule": "from-afar", "rounds": 3}}
    (tmp_path / "grid.yaml").write_text(json.dumps({**grid, "plugins": ["mine.py"], "axes": {"seed": [0, 1]}}))
    code = (
        "import os, sys; from byzmesh.config.grid import read_grid; from byzmesh.sweeps.sweep import sweep\n"
        "configs = [point.config for point in read_grid('grid.yaml')]; os.remove('mine.py')\n"
        "print(sweep(configs, 'runs.db', dask=sys.argv[1]).statuses.values())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, shared.address], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and statuses(tmp_path / "runs.db") == ["finished"] * 2, done.stdout + done.stderr


@SHARE
def test_ctrl_c_gives_the_runs_back(shared: Cluster, grid_file: GridFile, tmp_path: Path) -> None:
    grid = grid_file(rounds=1_000_000, axes={"seed": [0, 1]})
    store = tmp_path / "runs.db"
    process = start("sweep", grid, "--store", store, "--dask", shared.address)
    wait_for(lambda: store.exists() and statuses(store) == ["running"] * 2, process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "the same command continues" in said
    assert statuses(store) == ["interrupted"] * 2


def test_a_lost_scheduler_is_reported_and_results_are_kept(
    cluster: Cluster, grid_file: GridFile, tmp_path: Path
) -> None:
    cluster.worker()
    short = configs(grid_file(rounds=20))
    long = configs(grid_file(rounds=1_000_000, axes={"seed": [1]}))
    store = tmp_path / "runs.db"
    ended: list[str] = []

    def show(backlog: Backlog, run: RunRecord | None) -> None:
        if run is not None:
            ended.append(run.key)
            cluster.scheduler.kill()

    with pytest.raises(ByzmeshError, match="the same command computes the rest"):
        sweep([*short, *long], store, dask=cluster.address, show=show)
    assert statuses(store) == ["finished", "interrupted"]
    assert len(ended) == 1


def test_an_address_that_does_not_answer_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("byzmesh.sweeps.dask.CONNECT_SECONDS", 0.5)
    for address in ("tcp://127.0.0.1:9", "nonsense://x"):
        with pytest.raises(ConfigError, match=f"no Dask scheduler answers at {address}"):
            sweep([], tmp_path / "runs.db", dask=address)


def test_tls_files_and_address_go_together(tmp_path: Path) -> None:
    for address, tls in (("tls://127.0.0.1:9", None), ("tcp://127.0.0.1:9", Tls("a", "b", "c"))):
        with pytest.raises(ConfigError, match="give both or neither"):
            sweep([], tmp_path / "runs.db", dask=address, tls=tls)


def certificates(folder: Path) -> Tls:
    """An authority that has signed one certificate for everybody."""

    def openssl(*arguments: object) -> None:
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)

    ca, cert, key = folder / "ca.pem", folder / "all.pem", folder / "all.key"
    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *new_key, "-keyout", folder / "ca.key", "-subj", "/CN=ca", "-days", 2, "-out", ca)
    openssl("req", *new_key, "-keyout", key, "-subj", "/CN=all", "-out", folder / "all.csr")
    authority = ("-CA", ca, "-CAkey", folder / "ca.key", "-CAcreateserial")
    openssl("x509", "-req", "-in", folder / "all.csr", *authority, "-days", 2, "-out", cert)
    return Tls(str(ca), str(cert), str(key))


def test_an_encrypted_cluster(grid_file: GridFile, tmp_path: Path) -> None:
    tls = certificates(tmp_path)
    cluster = Cluster(
        tmp_path, "--protocol", "tls", "--tls-ca-file", tls.ca, "--tls-cert", tls.cert, "--tls-key", tls.key
    )
    try:
        cluster.worker()
        assert cluster.address.startswith("tls://")
        grid, store = grid_file(), tmp_path / "runs.db"
        files = ("--tls-ca", tls.ca, "--tls-cert", tls.cert, "--tls-key", tls.key)
        told = command("sweep", grid, "--store", store, "--dask", cluster.address, *files)
        assert told.returncode == 0, told.stderr
        assert list(results(store).values()) == [alone(config) for config in configs(grid)]
        told = command("sweep", grid, "--store", store, "--dask", cluster.address, *files[:4])
        assert (told.returncode, told.stderr.count("\n")) == (2, 1)
        assert "go together" in told.stderr
    finally:
        cluster.close()
