"""A peer that trains: half step, exchange, and so on. What it leaves on disk is in folder.py.

The batches are those that the simulator draws for the same part of the data, seed and round.
"""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

from byzmesh.compiled import keep_memory, limit_threads
from byzmesh.errors import DataError, NotWritten, PeerError
from byzmesh.peers.folder import Folder
from byzmesh.peers.identity import Keys, load_keys
from byzmesh.peers.logs import Log, json_log
from byzmesh.peers.metrics_page import Page
from byzmesh.peers.network_file import NetworkFile, load_network
from byzmesh.peers.peer import Peer, no_log
from byzmesh.peers.sockets import MACHINE
from byzmesh.peers.transport import World
from byzmesh.problems import Task
from byzmesh.rules.interop import to_host
from byzmesh.training.evaluation import Evaluation
from byzmesh.training.local_round import LocalRound
from byzmesh.training.metrics import asked_for, task_means

COUNTERS = ("silent", "late", "repeated", "refused", "moved_up", "suspects")
"""What a peer's record contains besides its round and its metrics."""
_STATUS_SECONDS = 0.5


def bind_share(file: NetworkFile, me: int, data: str | Path | None = None) -> tuple[Task, int]:
    """The task and the row in it that belongs to peer `me`.

    data  a folder with the problem's data set, or a .npz or .csv file with this peer's own samples
    """
    shares, row = file.shares or len(file.peers), file.share(me)
    problem = file.made_problem
    if data is not None:
        if "dataset" not in problem.options:
            raise PeerError(f"--data: problem {problem.name} has no data set; leave the option out")
        if Path(data).is_dir():
            problem = file.problem_with(data_dir=str(Path(data).absolute()))
        else:
            # the whole file belongs to this peer: nothing to split
            mine = {"dataset": str(Path(data).absolute()), "partition": "iid"}
            problem, shares, row = file.problem_with(**mine), 1, 0
    return problem.bind(workers=shares, seed=file.seed, dtype=file.dtype, threads=file.threads), row


def local_round(file: NetworkFile, task: Task, row: int) -> LocalRound:
    """The local part of a round for the peer of this row."""
    return LocalRound(task, np.array([row], np.int64), file.schedule, file.made_local, file.seed)


