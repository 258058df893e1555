"""Time of one round's forging per attack, relative to one small matrix product; prints a table of ratios.

    python benchmarks/attacks.py [--dimension 7850] [--dtype float32]

The scene is the published two-castle graph (10 honest workers, liars 7 and 9). The unit is the product
(12 x D) @ (D x 12), timed in the same run, single thread. `messages` also builds the vectors of attacks that return
combinations; rules that work on coefficients never need them.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from byzmesh.attacks import Scene, View, attacks
from byzmesh.errors import ConfigError


def two_castle_scene(k: int = 6, liars: tuple[int, ...] = (7, 9)) -> Scene:
    """The published scene, with Metropolis-Hastings weights (all nodes have the same degree)."""
    nodes = np.arange(2 * k)
    apart = np.abs(nodes[:, None] - nodes[None, :])
    adjacency = ((nodes[:, None] < k) == (nodes[None, :] < k)) | (apart != k)
    np.fill_diagonal(adjacency, False)
    honest = np.array([n for n in nodes if n not in liars])
    degree = 2 * k - 2
    neighbour = np.full((len(honest), degree), -1)
    for row, n in enumerate(honest):
        rows = np.flatnonzero(adjacency[n, honest])
        neighbour[row, : len(rows)] = rows
    place, column = np.nonzero(adjacency[np.ix_(honest, np.array(liars))])
    weight = np.where(neighbour >= 0, 1.0 / (degree + 1), 0.0)
    own = np.full(len(honest), 1.0 / (degree + 1))
    lie = np.bincount(place) / (degree + 1)
    liar = np.array(liars)[column]
    return Scene(
        honest=honest,
        byzantine=np.array(liars),
        liar=liar,
        victim=honest[place],
        place=place,
        victims=np.arange(len(honest)),
        neighbour=neighbour,
        weight=weight,
        own_weight=own,
        lie_weight=lie,
        metropolis_weight=weight,
        metropolis_own=own,
        metropolis_lie=lie,
        fiedler=lambda: np.zeros(len(honest)),
    )


def best_time(call: Callable[[], object], repeats: int = 30, budget: float = 0.004) -> float:
    """Seconds per call: the best of several batches, each of about `budget` seconds."""
    call()
    start = time.perf_counter()
    call()
    number = max(1, int(budget / max(time.perf_counter() - start, 1e-7)))
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(number):
            call()
        best = min(best, (time.perf_counter() - start) / number)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--dimension", type=int, default=7850)
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    arguments = parser.parse_args()
    scene = two_castle_scene()
    generator = np.random.default_rng(0)
    pool = generator.normal(size=(12, arguments.dimension)).astype(arguments.dtype)
    view = View(models=pool[:10], scene=scene)
    other = pool.T.copy()
    unit = best_time(lambda: pool @ other)
    print(f"D = {arguments.dimension}, {arguments.dtype}; unit: (12 x D) @ (D x 12) = {unit * 1e6:.1f} us")
    print(f"{'attack':24} {'forge':>8} {'messages':>9}")
    for entry in attacks.entries():
        made = entry.factory()
        if made.poisons_data:
            continue
        try:
            _, state = made.forge(view, made.init(scene))
        except ConfigError:  # it tries its lies on a rule: what it costs is the rule's cost
            continue
        forge = partial(made.forge, view, state)
        forging, messages = best_time(forge), best_time(lambda forge=forge: forge()[0].dense())  # type: ignore[misc]
        print(f"{entry.name:24} {forging / unit:8.2f} {messages / unit:9.2f}")


if __name__ == "__main__":
    main()
