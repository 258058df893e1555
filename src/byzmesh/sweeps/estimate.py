"""What a sweep would do: its runs, what the store knows of them, and how long the rest takes.

Runs that differ only in seed, rounds, step size or such take the same time per round. Of each such class one run is
started and a few rounds are timed; a run's estimate is rounds * time of a round + evaluations * time of an evaluation.
When that has taken `BUDGET` seconds, the classes left are only checked and get the mean pace of those timed with the
same problem.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byzmesh.compiled import limit_threads
from byzmesh.config.grid import Point
from byzmesh.errors import ByzmeshError, StoreError
from byzmesh.networks import Network
from byzmesh.rules.aggregate import check_feasible
from byzmesh.rules.aggregate import rule as make_rule
from byzmesh.store import ENDED, open_store
from byzmesh.store.keys import dump
from byzmesh.sweeps.build import build, network_as_run

WARM_UP_ROUNDS = 3
TIMED_SECONDS = 0.1
TIMED_ROUNDS = 50
"""Calibration of a class ends at whichever comes first."""
BUDGET = 20.0
"""Seconds."""


@dataclass(frozen=True)
class Planned:
    """One run of a plan; `seconds` is 0 if it has a result, None with a `problem` if it cannot be computed."""

    key: str
    status: str
    label: dict[str, Any]
    config: dict[str, Any]
    seconds: float | None
    problem: str | None = None


@dataclass(frozen=True)
class Pace:
    """Seconds of a round and of an evaluation."""

    round: float
    evaluation: float

    def of(self, config: Mapping[str, Any]) -> float:
        """Seconds of a run."""
        evaluations = 1 + -(-config["rounds"] // config["evaluate_every"])
        return float(config["rounds"] * self.round + evaluations * self.evaluation)


def plan(
    points: Sequence[Point], store: str | Path | None = None, *, retry_failed: bool = False, recompute: bool = False
) -> list[Planned]:
    """The runs of a grid with their status in the store and an estimate of their time; nothing is written."""
    known = _statuses(points, store)
    paces: dict[str, Pace | str] = {}
    timed: dict[str, list[Pace]] = {}
    began = time.monotonic()
    planned = []
    for point in points:
        status = known.get(point.key, "planned")
        if not recompute and (status in ENDED or (status == "failed" and not retry_failed)):
            planned.append(Planned(point.key, status, point.label, point.config, 0.0))
            continue
        kind = _kind(point.config)
        if kind not in paces:
            alike = timed.setdefault(dump(point.config["problem"]), [])
            if alike and time.monotonic() - began > BUDGET:
                paces[kind] = _refusal(point.config) or _mean(alike)
            else:
                paces[kind] = _calibrate(point.config)
                alike += [pace for pace in (paces[kind],) if isinstance(pace, Pace)]
        pace = paces[kind]
        if isinstance(pace, str):
            planned.append(Planned(point.key, status, point.label, point.config, None, pace))
        else:
            planned.append(Planned(point.key, status, point.label, point.config, pace.of(point.config)))
    return planned


def total_seconds(planned: Sequence[Planned], workers: int) -> float:
    """Time of the whole sweep on that many processes: all work shared, but no less than the longest run."""
    seconds = [run.seconds or 0.0 for run in planned]
    return max(sum(seconds) / workers, max(seconds, default=0.0))


def _statuses(points: Sequence[Point], store: str | Path | None) -> dict[str, str]:
    if store is None or not Path(store).exists():
        return {}
    known = {}
    with open_store(store, readonly=True) as opened:
        for point in points:
            with contextlib.suppress(StoreError):  # not planned yet
                known[point.key] = opened.get(point.key).status
    return known


def _kind(config: Mapping[str, Any]) -> str:
    """What the time of a round depends on."""
    network = Network.from_spec(config["network"])
    same = {key: config[key] for key in ("problem", "rule", "attack", "f", "local", "dtype", "threads", "measure")}
    return dump({**same, "workers": network.n, "byzantine": len(network.byzantine), "links": int(network.degree.sum())})


def _mean(paces: Sequence[Pace]) -> Pace:
    count = len(paces)
    return Pace(sum(pace.round for pace in paces) / count, sum(pace.evaluation for pace in paces) / count)


def _refusal(config: Mapping[str, Any]) -> str | None:
    """Why a run cannot be computed, as far as that shows without its data."""
    try:
        network = network_as_run(config)
        rule = make_rule(config["rule"])
        check_feasible(rule, network.bounds(config["f"]), network.degree[network.honest], network.honest)
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
