"""What the live view says of a store and of peers, from made-up runs and files."""

from __future__ import annotations

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.config.schema import resolve
from byzmesh.errors import ConfigError, StoreError
from byzmesh.store import open_store, this_process
from byzmesh.sweeps.checkpoints import checkpoint_folder
from byzmesh.watch.peers import Peers
from byzmesh.watch.stored import MOST_POINTS, StoredRuns, points
from tests.cli.commands import run

JOB: dict[str, Any] = {"problem": "noisy-quadratic", "network": "paper/two-castle", "rounds": 10, "evaluate_every": 5}


def finished(path: Path, **config: Any) -> str:
    """A run with a result, really computed."""
    made = bm.simulate(**JOB, **config)
    with open_store(path) as store:
        key = store.plan(dict(made.config))
        edges = None if made.edges is None else made.edges.counts
        store.finish(key, made.status, made.metrics, edges=edges, rounds=made.rounds)
    return key


def test_a_run_that_is_being_computed_shows_its_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    finished(path, rule="ios", attack="sign-flipping")
    simulation = bm.prepare(**JOB, rule="weimean", attack="ipm")
    with open_store(path) as store:
        key = store.plan(dict(simulation.config))
        assert store.claim(key, this_process())
        store.plan(resolve({**JOB, "rule": "krum", "attack": "ipm"}))
    seen = StoredRuns(path)
    before = seen.snapshot()
    assert before["counts"] == {"finished": 1, "running": 1, "waiting": 1} and before["share"] == pytest.approx(1 / 3)
    records = iter(simulation)
    for _ in range(2):
        next(records)
    checkpoint_folder(path).mkdir()
    simulation.save(checkpoint_folder(path) / key)
    after = seen.snapshot()
    assert after["share"] == pytest.approx((10 + 5) / 30)
    assert [row["rule"] for row in after["rows"]] == ["WeiMean", "Krum", "IOS"], "what runs comes first"
    curve = next(curve for curve in after["curves"]["loss"] if curve["running"])
    assert [at for at, _ in curve["points"]] == [0.0, 5.0] and "WeiMean, IPM, seed 0" in curve["name"]
    (checkpoint_folder(path) / key).write_bytes(b"half a file")
    assert seen.snapshot()["rows"][0]["round"] == 5, "what was read before stays"


