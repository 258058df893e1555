"""What liars see: the graph once (`make_scene`), the honest models in every round (`make_view`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from byzmesh.attacks.base import Scene, View, Weigh
from byzmesh.round import Round
from byzmesh.types import Booleans, Floats, Integers


def make_scene(
    adjacency: Booleans,
    honest: Integers,
    byzantine: Integers,
    *,
    mixing: Floats,
    metropolis: Floats,
    fiedler: Callable[[], Floats],
) -> Scene:
    """The graph as known to liars that see these honest workers.

    adjacency           (n, n) links
    honest, byzantine   ids of the honest workers that are seen, and of the liars; other nodes and their weights are
                        left out
    mixing, metropolis  (n, n) the weights in use, and Metropolis-Hastings weights
    fiedler             see `Scene`

    >>> ring = np.roll(np.eye(4, dtype=bool), 1, axis=1) | np.roll(np.eye(4, dtype=bool), -1, axis=1)
    >>> third = (ring | np.eye(4, dtype=bool)) / 3
    >>> weights = {"mixing": third, "metropolis": third, "fiedler": lambda: third[0]}
    >>> seen = make_scene(ring, np.array([1, 2, 3]), np.array([0]), **weights)
    >>> seen.victims, seen.neighbour, seen.lie_weight.round(2)
    (array([0, 2]), array([[1],
           [1]]), array([0.33, 0.33]))
    """
    links = adjacency[np.ix_(honest, honest)]
    lies = adjacency[np.ix_(honest, byzantine)]
    victims = np.flatnonzero(lies.any(axis=1)).astype(np.int64)
    pair_victim, pair_liar = np.nonzero(lies)
    count = links[victims].sum(axis=1)
    neighbour = np.full((len(victims), int(count.max(initial=0))), -1, np.int64)
    row, column = np.nonzero(links[victims])
    first = np.concatenate([[0], np.cumsum(count)[:-1]]) if len(count) else count
    neighbour[row, np.arange(len(row)) - first[row]] = column

    def weights(matrix: Floats) -> tuple[Floats, Floats, Floats]:
        block = matrix[np.ix_(honest[victims], honest)]
        near = np.where(neighbour >= 0, np.take_along_axis(block, np.maximum(neighbour, 0), axis=1), 0.0)
        own = matrix[honest[victims], honest[victims]]
        return near, own, (matrix[np.ix_(honest[victims], byzantine)] * lies[victims]).sum(axis=1)

    weight, own_weight, lie_weight = weights(mixing)
    metropolis_weight, metropolis_own, metropolis_lie = weights(metropolis)
    return Scene(
        honest=honest,
        byzantine=byzantine,
        liar=byzantine[pair_liar],
        victim=honest[pair_victim],
        place=np.searchsorted(victims, pair_victim),
        victims=victims,
        neighbour=neighbour,
        weight=weight,
        own_weight=own_weight,
        lie_weight=lie_weight,
        metropolis_weight=metropolis_weight,
        metropolis_own=metropolis_own,
        metropolis_lie=metropolis_lie,
        fiedler=fiedler,
    )


def make_view(
    models: Any,
    scene: Scene,
    round: Round,
    respond: Callable[[Any], Any] | None = None,
    weigh: Weigh | None = None,
) -> View:
    """What liars see in a round in which the honest workers send these models (N, D), a NumPy array."""
    shown = models.view()
    shown.flags.writeable = False
    return View(models=shown, scene=scene, round=round, respond=respond, weigh=weigh)
