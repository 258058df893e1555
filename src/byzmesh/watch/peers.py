"""What a network of peers looks like now, from the files they write and, if they serve it, their own word.

    peer3.status.json    round, accuracy, whom it suspects, how often it cut each neighbour
    peer3.jsonl          its evaluations so far
    /health              on 127.0.0.1, at `metrics` + id: whether the peer itself thinks it is well

The files of peers on other machines must be copied or mounted; nothing is asked of other machines.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import numpy as np

from byzmesh.errors import ConfigError
from byzmesh.peers.network_file import load_network
from byzmesh.training.metrics import metric_of
from byzmesh.watch.stored import points
from byzmesh.watch.trust import network_view, no_edges, suspects_view

ASK_SECONDS = 1.0


class Peers:
    """Snapshots of the peers of a network file.

    folders  where their state is: the `--out` of each peer, or of a drill; by default the folder of the network file.
             Folders in them are looked into, too
    metrics  port of peer 0's metrics page, if they have one; peer i is expected at this port + i
    """

    def __init__(
        self,
        network: str | Path,
        folders: Sequence[str | Path] = (),
        metrics: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = Path(network)
        self.file = load_network(self.path)
        self.folders = [Path(folder) for folder in folders] or [self.path.parent]
        for folder in self.folders:
            if not folder.is_dir():
                raise ConfigError(f"--out {folder} is no folder; give one in which peers keep their state")
        self.metrics = metrics
        self.clock = clock

    def snapshot(self, chosen: str = "") -> dict[str, Any]:
        """The state as plain values; nothing can be chosen."""
        network = self.file.network
        rows: list[dict[str, Any]] = []
        edges: list[list[int]] = []
        curves: dict[str, list[dict[str, Any]]] = {}
        share = 0.0
        for node, peer in enumerate(self.file.ids):
            status, age = self._status(peer)
            row: dict[str, Any] = {"key": str(peer), "status": "no state yet", "round": 0, "rounds": self.file.rounds}
            if status is not None:
                share += min(status.get("round", 0) / self.file.rounds, 1.0) / len(self.file.ids)
                told: dict[str, Any] = {
                    "status": f"seen {_ago(age)} ago" if age > 5.0 else "seen now",
                    "round": status.get("round", 0),
                    **{name: metric_of(name).text(status[name]) for name in ("accuracy", "loss") if name in status},
                    **{name: status.get(name, 0) for name in ("silent", "refused")},
                    "suspects": ", ".join(map(str, status.get("suspects", []))),
                }
                row |= told
                edges += [[self._node(s), node, cut, came] for s, _, cut, came in status.get("edges", [])]
            if row["round"] >= self.file.rounds:
                row["status"] = "finished"
            elif self.metrics is not None:
                row["status"] = self._health(peer)
            rows.append(row)
            for label, points_of in self._evaluations(peer).items():
                curve = {"name": f"peer {peer}", "running": True, "points": points_of}
                curves.setdefault(label, []).append(curve)
        counted = np.array([edge for edge in edges if edge[0] >= 0], np.int64).reshape(-1, 4) if edges else no_edges()
        well = sum(row["status"] in ("ok", "seen now", "finished") for row in rows)
        return {
            "kind": "peers",
            "title": self.path.name,
            "counts": {"well": well, "other": len(rows) - well},
            "share": share,
            "rows": rows,
            "more": 0,
            "curves": curves,
            "network": network_view(network, counted, network.name, known=False),
            "suspects": suspects_view(network, counted, None),
        }

    def _node(self, peer: int) -> int:
        """A peer's place in the graph; -1 for one that is no member any more."""
        return self.file.ids.index(peer) if peer in self.file.ids else -1

    def _find(self, name: str) -> Path | None:
        """The newest file of this name in the folders, or one level below."""
        found = [
            path for folder in self.folders for path in (folder / name, *folder.glob(f"*/{name}")) if path.is_file()
        ]
        return max(found, key=lambda path: path.stat().st_mtime, default=None)

    def _status(self, peer: int) -> tuple[dict[str, Any] | None, float]:
        """What a peer last said of itself, and how many seconds ago."""
        path = self._find(f"peer{peer}.status.json")
        try:
            return (None, 0.0) if path is None else (json.loads(path.read_text()), self.clock() - path.stat().st_mtime)
        except (OSError, ValueError):  # being replaced
            return None, 0.0

    def _evaluations(self, peer: int) -> dict[str, list[list[float | None]]]:
        path = self._find(f"peer{peer}.jsonl")
        try:
            lines = [] if path is None else path.read_text().splitlines()
            told = [json.loads(line) for line in lines]
        except (OSError, ValueError):  # half a line
            told = [json.loads(line) for line in lines[:-1]] if path is not None else []
        series = {
            name: np.array([line[name] for line in told], np.float64)
            for name in ("round", "accuracy", "loss")
            if told and all(name in line for line in told)
        }
        return {metric_of(name).label: points(series, name) for name in series if name != "round"}

    def _health(self, peer: int) -> str:
        """`ok`, or what is wrong, in the peer's own words."""
        try:
            with urlopen(f"http://127.0.0.1:{self.metrics + peer}/health", timeout=ASK_SECONDS) as answer:  # type: ignore[operator]
                return str(answer.read(200).decode().strip())
        except HTTPError as error:
            return error.read(200).decode().strip() or str(error)
        except (URLError, OSError):
            return f"no answer at port {self.metrics + peer}"  # type: ignore[operator]


def _ago(seconds: float) -> str:
    """A duration in the largest unit that fits.

    >>> _ago(12.3), _ago(200.0), _ago(90000.0)
    ('12 s', '3 min', '25 h')
    """
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
