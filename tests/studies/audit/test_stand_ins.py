"""Who might lie instead: as many as trying all of them finds, and worlds that look alike to everybody else."""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

import byzmesh as bm
from byzmesh.config.schema import resolve
from byzmesh.networks import Network
from byzmesh.studies.audit import stand_ins as room
from byzmesh.studies.audit.stand_ins import stand_ins
from byzmesh.studies.audit.unavoidable import Unavoidable, unavoidable
from tests.studies.audit.test_committed import REPORT, column


def network(seed: int) -> bm.Network:
    """Up to nine nodes, up to three liars; every third one directed, some very regular."""
    random = np.random.default_rng(seed)
    nodes = int(random.integers(4, 10))
    liars = [int(node) for node in random.permutation(nodes)[: random.integers(1, 4)]]
    if seed % 3 == 0:
        return bm.network("k-in", n=nodes, k=3, seed=seed, byzantine=liars)
    if seed % 3 == 1:
        return bm.network("complete" if seed % 2 else "ring", n=nodes, byzantine=liars)
    return bm.network("erdos-renyi", n=nodes, p=float(random.uniform(0.3, 0.9)), seed=seed, byzantine=liars)


def lying_neighbours(net: Network, liars: set[int], worker: int) -> int:
    return sum(int(net.adjacency[worker, liar] != 0) for liar in liars)


def most(net: Network) -> int:
    """The largest exchange, by trying all."""
    honest, liars = net.honest.tolist(), set(net.byzantine.tolist())
    found = 0
    for count in range(1, min(len(liars), len(honest) - 1) + 1):
        for out, instead in itertools.product(
            itertools.combinations(sorted(liars), count), itertools.combinations(honest, count)
        ):
            world = liars - set(out) | set(instead)
            rest = [worker for worker in honest if worker not in instead]
            if all(lying_neighbours(net, liars, n) == lying_neighbours(net, world, n) for n in rest):
                found = count
    return found


def check(seeds: range) -> list[int]:
    sizes = []
    for seed in seeds:
        net = network(seed)
        exchanged, instead = stand_ins(net)
        liars = set(net.byzantine.tolist())
        world = liars - set(exchanged.tolist()) | set(instead.tolist())
        assert len(world) == len(liars)
        for worker in set(net.honest.tolist()) & (set(range(net.n)) - world):
            assert lying_neighbours(net, liars, worker) == lying_neighbours(net, world, worker), "somebody notices"
        assert len(instead) == most(net), "the largest"
        sizes.append(len(instead))
    return sizes


def test_it_is_the_largest_exchange_that_nobody_notices() -> None:
    sizes = check(range(60))
    assert {0, 1, 2} <= set(sizes), "all answers occur, or this tests nothing"


@pytest.mark.parametrize("checked", [True, False])
def test_a_wrong_exchange_is_caught(checked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that exchanges the last liar and the last honest worker without asking anybody."""

    def careless(wanted: Any, **given: Any) -> Any:
        taken = np.zeros(len(wanted))
        taken[[np.flatnonzero(wanted == 0.0)[-1], -1]] = 1.0
        return SimpleNamespace(x=taken)

    monkeypatch.setattr("scipy.optimize.milp", careless)
    if not checked:
        monkeypatch.setattr(room, "unnoticed", lambda net, exchanged, instead: True)
    with pytest.raises(AssertionError, match="the largest" if checked else "somebody notices"):
        check(range(60))


def test_no_liars_one_honest_worker_and_large_networks_have_none() -> None:
    for net in (
        bm.network("ring", n=5),
        bm.network("complete", n=3, byzantine=[0, 1]),
        bm.network("complete", n=room.LARGEST + 1, byzantine=[0]),
    ):
        assert [len(part) for part in stand_ins(net)] == [0, 0]


def test_what_is_unavoidable_with_exact_f_is_said_where_it_is_proved() -> None:
    problem: dict[str, Any] = {"name": "quadratic", "targets": "normal"}
    castle = {"problem": problem, "network": "paper/two-castle"}
    told = unavoidable(resolve(castle))
    assert told.stand_ins == (1, 3) and not told.classifies
    assert (
        "It holds for a rule that is told more, each worker's own number of liars (f: exact), too: workers 1, 3 "
        in str(told)
    )
    assert unavoidable(resolve({**castle, "process": {"name": "sleep", "p": 0.1}})).stand_ins == ()
    assert "nothing of this is proved" in str(unavoidable(resolve({"problem": problem, "network": "paper/er-12"})))
    fewer = Unavoidable(honest=10, liars=2, zeta=6.0, delta_out=9.0, b=0.1, mu_2=0.7, initial=1.0, stand_ins=(4,))
    assert "(f: exact), it is 4 and 95.0%: worker 4 might lie instead" in str(fewer)
    assert "Both hold for a rule that is told more" in str(replace(fewer, liars=1)), "the gradient and the accuracy"


def test_the_report_says_of_which_columns_it_is_proved() -> None:
    said = {}
    for line in (
        (REPORT / "README.md").read_text(encoding="utf-8").split("f exact, too |")[1].split("\n\n")[0].splitlines()
    ):
        name, *cells = [part.strip() for part in line.strip("|").split("|")]
        if column(name):
            said[column(name)] = cells[-1] == "yes"
    assert len(said) == 20
    for file, proved in said.items():
        net = Network.from_spec(
            resolve(yaml.safe_load((REPORT / f"{file}.yaml").read_text(encoding="utf-8")))["network"]
        )
        assert (len(stand_ins(net)[1]) == len(net.byzantine)) is proved, file
