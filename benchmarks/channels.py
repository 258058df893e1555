"""What a channel costs beside the aggregation that it serves: D = 1,000,000, twelve workers; one process.

    .venv/bin/python benchmarks/channels.py

Sending and receiving every worker's message, as a simulation does it, against one aggregation of all workers by
several rules, alternating, least processor time of nine. Beside them what nothing that makes new vectors can go below:
a copy of all models, into new memory and into memory that is there already.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

import byzmesh as bm
from byzmesh.channels import Channel
from byzmesh.compiled import keep_memory

WORKERS, DIMENSION, TIMES = 12, 1_000_000, 9
RULES = ("IOS", "CooMed", "TriMean", "GeoMed")
CHANNELS = ("int8", "rand-k", "float16", "bfloat16", "int4")


def carried(channel: Channel, models: np.ndarray) -> Callable[[], object]:
    """One round of messages, there and back, over the vectors of the round before."""
    state, ids = channel.start(models.copy()), np.arange(len(models))
    arrived = None

    def carry() -> None:
        nonlocal state, arrived
        payload = channel.send(models, state, 0, ids)
        arrived, state = channel.receive(payload, state, 0, ids, arrived)

    return carry


def main() -> None:
    """Print milliseconds and ratios."""
    keep_memory()
    models = np.random.default_rng(0).normal(size=(WORKERS, DIMENSION)).astype(np.float32)
    network, known = bm.network("two-castle", k=6), models.copy()
    work: dict[str, Callable[[], object]] = {
        rule: partial(bm.aggregate_all, rule, network, models, f=2) for rule in RULES
    }
    work |= {"new copy": models.copy, "copy": lambda: np.copyto(known, models)}
    work |= {name: carried(Channel(name, DIMENSION), models) for name in CHANNELS}
    sketch = Channel("sketch", DIMENSION)
    work["sketch"] = lambda: sketch.sketches(models)
    best = dict.fromkeys(work, float("inf"))
    for _ in range(TIMES):
        for name, run in work.items():
            began = time.process_time()
            run()
            best[name] = min(best[name], time.process_time() - began)
    for name, seconds in best.items():
        parts = ", ".join(f"{seconds / best[rule]:.2f} of {rule}" for rule in RULES)
        print(f"{name:10} {1e3 * seconds:7.1f} ms  {parts}")


if __name__ == "__main__":
    main()
