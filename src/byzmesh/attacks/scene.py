"""What liars see: the graph once (`make_scene`), the honest models in every round (`make_view`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from byzmesh.attacks.base import Attack, Ranks, Scene, State, View, Weigh
from byzmesh.records import made
from byzmesh.round import Round
from byzmesh.sparse import row_sums
from byzmesh.types import Floats, Integers


def make_scene(
    receiver: Integers,
    sender: Integers,
    honest: Integers,
    byzantine: Integers,
    *,
    mixing: tuple[Floats, Floats],
    metropolis: tuple[Floats, Floats],
    fiedler: Callable[[], Floats],
) -> Scene:
    """The graph as known to liars that see these honest workers.

    receiver, sender    (E,) who hears whom, sorted by receiver, then by sender
    honest, byzantine   ids, ascending, of the honest workers that are seen, and of the liars; other nodes and their
                        weights are left out
    mixing, metropolis  (link (E,), own (n,)): the weights in use, and Metropolis-Hastings weights
    fiedler             see `Scene`

    >>> third = (np.full(8, 1 / 3), np.full(4, 1 / 3))
    >>> ring = (np.array([0, 0, 1, 1, 2, 2, 3, 3]), np.array([1, 3, 0, 2, 1, 3, 0, 2]))
    >>> weights = {"mixing": third, "metropolis": third, "fiedler": lambda: third[1]}
    >>> seen = make_scene(*ring, np.array([1, 2, 3]), np.array([0]), **weights)
    >>> seen.victims, seen.neighbour, seen.lie_weight.round(2)
    (array([0, 2]), array([[1],
           [1]]), array([0.33, 0.33]))
    """
    row = np.full(len(mixing[1]), -1, np.int64)
    row[honest] = np.arange(len(honest))
    lies = np.zeros(len(row), bool)
    lies[byzantine] = True
    told = np.flatnonzero((row[receiver] >= 0) & lies[sender])
    victims = np.unique(row[receiver[told]])
    place = np.full(len(row), -1, np.int64)
    place[honest[victims]] = np.arange(len(victims))
    near = np.flatnonzero((place[receiver] >= 0) & (row[sender] >= 0))
    at = place[receiver[near]]
    count = np.bincount(at, minlength=len(victims))
    slot = np.arange(len(near)) - (np.cumsum(count) - count)[at]
    shape, lying = (len(victims), int(count.max(initial=0))), (len(victims), len(byzantine))
    neighbour = np.full(shape, -1, np.int64)
    neighbour[at, slot] = row[sender[near]]

    def weights(given: tuple[Floats, Floats]) -> tuple[Floats, Floats, Floats]:
        link, own = given
        around = np.zeros(shape)
        around[at, slot] = link[near]
        lie = row_sums(place[receiver[told]], np.searchsorted(byzantine, sender[told]), link[told], lying)
        return around, own[honest[victims]], lie

    weight, own_weight, lie_weight = weights(mixing)
    metropolis_weight, metropolis_own, metropolis_lie = weights(metropolis)
    return Scene(
        honest=honest,
        byzantine=byzantine,
        liar=sender[told],
        victim=receiver[told],
        place=place[receiver[told]],
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
    foresee: Callable[[Attack, State, int], float] | None = None,
    before: Any = None,
    ranks: Ranks | None = None,
) -> View:
    """What liars see in a round in which the honest workers send these models (N, D), a NumPy array."""
    shown = models.view()
    shown.setflags(write=False)
    return made(
        View,
        models=shown,
        scene=scene,
        round=round,
        respond=respond,
        weigh=weigh,
        foresee=foresee,
        before=before,
        ranks=ranks,
    )
