"""Detours prove that the honest workers stay connected: no admitted liars, of all there are, cut such a graph."""

from __future__ import annotations

from itertools import chain, combinations
from typing import Any

import numpy as np
import pytest

from byzmesh.networks import Network
from byzmesh.theory.connectivity import connectivity
from byzmesh.theory.detours import without_detour
from byzmesh.theory.question import Question, ask


def cut(question: Question) -> tuple[int, ...] | None:
    """Liars that are possible and leave the honest workers in pieces, by trying all; None if there are none."""
    nodes = range(question.network.n)
    for liars in chain.from_iterable(combinations(nodes, size) for size in nodes):
        if question.admits(list(liars)) and not question.network.with_byzantine(list(liars)).honest_connected:
            return liars
    return None


def questions(count: int) -> list[Question]:
    draw = np.random.default_rng(8)
    asked = []
    for _ in range(count):
        n = int(draw.integers(4, 9))
        links = np.triu(draw.random((n, n)) < draw.uniform(0.3, 0.95), 1)
        f: Any = int(draw.integers(0, 4)) if draw.random() < 0.5 else draw.integers(0, 3, n)
        asked.append(ask(Network.from_adjacency(links | links.T), f))
    return asked


def test_no_liars_cut_a_graph_with_detours() -> None:
    proved = [asked for asked in questions(200) if asked.network.honest_connected and not without_detour(asked)]
    assert len(proved) > 50
    assert [cut(asked) for asked in proved] == [None] * len(proved)


@pytest.mark.parametrize("n", [14, 60])
def test_a_ring_with_chords_tolerates_fewer_liars_than_it_reaches(n: int) -> None:
    """The outermost neighbours of a node have only it in common, but all of them hang together."""
    step = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    for reach in (1, 2, 3):
        links = Network.from_adjacency((step > 0) & (np.minimum(step, n - step) <= reach))
        for f in (1, 2, 3):
            asked = ask(links, f)
            assert without_detour(asked) == ([] if f < reach else list(range(n)))
            if f < reach:
                assert connectivity(asked, seconds=0.0).verdict.status == "proved"
