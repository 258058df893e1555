"""How fast a round is, as ratios within one run: the numbers behind `byzmesh bench`.

The *floor* is the arithmetic of the paper's round as bare loops in the cache (bench_floor.py). Every time is processor
time, the best of several short turns taken in rotation, so that a busy machine disturbs all of them alike.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from byzmesh import rng
from byzmesh.compiled import limit_threads
from byzmesh.config.schema import resolve
from byzmesh.simulation.engine import TOGETHER, Simulation
from byzmesh.studies.bench_floor import phase_table
from byzmesh.sweeps.build import build

RULES = ("WeiMean", "IOS", "FABA", "Krum", "GeoMed", "CC", "SCC", "NNA", "CooMed", "TriMean", "DRSA", "SimRew")
ATTACKS = ("none", "sign-flipping", "isolation", "sample-duplicating", "alie", "gaussian", "label-flipping")
SIZES = (10, 100, 1000)
DIMENSIONS = (7_850, 100_000, 1_000_000)


def paper_run(rule: str, attack: str, dtype: str = "float32") -> Simulation:
    """The paper's two-castle run, non-iid, without evaluations."""
    config = {
        "problem": {"name": "softmax", "partition": "one-class"},
        "network": "paper/two-castle",
        "rule": rule,
        "attack": attack,
        "dtype": dtype,
        "rounds": 1 << 40,
        "profile": "paper",
    }
    return build(resolve(config))


def best_of(turns: dict[str, Callable[[], Any]], rounds: int, repeats: int) -> dict[str, float]:
    """Best processor seconds per call of each function on one thread, taken in rotation."""
    best = dict.fromkeys(turns, float("inf"))
    for call in turns.values():
        call()
    for _ in range(repeats):
        for name, call in turns.items():
            began = time.process_time()
            for _ in range(rounds):
                call()
            best[name] = min(best[name], (time.process_time() - began) / rounds)
    return best


def rounds_table(*, rounds: int = 100, repeats: int = 7, more: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Rounds per second per rule (and `more` of them) under sign-flipping, and per attack under IOS."""
    cases = [(rule, "sign-flipping") for rule in dict.fromkeys((*RULES, *more))] + [
        ("IOS", attack) for attack in ATTACKS[:1] + ATTACKS[2:]
    ]
    turns = {f"{rule}|{attack}": _together(paper_run(rule, attack)) for rule, attack in cases}
    with limit_threads(1):
        best = best_of(turns, max(1, rounds // TOGETHER), repeats)
    best = {name: seconds / TOGETHER for name, seconds in best.items()}
    mean = best["WeiMean|sign-flipping"]
    table = []
    for rule, attack in cases:
        seconds = best[f"{rule}|{attack}"]
        row = {"rule": rule, "attack": attack, "ms": 1e3 * seconds, "rounds_per_second": 1.0 / seconds}
        table.append({**row, "mean": seconds / mean})
    return table


def _together(simulation: Simulation) -> Callable[[], bool]:
    """Some rounds as a run computes them."""
    return lambda: simulation.steps(TOGETHER)


def phases_table(dtype: str, *, repeats: int = 15) -> list[dict[str, Any]]:
    """The phases of an IOS round beside their floor."""
    return phase_table(paper_run("IOS", "sign-flipping", dtype), best_of, repeats)


def draws_share(*, rounds: int = 200, repeats: int = 7) -> float:
    """Fraction of an IOS round spent on drawing the batches (the same integers, drawn alone)."""
    simulation = paper_run("IOS", "sign-flipping")
    key, workers = rng.key(0, rng.BATCH), np.arange(10)
    high = np.full(10, 6000)
    with limit_threads(1):
        best = best_of(
            {"round": simulation.step, "draw": lambda: rng.integers(key, workers, 7, 32, high)}, rounds, repeats
        )
    return best["draw"] / best["round"]


def scaling(*, rounds: int = 5) -> list[dict[str, Any]]:
    """Milliseconds per round and peak memory for growing N (10-regular) and D, each in its own process."""
    rows = []
    for workers in SIZES:
        rows.append(_alone("workers", workers, max(rounds, 2000 // workers)))
    for dimension in DIMENSIONS:
        rows.append(_alone("dimension", dimension, max(rounds, 2_000_000 // dimension)))
    return rows


def _alone(kind: str, size: int, rounds: int) -> dict[str, Any]:
    code = f"from byzmesh.studies.bench import measure_scale; measure_scale({kind!r}, {size}, {rounds})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def _peak() -> int:
    """Largest resident memory of this process in bytes; on Linux `getrusage` would include the parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measure_scale(kind: str, size: int, rounds: int) -> None:
    """Print one row of `scaling` as JSON; runs in its own process to measure only its own peak memory."""
    workers = size if kind == "workers" else 10
    network: Any = "paper/two-castle"
    if kind == "workers":
        degree = min(10, workers - 1)
        network = {"name": "k-regular", "n": workers, "k": degree, "byzantine": max(1, workers // 50)}
    problem: Any = {"name": "softmax", "partition": "iid"}
    if kind == "dimension":
        problem = {"name": "quadratic", "targets": "normal", "dimension": size, "init": "normal"}
    config = resolve(
        {"problem": problem, "network": network, "rule": "IOS", "attack": "sign-flipping", "rounds": 1 << 40}
    )
    with limit_threads(1):
        simulation = build(config)
        simulation.step()
        before = simulation.models.nbytes
        best = best_of({"round": simulation.step}, rounds, 3)["round"]
    row = {kind: size, "ms": 1e3 * best, "peak_mb": _peak() / 2**20, "models_mb": before / 2**20}
    print(json.dumps(row))