class Node:
    """One training peer. `run` runs to the last round; `stop` (set it from a signal handler) ends it after a round."""

    def __init__(
        self,
        file: NetworkFile,
        me: int,
        keys: Keys,
        *,
        out: str | Path,
        data: str | Path | None = None,
        task: tuple[Task, int] | None = None,
        faults: str | Path | None = None,
        metrics_port: int | None = None,
        log: Log = no_log,
        world: World = MACHINE,
    ) -> None:
        if file.entry(me).public_key != keys.public:
            raise PeerError(f"the key file is not peer {me}'s: its public key is not the one in the network file")
        self.file, self.me, self.log, self.world = file, me, log, world
        self.folder = Folder(out, me, log)
        try:
            self._set_up(keys, data, task, faults, metrics_port)
        except BaseException:
            self.folder.close()
            raise

    def _set_up(
        self,
        keys: Keys,
        data: str | Path | None,
        task: tuple[Task, int] | None,
        faults: str | Path | None,
        metrics_port: int | None,
    ) -> None:
        file, me, world, log = self.file, self.me, self.world, self.log
        self.stop = False
        self.task, row = task or bind_share(file, me, data)
        self.model = to_host(self.task.initial())[row : row + 1].copy()
        self.local_round = local_round(file, self.task, row)
        self.local_round.start(self.model)
        self.latest: dict[str, float] = {}
        self.ended = self.world.now()
        self._reported = 0.0
        self._saved = self.world.now()
        self._faults = None if faults is None else Path(faults)
        remotes = file.remotes(me)
        keep_memory()
        self.peer = Peer(
            self.model[0],
            remotes,
            file.made_rule,
            me=me,
            address=file.entry(me).address,
            keys=keys,
            weights=dict(zip(remotes, file.network.neighbour_weights(me).tolist(), strict=True)),
            f=file.bound(me),
            run=file.run,
            wire=file.wire,
            patience=file.patience,
            seed=file.seed,
            rounds=file.rounds,
            log=log,
            world=world,
        )
        try:
            self._restore()
            self.page = None if metrics_port is None else Page(metrics_port, self.snapshot, self.healthy)
        except BaseException:
            self.peer.close(0.0)
            raise

    def run(self) -> None:
        """Train to the last round, or until `stop`; then checkpoint and leave."""
        try:
            with limit_threads(self.file.threads):
                self._train()
            self.save()
            self._report(force=True)
            self.peer.leave(self.file.timeouts.linger, lambda: self.stop)
            self.log("left", round=self.peer.round, stopped=self.stop, cpu_seconds=round(time.process_time(), 3))
            if not self.folder.written:
                raise NotWritten(
                    f"peer {self.me} trained to round {self.peer.round}, but its checkpoint is not on disk"
                )
        except BaseException:
            self.peer.close()
            raise
        finally:
            self.folder.close()
            if self.page is not None:
                self.page.close()

    def _train(self) -> None:
        if self.peer.round == 0:
            self._evaluate()
        while self.peer.round < self.file.rounds and not self.stop:
            self._inject()
            self.step()
            self.ended = self.world.now()
            if self.peer.round >= self.file.rounds or self.peer.round % self.file.evaluate_every == 0:
                self._evaluate()
            if self.world.now() - self._saved >= self.file.checkpoint_seconds:
                self.save()
            self._report()

    def step(self) -> None:
        """One round."""
        k, local = self.peer.round, self.local_round
        half = local.half_steps(self.model, k)
        losses = local.losses(k) if self.peer.rule.needs_loss else None
        outcome = self.peer.advance(half[0], self.model[0], local.schedule(k), losses)
        self.model = local.apart(outcome.models)

    def _inject(self) -> None:
        """Faults of a drill: neighbours cut off by a partition, a delay in every round."""
        if self._faults is None:
            return
        try:
            faults = json.loads(self._faults.read_text())
        except (OSError, ValueError):
            faults = {}
        self.peer.block(set(faults.get("blocked", [])) & set(self.peer.neighbours))
        self.world.sleep(float(faults.get("delay", 0.0)))

    def _evaluate(self) -> None:
        measures = self.task.evaluate(self.model)
        at = Evaluation(round=self.peer.round, models=self.model, measures=measures, task=self.task)
        self.latest = task_means(at) | asked_for(at, self.file.made_metrics)
        record = {"round": self.peer.round, **self.latest, **self._numbers()}
        self.folder.append(json.dumps(record))
        self.log("evaluated", **record)

    def _numbers(self) -> dict[str, Any]:
        verdicts = self.peer.rounds.verdicts.values()
        return {
            "silent": sum(counter["silent"] for counter in verdicts),
            "late": sum(counter["late"] for counter in verdicts),
            "repeated": sum(counter["repeated"] for counter in verdicts),
            "refused": sum(counter.total() for counter in self.peer.refused.values()),
            "moved_up": self.peer.jumps,
            "suspects": self.peer.suspects,
        }

    def _report(self, force: bool = False) -> None:
        now = self.world.now()
        if not force and now - self._reported < _STATUS_SECONDS:
            return
        self._reported = now
        peer = self.peer
        edges = [
            [neighbour, self.me, int(peer.ignored[slot]), int(peer.used[slot])]
            for slot, neighbour in enumerate(peer.neighbours)
        ]
        status = {"round": peer.round, **self.latest, **self._numbers(), "edges": edges}
        self.folder.report(json.dumps(status))

    def snapshot(self) -> dict[str, Any]:
        """The numbers of the metrics page."""
        peer = self.peer
        per_neighbour = {
            name: {neighbour: counter[name] for neighbour, counter in peer.rounds.verdicts.items()}
            for name in ("current", "early", "late", "repeated", "silent")
        }
        return {
            "round": peer.round,
            **self.latest,
            "moved_up": peer.jumps,
            "kept_own": peer.kept,
            "grace_seconds": peer.rounds.grace,
            "strangers_refused": peer.transport.strangers,
            **{f"messages_{name}": values for name, values in per_neighbour.items()},
            "messages_refused": {neighbour: counter.total() for neighbour, counter in peer.refused.items()},
            "rounds_ignored": dict(zip(peer.neighbours, peer.ignored.tolist())),
            "cut_off": {neighbour: int(neighbour in peer.cut_off) for neighbour in peer.neighbours},
        }

    def healthy(self) -> bool:
        """Whether a round ended within three timeouts (the first may take as long as the start)."""
        times = self.file.timeouts
        return self.world.now() - self.ended < max(times.start, 3 * times.round)

    def save(self) -> None:
        """Write the checkpoint."""
        peer = self.peer
        arrays = {"model": self.model, "ignored": peer.ignored, "used": peer.used}
        arrays |= self.local_round.states()
        if isinstance(peer.state, np.ndarray):
            arrays["state/rule"] = peer.state
        self.folder.save(arrays, {"run": self.file.run, "peer": self.me, "round": peer.round})
        self._saved = self.world.now()

    def _restore(self) -> None:
        found = self.folder.load()
        if found is None:
            return
        arrays, metadata = found
        if metadata.get("run") != self.file.run or metadata.get("peer") != self.me:
            raise DataError(f"checkpoint {self.folder.checkpoint} belongs to another run or peer; choose another --out")
        self.model = arrays["model"]
        self.peer.round = int(metadata["round"])
        self.peer.ignored, self.peer.used = arrays["ignored"], arrays["used"]
        self.peer.state = arrays.get("state/rule")
        self.local_round.resume(arrays)
        self.log("resumed", round=self.peer.round)


def run_peer(
    network: str | Path,
    me: int,
    key: str | Path,
    *,
    out: str | Path,
    data: str | Path | None = None,
    metrics_port: int | None = None,
) -> None:
    """Run a peer of a network file in this process until the last round; SIGTERM or SIGINT end it after the round."""
    node = Node(
        load_network(network), me, load_keys(key), out=out, data=data, metrics_port=metrics_port, log=json_log(me)
    )

    def leave(number: int, frame: Any) -> None:
        node.stop = True

    former = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        node.run()
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
