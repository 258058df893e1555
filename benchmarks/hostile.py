"""What a lying or hostile neighbour costs honest peers, as ratios of round rates within one run.

    python -m benchmarks.hostile [repeats]

1. Five honest peers, complete graph, D = 7,850, one hostile neighbour with a valid key: rounds per second under each
   behaviour, under a flood and under connections that never finish their greeting, beside the rate before and after.
2. Two-castle with two silent liars, whom every peer waits for, beside the same twelve peers all honest.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.peers.hostile import Hostile, Siege, behaviours, flooding, siege, slow_lorises
from tests.peers.networks import two_castle

from byzmesh.peers.drill.drill import Drill, Nursery


def rate(hostile: Hostile, act: Callable[[], object] | None = None, seconds: float = 1.0) -> float:
    """Rounds per second of the honest peers while the hostile one acts a hundred times a second."""
    first, began = hostile.listen(0.0), time.monotonic()
    while time.monotonic() - began < seconds:
        if act is not None:
            act()
        hostile.listen(0.01)
    return (hostile.round - first) / (time.monotonic() - began)


def report(name: str, ratios: list[float]) -> None:
    """One line: the median of the ratios, and all of them."""
    print(f"{name:12} {statistics.median(ratios):5.2f}   ({', '.join(f'{ratio:.2f}' for ratio in sorted(ratios))})")


@contextmanager
def lorises(made: Siege) -> Iterator[None]:
    """Hold the slow connections open."""
    connections = slow_lorises(made)
    try:
        yield
    finally:
        for connection in connections:
            connection.close()


def hostile_neighbours(nursery: Nursery, repeats: int) -> None:
    """Each behaviour beside the rate without it, before and after."""
    with tempfile.TemporaryDirectory() as name, siege(Path(name), nursery) as made:
        acts = {**behaviours(made), "flood": flooding(made)}
        ratios: dict[str, list[float]] = {name: [] for name in (*acts, "slow loris")}
        for _ in range(repeats):
            for name, act in acts.items():
                before = rate(made.hostile)
                during = rate(made.hostile, act)
                ratios[name].append(2 * during / (before + rate(made.hostile)))
            before = rate(made.hostile)
            with lorises(made):
                during = rate(made.hostile)
            ratios["slow loris"].append(2 * during / (before + rate(made.hostile)))
        for name, values in ratios.items():
            report(name, values)


def seconds_per_round(nursery: Nursery, liars: tuple[int, ...]) -> float:
    """Median over the honest peers of the time between rounds 30 and 90."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        two_castle(folder, rounds=90, evaluate_every=30, timeouts={"linger": 2.0, "start_grace": 0.5})
        with Drill(folder / "network.yaml", folder / "out", byzantine=liars, nursery=nursery) as drill:
            drill.start()
            if not drill.wait(120):
                raise SystemExit("the peers did not finish")
        spans: list[float] = []
        for peer in set(range(12)) - {7, 9}:
            lines = [json.loads(line) for line in (folder / "out" / f"{peer}.log").read_text().splitlines()]
            when = {line["round"]: line["time"] for line in lines if line["event"] == "evaluated"}
            spans.append((when[90] - when[30]) / 60)
    return statistics.median(spans)


def main() -> None:
    """Print both parts."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    nursery = Nursery()
    try:
        print("round rate of honest peers under a behaviour / without it: median (all)")
        hostile_neighbours(nursery, repeats)
        ratios = [seconds_per_round(nursery, ()) / seconds_per_round(nursery, (7, 9)) for _ in range(repeats)]
        report("silent liars", ratios)
    finally:
        nursery.close()


if __name__ == "__main__":
    main()
