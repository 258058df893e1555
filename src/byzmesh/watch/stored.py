"""What a store of runs looks like now: how far its runs are, their curves, whom the chosen run trusted.

Results are in the store. A run that is being computed has its round and its curve so far in its checkpoint, which is
written every few seconds; a checkpoint is read again only when its file has changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from byzmesh.errors import ByzmeshError, DataError
from byzmesh.store import RunRecord, Store, open_store
from byzmesh.sweeps.build import network_as_run
from byzmesh.sweeps.checkpoints import checkpoint_folder
from byzmesh.training.checkpoint import load_checkpoint
from byzmesh.training.metrics import metric_of
from byzmesh.types import Floats
from byzmesh.watch.trust import network_view, suspects_view

MOST_RUNS = 300
"""Rows of the table: those that run, then the latest."""
MOST_CURVES = 12
MOST_POINTS = 400
Series = dict[str, Floats]


class StoredRuns:
    """Snapshots of a store."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        with open_store(self.path, readonly=True):
            pass  # a mistake in the path is said now
        self._seen: dict[str, tuple[int, int, Series]] = {}
        """Key of a run -> when its checkpoint was written, its round, its series."""

    def snapshot(self, chosen: str = "") -> dict[str, Any]:
        """The state as plain values; `chosen` is the key of the run whose network is shown, default the latest."""
        with open_store(self.path, readonly=True) as store:
            records = store.list(current=True)
            running = [record for record in records if record.status == "running" and record.leased]
            ended = [record for record in records if record.status in ("finished", "diverged")]
            shown = (
                running
                + sorted(
                    (record for record in records if record not in running), key=lambda r: r.ended or r.asked or 0.0
                )[::-1]
            )
            counts: dict[str, int] = {}
            for record in records:
                status = "waiting" if record.status in ("planned", "interrupted") else record.status
                counts[status] = counts.get(status, 0) + 1
            drawn = (running + sorted(ended, key=lambda r: r.ended or 0.0)[::-1])[:MOST_CURVES]
            view: dict[str, Any] = {
                "kind": "store",
                "title": self.path.name,
                "counts": counts,
                "share": self._share(records),
                "rows": [self._row(record) for record in shown[:MOST_RUNS]],
                "more": max(len(shown) - MOST_RUNS, 0),
                "curves": self._curves(store, drawn),
            }
            return {**view, **self._trust(store, ended, chosen)}

    def _share(self, records: list[RunRecord]) -> float:
        """Rounds that are done, of all rounds."""
        done = total = 0
        for record in records:
            rounds = int(record.config.get("rounds", 1))
            total += rounds
            done += rounds if record.settled else self._so_far(record)[0]
        return done / total if total else 0.0

    def _row(self, record: RunRecord) -> dict[str, Any]:
        config = record.config
        names: dict[str, Any] = {part: config[part]["name"] for part in ("rule", "attack") if part in config}
        network = config.get("network", {})
        reached = record.rounds if record.settled else self._so_far(record)[0]
        row: dict[str, Any] = {
            "key": record.key[:12],
            **names,
            "network": str(network.get("name") or network.get("label") or "own graph"),
            "seed": config.get("seed", 0),
            "status": record.status,
            "round": reached or 0,
            "rounds": config.get("rounds", 0),
        }
        for metric in ("accuracy", "loss"):
            if metric in record.final:
                row[metric] = metric_of(metric).text(record.final[metric])
        if record.status == "failed":
            row["why"] = (record.failure or "").strip().split("\n")[-1]
        return row

    def _so_far(self, record: RunRecord) -> tuple[int, Series]:
        """Round and series of a run that is being computed, from its checkpoint."""
        path = checkpoint_folder(self.path) / record.key
        try:
            written = path.stat().st_mtime_ns
            if record.key not in self._seen or self._seen[record.key][0] != written:
                arrays, facts = load_checkpoint(path)
                series = {
                    name.removeprefix("series/"): values
                    for name, values in arrays.items()
                    if name.startswith("series/")
                }
                self._seen[record.key] = (written, int(facts["round"]), series)
        except (OSError, DataError, KeyError):
            return self._seen.get(record.key, (0, 0, {}))[1:]
        return self._seen[record.key][1:]

    def _curves(self, store: Store, records: list[RunRecord]) -> dict[str, list[dict[str, Any]]]:
        """Metric -> curves of these runs."""
        curves: dict[str, list[dict[str, Any]]] = {}
        for record in records:
            ended = record.status in ("finished", "diverged")
            series: Series = store.series(record.key) if ended else self._so_far(record)[1]
            config = record.config
            name = ", ".join(str(config[part]["name"]) for part in ("rule", "attack") if part in config)
            name = f"{name}, seed {config.get('seed', 0)} ({record.key[:6]})"
            for metric in series:
                if metric != "round" and (metric_of(metric).overview or metric in ("accuracy", "loss")):
                    curve = {"name": name, "running": not ended, "points": points(series, metric)}
                    curves.setdefault(metric_of(metric).label, []).append(curve)
        return curves

    def _trust(self, store: Store, ended: list[RunRecord], chosen: str) -> dict[str, Any]:
        """Network and suspects of the chosen run, or else of the latest that cut anybody."""
        latest = sorted(ended, key=lambda r: r.ended or 0.0)[::-1]
        asked = [record for record in latest if chosen and record.key.startswith(chosen)]
        for record in asked or latest[:MOST_CURVES]:
            edges = store.edges(record.key)
            if "network" not in record.config or not len(edges) or not (asked or edges[:, 2].any()):
                continue
            try:
                network = network_as_run(record.config)
            except ByzmeshError:  # a graph file that is gone
                continue
            words = ", ".join(record.config[part]["name"] for part in ("rule", "attack"))
            title = f"{network.name}: {words} ({record.key[:6]})"
            liars = network.byzantine.tolist()
            return {"network": network_view(network, edges, title), "suspects": suspects_view(network, edges, liars)}
        return {"network": None, "suspects": None}


def points(series: Series, metric: str) -> list[list[float | None]]:
    """(round, value) of a metric as tables show it, thinned to `MOST_POINTS`; a value that is not finite is a gap."""
    values = np.asarray(series[metric], np.float64) * metric_of(metric).factor
    rounds = np.asarray(series.get("round", np.arange(len(values))), np.float64)[: len(values)]
    stride = -(-len(values) // MOST_POINTS) or 1
    kept = sorted({*range(0, len(values), stride), len(values) - 1} - {-1})
    return [[float(rounds[at]), float(f"{values[at]:.5g}") if np.isfinite(values[at]) else None] for at in kept]
