"""Large networks, long models, two threads, start-up: python benchmarks/scale.py [MEASURE ...] [--quick]

Every measure runs in a process of its own, so that its peak memory is its own, and prints its numbers beside the bound
of the project. All rounds are rounds of IOS under sign-flipping in float32. Times are the best of several turns in
rotation, printed with the load of the machine. They are processor time, which other programs disturb less, except where
threads or the start of a process are measured.

    growth     time per worker of 10, 100 and 1,000 workers (10-regular, softmax regression on MNIST)
    threads    1,000 workers with one thread and with two
    dimension  12 workers, D = 10,000,000: memory beside that of the models, and seconds to prepare
    startup    `byzmesh run` of one round: without compiled kernels, and again with them
    sparse     100,000 workers of which 5,000 lie: network, certificate, memory, and the time per worker beside that of
               1,000 workers; needs 14 GB and some minutes

--quick: fewer turns and a tenth of the size, to try the script.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from byzmesh import certify, network
from byzmesh.compiled import limit_threads
from byzmesh.config.schema import resolve
from byzmesh.errors import ConfigError
from byzmesh.studies.bench import _peak
from byzmesh.sweeps.build import build

ALONE = "--alone"
Rows = dict[str, tuple[float, str]]
"""What was measured: its value and the bound."""


def regular(n: int, liars: int) -> dict[str, Any]:
    return {"name": "k-regular", "n": n, "k": min(10, n - 1), "byzantine": liars}


def simulation(n: int, liars: int, problem: dict[str, Any] | None = None, **config: Any) -> Any:
    """A run that does not evaluate."""
    softmax = {"name": "softmax", "partition": {"name": "drawn", "size": 600}}
    parts = {"network": regular(n, liars), "problem": problem or softmax, "rule": "ios", "attack": "sign-flipping"}
    return build(resolve({**parts, "rounds": 1 << 40, **config}))


def quadratic(size: int) -> dict[str, Any]:
    return {"name": "quadratic", "targets": "normal", "dimension": size, "init": "normal"}


def timed(call: Callable[[], Any], clock: Callable[[], float] = time.process_time) -> tuple[float, Any]:
    began = clock()
    made = call()
    return clock() - began, made


def in_rotation(
    runs: dict[str, Any], repeats: int, times: dict[str, int], clock: Callable[[], float] = time.process_time
) -> dict[str, float]:
    """Best seconds per round of each run, in turns of `times` rounds, after one turn that does not count."""
    best = dict.fromkeys(runs, float("inf"))
    for repeat in range(repeats + 1):
        for name, run in runs.items():
            count = times.get(name, 1)
            with limit_threads(run.threads):
                began = clock()
                for _ in range(count):
                    assert run.step()
                taken = (clock() - began) / count
            best[name] = min(best[name], taken) if repeat else best[name]
    return best


def growth(quick: bool) -> Rows:
    runs = {f"{n:,}": simulation(n, max(1, n // 20)) for n in (10, 100, 1000)}
    found = in_rotation(runs, 3 if quick else 15, {"10": 200, "100": 20, "1,000": 2})
    each = {n: 1e6 * found[n] / len(runs[n].models) for n in runs}
    table = {f"us per worker, {n} workers": (each[n], "") for n in runs}
    return {**table, "1,000 / 10 workers": (each["1,000"] / each["10"], "<= 1.3")}


def threads(quick: bool) -> Rows:
    runs = {str(count): simulation(1000, 50, threads=count) for count in (1, 2)}
    runs |= {f"long {count}": simulation(14, 2, quadratic(1_000_000), threads=count) for count in (1, 2)}
    found = in_rotation(runs, 5 if quick else 40, {}, time.perf_counter)
    return {
        "1 thread, ms per round": (1e3 * found["1"], ""),
        "2 threads, ms per round": (1e3 * found["2"], ""),
        "times as fast": (found["1"] / found["2"], ">= 1.7"),
        "12 workers, D = 1,000,000: times as fast": (found["long 1"] / found["long 2"], ""),
    }


def dimension(quick: bool) -> Rows:
    simulation(14, 2, quadratic(10)).step()
    bare = _peak()
    preparing, run = timed(lambda: simulation(14, 2, quadratic(1_000_000 if quick else 10_000_000)))
    prepared, models = _peak(), run.models.nbytes
    each = in_rotation({"": run}, 2, {})[""]
    stepped = _peak()
    evaluating, _ = timed(run.evaluate)
    return {
        "seconds to prepare": (preparing, ""),
        "seconds per round": (each, ""),
        "seconds per evaluation": (evaluating, ""),
        "models, MB": (models / 1e6, ""),
        "Python, libraries and kernels, MB": (bare / 1e6, ""),
        "peak while preparing / models": (prepared / models, ""),
        "peak after some rounds / models": (stepped / models, ""),
        "peak in all / models": (_peak() / models, "<= 3"),
    }


def startup(quick: bool) -> Rows:
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "one.yaml")
        config.write_text("network: paper/two-castle\nattack: sign-flipping\nrounds: 1\n")
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(Path(folder, "kernels"))}
        command = [str(Path(sys.executable).with_name("byzmesh")), "run", str(config), "--recompute"]

        def once() -> float:
            def call() -> None:
                subprocess.run(command, env=environment, cwd=folder, check=True, capture_output=True)

            return timed(call, time.perf_counter)[0]

        cold = once()
        warm = min(once() for _ in range(3 if quick else 7))
    return {"first run, s": (cold, ""), "second run, s": (warm, "<= 1.2")}


def sparse(quick: bool) -> Rows:
    n = 10_000 if quick else 100_000
    building, made = timed(lambda: network(regular(n, n // 20)))
    certifying = {}
    for guarantee in ("bounded", "fair", "connected"):
        certifying[guarantee], told = timed(partial(certify, made, "ios", guarantee=guarantee))
        print(f"  {guarantee}: {told.verdict.status}, lambda {told.rate:.4f}", file=sys.stderr)
    try:
        print(f"  drawn to {made.draw('large.png')}", file=sys.stderr)
    except ConfigError as error:
        print(f"  drawing: {error}", file=sys.stderr)
    before = _peak()
    preparing, large = timed(lambda: simulation(n, n // 20))
    runs = {"small": simulation(1000, 50), "large": large}
    found = in_rotation(runs, 3, {"small": 10})
    each = {name: 1e6 * found[name] / len(run.models) for name, run in runs.items()}
    return {
        "network built, s": (building, "<= 10"),
        **{f"certified {name}, s": (taken, "<= 60") for name, taken in certifying.items()},
        "peak memory of these, GB": (before / 1e9, ""),
        "simulation prepared, s": (preparing, ""),
        "seconds per round": (found["large"], ""),
        "us per worker, 1,000 workers": (each["small"], ""),
        f"us per worker, {n:,} workers": (each["large"], ""),
        "ratio": (each["large"] / each["small"], "<= 1.6"),
        "models, GB": (large.models.nbytes / 1e9, ""),
        "peak memory, GB": (_peak() / 1e9, "<= 14"),
    }


MEASURES = {measure.__name__: measure for measure in (growth, threads, dimension, startup, sparse)}


def main() -> None:
    quick = "--quick" in sys.argv
    chosen = [name for name in sys.argv[1:] if name in MEASURES] or list(MEASURES)
    if ALONE in sys.argv:
        print(json.dumps(MEASURES[chosen[0]](quick)))
        return
    for name in chosen:
        command = [sys.executable, __file__, name, ALONE, *(["--quick"] if quick else [])]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        print(f"| {name} (load {os.getloadavg()[0]:.1f}) | measured | goal |\n| --- | ---: | ---: |")
        for what, (value, bound) in json.loads(done.stdout.splitlines()[-1]).items():
            print(f"| {what} | {value:.3f} | {bound} |", flush=True)
        print(flush=True)


if __name__ == "__main__":
    main()
