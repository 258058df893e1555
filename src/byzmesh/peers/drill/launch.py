"""A drill from start to end: a live table, faults, and results in the store like those of a simulation."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from byzmesh.config.paths import anchor_problem
from byzmesh.errors import PeerError
from byzmesh.peers.drill.chaos import Chaos, check_kinds
from byzmesh.peers.drill.drill import Drill
from byzmesh.peers.node import COUNTERS
from byzmesh.store import open_store, this_process
from byzmesh.training.checkpoint import load_checkpoint
from byzmesh.training.spread import spread

Watch = Callable[[Drill], None]
_CALM = 0.9
"""Fraction of the rounds after which chaos stops, so that every peer is back at the end."""
_STALL = 120.0
"""A drill is aborted after this many seconds without a new round at any honest peer."""


def launch(
    network: str | Path,
    out: str | Path,
    *,
    byzantine: Sequence[int] = (),
    attack: Mapping[str, Any] | None = None,
    chaos: Sequence[str] = (),
    keys: str | Path | None = None,
    store: str | Path | None = None,
    seed: int = 0,
    watch: Watch | None = None,
    plugins: Sequence[str] = (),
) -> dict[str, Any]:
    """Run all peers of a network file as processes on this machine until the honest ones are done.

    The result has `metrics` (name -> series over the evaluations), `workers` (per honest peer), `events` of the chaos,
    `seconds` and, with a store, the run's `key`. All processes are ended, whatever happens.
    """
    check_kinds(chaos)
    with Drill(network, out, byzantine=byzantine, attack=attack, keys=keys, plugins=plugins) as drill:
        began = time.time()
        drill.start()
        trouble = Chaos(drill, chaos, seed)
        progress, moved = -1, time.monotonic()
        try:
            while True:
                done = drill.wait(0.25)
                if watch is not None:
                    watch(drill)
                newest = max(status["round"] for status in drill.status().values())
                if newest < _CALM * drill.file.rounds:
                    trouble.tick()
                elif trouble.pending:
                    trouble.end()
                elif done:
                    break
                if newest > progress:
                    progress, moved = newest, time.monotonic()
                elif time.monotonic() - moved > _STALL and not done:
                    raise PeerError(f"no honest peer ended a round for {_STALL:.0f} s; see the logs in {drill.out}")
        finally:
            trouble.end()
        seconds = time.time() - began
        result = {**collect(drill), "events": trouble.events, "seconds": seconds, "key": None}
        if store is not None:
            result["key"] = store_result(store, drill, result, list(chaos), began)
        return result


def collect(drill: Drill) -> dict[str, Any]:
    """Series over the rounds that honest peers evaluated, and the last status of each peer.

    metrics  round; what the peers measured (means over the honest ones) and worst_accuracy; consensus_error and
             disagreement of the final models as last values, NaN before
    """
    records: dict[int, dict[int, dict[str, Any]]] = {}
    for peer in drill.honest:
        path = drill.out / f"peer{peer}.jsonl"
        for line in path.read_text().splitlines() if path.exists() else ():
            try:
                record = json.loads(line)
            except ValueError:
                continue  # the last line of a killed peer
            records.setdefault(int(record["round"]), {})[peer] = record
    rounds = sorted(records)
    metrics: dict[str, np.ndarray[Any, Any]] = {"round": np.array(rounds, np.float64)}
    measured = dict.fromkeys(name for r in rounds for record in records[r].values() for name in record)
    for name in (name for name in measured if name not in ("round", *COUNTERS)):
        values = [[record[name] for record in records[r].values() if name in record] for r in rounds]
        if all(values):
            metrics[name] = np.array([float(np.mean(value)) for value in values])
            if name == "accuracy":
                metrics["worst_accuracy"] = np.array([min(value) for value in values])
    models = [
        load_checkpoint(path)[0]["model"][0]
        for path in (drill.out / f"peer{peer}.ckpt" for peer in drill.honest)
        if path.exists()
    ]
    if models and rounds:
        for name, value in zip(("consensus_error", "disagreement"), spread(np.stack(models))):
            metrics[name] = np.append(np.full(len(rounds) - 1, np.nan), value)
    return {"metrics": metrics, "workers": drill.status()}


def store_result(path: str | Path, drill: Drill, result: Mapping[str, Any], chaos: list[str], began: float) -> str:
    """Put a drill into a store, as a run on the network of its first epoch; its key."""
    left_out = {"peers", "timeouts", "plugins", "checkpoint_seconds", "nonce", "topology", "edges", "weights"}
    content = drill.file.model_dump(mode="json", exclude=left_out)
    config = {
        "kind": "drill",
        **{name: value for name, value in content.items() if value not in (None, {})},
        "problem": anchor_problem(drill.file.problem, drill.file.folder),
        "network": drill.file.network_spec(drill.byzantine),
        "f": [drill.file.bound(peer) for peer in drill.file.ids] if isinstance(drill.file.f, dict) else drill.file.f,
        "attack": drill.attack if drill.byzantine else {"name": "none"},
        "chaos": chaos,
        "started": round(began, 3),  # a drill does not follow from its config: each is a run of its own
    }
    node = {peer: place for place, peer in enumerate(drill.file.ids)}
    edges = [
        [node[sender], node[reader], cut, came]
        for status in result["workers"].values()
        for sender, reader, cut, came in status.get("edges", [])
        if sender in node  # not of a peer that joined since
    ]
    with open_store(path) as store:
        key = store.plan(config)
        store.claim(key, this_process())
        store.finish(
            key,
            "finished",
            result["metrics"],
            edges=np.array(edges, np.int64).reshape(-1, 4),
            rounds=drill.file.rounds,
            seconds=result["seconds"],
        )
    return key
