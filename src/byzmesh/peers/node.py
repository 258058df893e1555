"""A peer that trains: half step, exchange, and so on. What it leaves on disk is in folder.py.

The batches are those that the simulator draws for the same part of the data, seed and round.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from byzmesh.compiled import keep_memory, limit_threads
from byzmesh.errors import DataError, Isolated, NotWritten
from byzmesh.peers import condition
from byzmesh.peers.channel_state import channel_arrays, resume_channel
from byzmesh.peers.encounters import Encounters
from byzmesh.peers.folder import Folder
from byzmesh.peers.identity import Keyring, Keys
from byzmesh.peers.join import join
from byzmesh.peers.logs import Log
from byzmesh.peers.membership import Membership, Removed
from byzmesh.peers.metrics_page import Page
from byzmesh.peers.network_file import NetworkFile
from byzmesh.peers.peer import Peer, no_log
from byzmesh.peers.run_id import named_run
from byzmesh.peers.share import bind_share, bound_problem
from byzmesh.peers.sockets import MACHINE
from byzmesh.peers.transport import World
from byzmesh.peers.warm import local_round
from byzmesh.problems import Task
from byzmesh.rules.interop import to_host
from byzmesh.training.checkpoint import load_checkpoint
from byzmesh.training.evaluation import Evaluation
from byzmesh.training.metrics import asked_for, task_means

COUNTERS = ("silent", "late", "repeated", "refused", "moved_up", "suspects")
"""What a peer's record contains besides its round and its metrics."""
_STATUS_SECONDS = 0.5
_FAULTS_SECONDS = 0.02
_SOON = 3.0
"""Timeouts without any neighbour after which what a peer trains is not kept."""


