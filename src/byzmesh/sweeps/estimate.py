"""The plan of a sweep: its runs, their status in the store, and how long the rest will take.

Runs that differ only in seed, rounds, step size and the like take the same time per round. For each such class one run
is started and a few rounds are timed; a run's estimate is rounds * time of a round + evaluations * time of an
evaluation. Once that has taken `BUDGET` seconds, the remaining classes are only checked and get the mean pace of those
timed with the same problem.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byzmesh.compiled import limit_threads
from byzmesh.config.cell import Cell
from byzmesh.errors import ByzmeshError
from byzmesh.networks import Network
from byzmesh.rules.aggregate import check_feasible
from byzmesh.rules.aggregate import rule as make_rule
from byzmesh.store import ENDED, RunRecord, open_store
from byzmesh.store.keys import dump
from byzmesh.sweeps.build import build, network_as_run
from byzmesh.sweeps.reasons import reasons

WARM_UP_ROUNDS = 3
TIMED_SECONDS = 0.1
TIMED_ROUNDS = 50
"""Calibration of a class ends at whichever limit comes first."""
BUDGET = 20.0
"""Seconds."""


@dataclass(frozen=True, kw_only=True)
class Planned:
    """One run of a plan.

    status   in the store; `planned` if it is not there
    seconds  0 if there is nothing to compute, None with a `problem` if it cannot be computed
    because  why it is computed even though a run of the same config has a result
    """

    cell: Cell
    status: str
    seconds: float | None
    problem: str | None = None
    because: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pace:
    """Seconds of a round and of an evaluation."""

    round: float
    evaluation: float

    def of(self, config: Mapping[str, Any]) -> float:
        """Estimated seconds of a run."""
        evaluations = 1 + -(-config["rounds"] // config["evaluate_every"])
        return float(config["rounds"] * self.round + evaluations * self.evaluation)


def plan(
    cells: Sequence[Cell],
    store: str | Path | None = None,
    *,
    retry_failed: bool = False,
    recompute: bool = False,
    tell: Callable[[str], None] = lambda text: None,
) -> list[Planned]:
    """The runs of a grid with their status in the store and an estimate of their time; nothing is written.

    tell  is called with what goes on now
    """
    known, because = _look_up(cells, store)
    again = ((*ENDED, "failed") if recompute else ("failed",)) if recompute or retry_failed else ()
    paces: dict[str, Pace | str] = {}
    timed: dict[str, list[Pace]] = {}
    began = time.monotonic()
    planned = []
    for cell in cells:
        run = known.get(cell.key)
        status = "planned" if run is None else run.status
        if run is not None and run.settled and status not in again:
            planned.append(Planned(cell=cell, status=status, seconds=0.0))
            continue
        kind = _kind(cell.config)
        if kind not in paces:
            tell(f"timing a few rounds of each kind of run: {len(planned)} of {len(cells)} runs planned")
            alike = timed.setdefault(dump(cell.config["problem"]), [])
            if alike and time.monotonic() - began > BUDGET:
                paces[kind] = _refusal(cell.config) or _mean(alike)
            else:
                paces[kind] = _calibrate(cell.config)
                alike += [pace for pace in (paces[kind],) if isinstance(pace, Pace)]
        pace = paces[kind]
        why = ("as asked",) if status in ENDED else because.get(cell.key, ())
        if isinstance(pace, str):
            planned.append(Planned(cell=cell, status=status, seconds=None, problem=pace, because=why))
        else:
            planned.append(Planned(cell=cell, status=status, seconds=pace.of(cell.config), because=why))
    return planned


def total_seconds(planned: Sequence[Planned], workers: int) -> float:
    """Time of the whole sweep on this many processes (0: in this one): an equal part, but at least the longest run."""
    seconds = [run.seconds or 0.0 for run in planned]
    return max(sum(seconds) / max(workers, 1), max(seconds, default=0.0))


def _look_up(
    cells: Sequence[Cell], store: str | Path | None
) -> tuple[dict[str, RunRecord], dict[str, tuple[str, ...]]]:
    """The runs of the cells in the store, and for missing ones what changed since a run of the same config."""
    if store is None or not Path(store).exists():
        return {}, {}
    with open_store(store, readonly=True) as opened:
        there = opened.keys()
        return {cell.key: opened.get(cell.key) for cell in cells if cell.key in there}, reasons(opened, cells)


def _kind(config: Mapping[str, Any]) -> str:
    """The part of a config that the time of a round depends on, as text."""
    network = Network.from_spec(config["network"])
    same = {key: config[key] for key in ("problem", "rule", "attack", "f", "local", "dtype", "threads", "measure")}
    return dump({**same, "workers": network.n, "byzantine": len(network.byzantine), "links": int(network.degree.sum())})


def _mean(paces: Sequence[Pace]) -> Pace:
    count = len(paces)
    return Pace(sum(pace.round for pace in paces) / count, sum(pace.evaluation for pace in paces) / count)


def _refusal(config: Mapping[str, Any]) -> str | None:
    """Why a run cannot be computed, as far as that is known without its data."""
    try:
        network = network_as_run(config)
        rule = make_rule(config["rule"])
        check_feasible(
            rule, network.bounds(config["f"], rule.largest_f), network.degree[network.honest], network.honest
        )
    except ByzmeshError as error:
        return str(error)
    return None


def _calibrate(config: Mapping[str, Any]) -> Pace | str:
    """The pace of a run, or why it cannot be computed."""
    try:
        simulation = build(config)
        with limit_threads(simulation.threads):
            simulation.evaluate()
            began = time.perf_counter()
            simulation.evaluate()
            evaluation = time.perf_counter() - began
            for _ in range(WARM_UP_ROUNDS):
                simulation.step()
            began, rounds = time.perf_counter(), 0
            while rounds < TIMED_ROUNDS and time.perf_counter() - began < TIMED_SECONDS:
                simulation.step()
                rounds += 1
            return Pace((time.perf_counter() - began) / max(rounds, 1), evaluation)
    except ByzmeshError as error:
        return str(error)