def test_trust_and_suspects_are_of_the_chosen_run_or_of_the_latest_that_cut(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    cutting = finished(path, rule="ios", attack="sign-flipping")
    plain = finished(path, rule="weimean", attack="sign-flipping")
    state = StoredRuns(path).snapshot()
    assert "IOS" in state["network"]["title"] and state["network"]["liars"] == [7, 9]
    assert {round(trust, 3) for _, _, trust in state["network"]["links"] if trust is not None} != {1.0}
    edges = bm.simulate(**JOB, rule="ios", attack="sign-flipping").edges
    assert edges is not None
    kept = {(int(s), int(r)): 1 - cut / came for s, r, cut, came in edges.counts.tolist()}
    for a, b, trust in state["network"]["links"]:
        ways = [kept[way] for way in ((a, b), (b, a)) if way in kept]
        assert trust == (pytest.approx(min(ways), abs=1e-3) if ways else None)
    assert state["suspects"]["verdict"] == "cannot tell", "ten rounds are too few"
    assert "of 120 named an honest worker" in state["suspects"]["confidence"]
    assert "WeiMean" in StoredRuns(path).snapshot(plain)["network"]["title"]
    assert "IOS" in StoredRuns(path).snapshot(cutting[:8])["network"]["title"]


def test_a_failed_run_says_why_and_values_that_are_not_finite_are_gaps(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with open_store(path) as store:
        key = store.plan(resolve({**JOB, "rule": "krum", "attack": "ipm"}))
        store.fail(key, "bug", "Traceback\n  ...\nValueError: it broke")
        other = store.plan(resolve({**JOB, "rule": "krum", "attack": "alie"}))
        store.finish(other, "diverged", {"round": [0.0, 1.0], "loss": [1.0, float("inf")]})
    state = StoredRuns(path).snapshot()
    assert [row.get("why") for row in state["rows"] if row["status"] == "failed"] == ["ValueError: it broke"]
    assert state["curves"]["loss"][0]["points"] == [[0.0, 1.0], [1.0, None]]
    assert state["network"] is None and state["suspects"] is None
    json.dumps(state, allow_nan=False)


def test_long_curves_are_thinned_and_keep_their_end() -> None:
    values = np.arange(10_001.0)
    thin = points({"round": values, "loss": values}, "loss")
    assert len(thin) <= MOST_POINTS + 2 and thin[0] == [0.0, 0.0] and thin[-1] == [10_000.0, 10_000.0]


def test_a_store_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"none\.db"):
        StoredRuns(tmp_path / "none.db")


@pytest.fixture
def network(tmp_path: Path) -> Path:
    """A network file of four peers; three of them have written something."""
    config = "network: {name: complete, n: 4}\nproblem: noisy-quadratic\nrule: IOS\nf: 1\nrounds: 100\n"
    (tmp_path / "job.yaml").write_text(config)
    run("keygen", tmp_path / "keys", "--peers", 4)
    places = ("--host-map", "127.0.0.1:7000", "--keys", tmp_path / "keys", "--out", tmp_path / "network.yaml")
    run("peers", "plan", tmp_path / "job.yaml", *places)
    for peer in range(3):
        folder = tmp_path / f"state{peer}"
        folder.mkdir()
        edges = [[other, peer, 99 if other == 3 else 1, 100] for other in range(4) if other != peer]
        status = {"round": 50, "loss": 0.5, "silent": 1, "refused": 2, "suspects": [3], "edges": edges}
        (folder / f"peer{peer}.status.json").write_text(json.dumps(status))
        lines = [{"round": 0, "loss": 2.0}, {"round": 50, "loss": 0.5}]
        (folder / f"peer{peer}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path / "network.yaml"


def test_peers_by_their_files(network: Path) -> None:
    written = (network.parent / "state0" / "peer0.status.json").stat().st_mtime
    state = Peers(network, clock=lambda: written + 200.0).snapshot()
    assert [row["round"] for row in state["rows"]] == [50, 50, 50, 0]
    assert state["rows"][0]["status"] == "seen 3 min ago" and state["rows"][3]["status"] == "no state yet"
    assert state["share"] == pytest.approx(3 * 0.5 / 4)
    assert state["suspects"]["verdict"] == "named" and state["suspects"]["rows"][0] == {
        "worker": "3", "rate": 0.99, "named": True, "lies": None}  # fmt: skip
    assert state["network"]["liars"] == [], "nobody knows who lies"
    trust = {(a, b): kept for a, b, kept in state["network"]["links"]}
    assert trust[0, 3] == pytest.approx(0.01) and trust[0, 1] == pytest.approx(0.99)
    assert state["curves"]["loss"][0] == {"name": "peer 0", "running": True, "points": [[0.0, 2.0], [50.0, 0.5]]}
    json.dumps(state, allow_nan=False)


def test_files_that_are_being_written(network: Path) -> None:
    folder = network.parent / "state0"
    (folder / "peer0.status.json").write_text('{"round": 5')
    with open(folder / "peer0.jsonl", "a") as file:
        file.write('{"round": 100, "lo')
    state = Peers(network).snapshot()
    assert state["rows"][0]["status"] == "no state yet"
    assert state["curves"]["loss"][0]["points"] == [[0.0, 2.0], [50.0, 0.5]]
    os.rename(folder, network.parent / "elsewhere")
    assert len(Peers(network, [network.parent / "elsewhere"]).snapshot()["rows"]) == 4
    with pytest.raises(ConfigError, match="is no folder"):
        Peers(network, [folder])


def test_health_is_the_peers_own_word(network: Path) -> None:
    """Peer 0 is well, peer 1 says why not, peer 2 does not answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            well = int(self.connection.getsockname()[1]) == first
            self.send_response(200 if well else 503)
            self.end_headers()
            self.wfile.write(b"ok\n" if well else b"no round ended lately\n")

        def log_message(self, format: str, *args: Any) -> None:
            return

    servers: list[ThreadingHTTPServer] = []
    for _ in range(50):  # two ports in a row, with a free one after them
        servers = [ThreadingHTTPServer(("127.0.0.1", 0), Handler)]
        first = int(servers[0].server_address[1])
        try:
            servers += [ThreadingHTTPServer(("127.0.0.1", first + 1), Handler)]
            ThreadingHTTPServer(("127.0.0.1", first + 2), Handler).server_close()
            break
        except OSError:
            for server in servers:
                server.server_close()
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        state = Peers(network, metrics=first).snapshot()
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()
    silent = [f"no answer at port {first + 2}", f"no answer at port {first + 3}"]
    assert [row["status"] for row in state["rows"]] == ["ok", "no round ended lately", *silent]
    assert state["counts"] == {"well": 1, "other": 3}


def test_a_peer_that_trained_to_the_end_is_well(network: Path) -> None:
    (network.parent / "state1" / "peer1.status.json").write_text('{"round": 100, "loss": 0.1}')
    state = Peers(network, metrics=1).snapshot()
    assert state["rows"][1]["status"] == "finished" and state["counts"]["well"] == 1