class Node:
    """One training peer. `run` runs to the last round; `stop` (set it from a signal handler) ends it after a round."""

    def __init__(
        self,
        file: NetworkFile,
        me: int,
        keys: Keys | Keyring,
        *,
        out: str | Path,
        path: str | Path | None = None,
        data: str | Path | None = None,
        task: tuple[Task, int] | None = None,
        faults: str | Path | None = None,
        metrics_port: int | None = None,
        start_from: str | Path | None = None,
        run: str = "",
        log: Log = no_log,
        world: World = MACHINE,
    ) -> None:
        self.me, self.log, self.world = me, log, world
        keyring = keys if isinstance(keys, Keyring) else Keyring(keys)
        self.run_id = named_run(file.run, run)
        """The file's run, or the one that the operator named."""
        self.folder = Folder(out, me, log)
        try:
            self.membership = Membership(file, me, keyring, world.now, log, path=path, out=out)
            self._set_up(data, task, faults, metrics_port, start_from)
        except BaseException:
            self.folder.close()
            raise

    def _set_up(
        self,
        data: str | Path | None,
        task: tuple[Task, int] | None,
        faults: str | Path | None,
        metrics_port: int | None,
        start_from: str | Path | None,
    ) -> None:
        file, me, world, log = self.file, self.me, self.world, self.log
        self.stop = False
        self.evaluated: Callable[[], object] = lambda: None
        """Called after every evaluation."""
        self._bound = bound_problem(file, me, data)[0]
        self.task, row = task or bind_share(file, me, data)
        self._row = np.array([row])
        first = to_host(self.task.initial())
        self.model = first[row : row + 1].copy()
        if start_from is not None:
            self.model = _warm(start_from, self.model)
        self.local_round = local_round(file, self.task, row)
        self.local_round.start(self.model)
        first = self.local_round.shown(first)
        self.latest: dict[str, float] = {}
        self.began = self.ended = self.world.now()
        self._reported = 0.0
        self._saved = self.world.now()
        self._faults = None if faults is None else Path(faults)
        self._injected: dict[str, Any] = {}
        self._looked = -np.inf
        self.meet = Encounters(file.meetings, file.weights, me) if file.meetings else None
        keep_memory()
        self.peer = Peer(
            first[row],
            file.remotes(me),
            file.made_rule,
            me=me,
            address=file.entry(me).address,
            keys=self.membership.keys,
            weights=None if self.meet else file.weights_of(me),
            meet=self.meet,
            open_links=file.open_links,
            f=file.bound(me),
            run=self.run_id,
            channel=file.channel,
            patience=file.patience,
            seed=file.seed,
            rounds=file.rounds,
            log=log,
            world=world,
            membership=self.membership,
        )
        try:
            self.peer.form.channel.check_start(first)
            self._joins = not self._restore() and start_from is None and file.epoch > 0
            self.membership.keep()
            self.page = None if metrics_port is None else self._page(metrics_port)
        except BaseException:
            self.peer.close(0.0)
            raise

    @property
    def file(self) -> NetworkFile:
        """The network file in force."""
        return self.membership.file

    def run(self) -> None:
        """Train to the last round, until `stop`, or until it is no member any more; then checkpoint and leave."""
        member = not self._joins
        try:
            with limit_threads(self.file.threads):
                try:
                    member = member or self._join()
                    if member:
                        self._train()
                except Removed as error:
                    self.log("removed", round=self.peer.round, text=str(error))
            if member:  # whoever ends before it could join has nothing to come back to, and joins then
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

    def _join(self) -> bool:
        """Start from the neighbours' models, in a run under way; False if told to stop before."""
        model = join(self.peer, self.file.timeouts.alone, lambda: self.stop)
        if model is None:
            return False
        self.model = self.local_round.kept(self.model, model[None, :].copy())
        self.local_round.start(self.model)
        return True

    def _train(self) -> None:
        if self.peer.round == 0:
            self._evaluate()
        while self.peer.round < self.membership.epochs.at(self.peer.round).rounds and not self.stop:
            if self.membership.unsaved:
                self.membership.unsaved = False
                self.save()
            self._inject()
            self.step()
            self.ended = self.world.now()
            if self.peer.round >= self.file.rounds or self.peer.round % self.file.evaluate_every == 0:
                self._evaluate()
            if self.world.now() - self._saved >= self.file.checkpoint_seconds:
                self.save()
            self._report()
            self._check_company(self.file.timeouts.alone)
        self._check_company(_SOON * self.file.timeouts.round)

    def _check_company(self, seconds: float) -> None:
        alone = self.peer.alone_for
        if alone >= seconds and not self.stop:
            count = len(self.peer.neighbours)
            up = count - len(self.peer.lost)
            raise Isolated(
                f"peer {self.me} heard {up or 'none'} of its {count} neighbours{', which may lie,' if up else ''} for "
                f"{alone:.0f} s and would train alone; its checkpoint is from before that: start it again when they "
                "are back"
            )

    def step(self) -> None:
        """One round."""
        k, local = self.peer.round, self.local_round
        if self.meet is not None and not self.meet(k).active:
            self.peer.skip()
            return
        half = local.half_steps(self.model, k)
        losses = local.losses(k) if self.peer.rule.needs_loss else None
        outcome = self.peer.advance(half[0], local.shown(self.model)[0], local.schedule(k), losses)
        self.model = local.outer(self.model, local.apart(outcome.models))

    def _inject(self) -> None:
        """Faults of a drill: neighbours cut off by a partition, a delay in every round."""
        if self._faults is None:
            return
        if self.world.now() - self._looked >= _FAULTS_SECONDS:
            self._looked = self.world.now()
            try:
                self._injected = json.loads(self._faults.read_text())
            except (OSError, ValueError):
                self._injected = {}
            self.peer.block(set(self._injected.get("blocked", [])) & set(self.peer.neighbours))
        if self._injected.get("delay"):
            self.world.sleep(float(self._injected["delay"]))

    def _evaluate(self) -> None:
        measures = self.task.evaluate(self.model)
        sent = np.array([self.peer.sent_bytes])
        at = Evaluation(
            round=self.peer.round,
            models=self.model,
            measures=measures,
            task=self.task,
            sent_bytes=sent,
            rows=self._row,
        )
        self.latest = task_means(at) | asked_for(at, self.file.made_metrics)
        record = {"round": self.peer.round, **self.latest, **self._numbers()}
        self.folder.append(json.dumps(record))
        self.log("evaluated", **record)
        self.evaluated()

    def _numbers(self) -> dict[str, Any]:
        verdicts = self.peer.rounds.verdicts.values()
        return {
            "silent": sum(counter["silent"] for counter in verdicts),
            "late": sum(counter["late"] for counter in verdicts),
            "repeated": sum(counter["repeated"] for counter in verdicts),
            "refused": sum(counter.total() for counter in self.peer.tally.refused.values()),
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
            [neighbour, self.me, int(peer.tally.ignored[slot]), int(peer.tally.used[slot])]
            for slot, neighbour in enumerate(peer.neighbours)
        ]
        status = {"round": peer.round, **self.latest, **self._numbers(), "edges": edges}
        self.folder.report(json.dumps(status))

    def _page(self, port: int) -> Page:
        return Page(port, lambda: condition.numbers(self), lambda: condition.trouble(self))

    def save(self) -> None:
        """Write the checkpoint, unless it was alone for long: what was trained alone would replace better."""
        peer = self.peer
        if peer.alone_for >= _SOON * self.file.timeouts.round:
            return
        arrays = {"model": self.model, "ignored": peer.tally.ignored, "used": peer.tally.used}
        arrays |= self.local_round.states()
        if isinstance(peer.state, np.ndarray):
            arrays["state/rule"] = peer.state
        arrays |= channel_arrays(peer)
        facts = {"run": self.run_id, "peer": self.me, "round": peer.round, "bound": self._bound}
        facts |= {"sent_bytes": peer.sent_bytes, "heard": [[j, round] for j, (round, _) in peer.heard.items()]}
        facts["neighbours"] = peer.neighbours
        self.folder.save(arrays, facts)
        self._saved = self.world.now()

    def _restore(self) -> bool:
        """Continue from the checkpoint; whether there is one."""
        found = self.folder.load()
        if found is None:
            return False
        arrays, metadata = found
        if metadata.get("run") != self.run_id or metadata.get("peer") != self.me:
            raise DataError(
                f"checkpoint {self.folder.checkpoint} belongs to another run or peer; choose another --out, or the "
                "same --run"
            )
        self.model = arrays["model"]
        self.peer.round = int(metadata["round"])
        former = metadata.get("neighbours", self.peer.neighbours)
        for slot, neighbour in enumerate(self.peer.neighbours):
            if neighbour in former:
                self.peer.tally.ignored[slot] = arrays["ignored"][former.index(neighbour)]
                self.peer.tally.used[slot] = arrays["used"][former.index(neighbour)]
        self.peer.state = arrays.get("state/rule")
        self.peer.sent_bytes = int(metadata.get("sent_bytes", 0))
        resume_channel(self.peer, arrays, dict(metadata.get("heard", [])))
        self.local_round.resume(arrays)
        self.log("resumed", round=self.peer.round)
        return True


def _warm(path: str | Path, model: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The model of another run's checkpoint, to start from."""
    found = load_checkpoint(path)[0].get("model")
    if found is None or found.shape != model.shape:
        raise DataError(f"{path} has no model of {model.shape[1]} parameters to start from; give a peer's checkpoint")
    return found.astype(model.dtype)
