"""What a channel costs beside the aggregation that it serves: D = 1,000,000, twelve workers, IOS; one process.

    .venv/bin/python benchmarks/channels.py

Sending and receiving every worker's message against one aggregation of all workers, alternating, least processor time
of nine; beside them a copy of all models, the least that anything which makes new vectors can take.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import byzmesh as bm
from byzmesh.channels import Channel

WORKERS, DIMENSION, TIMES = 12, 1_000_000, 9


def carried(channel: Channel, models: np.ndarray) -> Callable[[], object]:
    """One round of messages, there and back."""
    state, ids = channel.start(models.copy()), np.arange(len(models))
    return lambda: channel.receive(channel.send(models, state, 0, ids), state, 0, ids)


def main() -> None:
    """Print milliseconds and ratios."""
    models = np.random.default_rng(0).normal(size=(WORKERS, DIMENSION)).astype(np.float32)
    network = bm.network("two-castle", k=6)
    work: dict[str, Callable[[], object]] = {
        "IOS": lambda: bm.aggregate_all("ios", network, models, f=2),
        "copy": lambda: models.copy(),
    }
    work |= {
        name: carried(Channel(name, DIMENSION), models) for name in ("int8", "rand-k", "float16", "bfloat16", "int4")
    }
    best = dict.fromkeys(work, float("inf"))
    for _ in range(TIMES):
        for name, run in work.items():
            began = time.process_time()
            run()
            best[name] = min(best[name], time.process_time() - began)
    for name, seconds in best.items():
        print(f"{name:10} {1e3 * seconds:7.1f} ms  {seconds / best['IOS']:.2f} of an aggregation")


if __name__ == "__main__":
    main()
