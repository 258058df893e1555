"""The links of one round of a changing network as its liars know them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from byzmesh.attacks.base import Scene
from byzmesh.compiled import exact
from byzmesh.networks import Network, fiedler_vector
from byzmesh.records import made
from byzmesh.types import Array, Floats, Integers


@dataclass(frozen=True)
class Stage:
    """What is the same in every round of a changing network.

    network      with its liars
    acting       the network of the workers that aggregate: everybody, if the liars follow the protocol
    wrong_model, gradient  see `Scene`
    """

    network: Network
    acting: Network
    wrong_model: Callable[[int], Any]
    gradient: Callable[[Any], Any]

    @cached_property
    def row(self) -> Integers:
        """(n,) row of each worker that aggregates, -1 for the others."""
        row = np.full(self.network.n, -1, np.int64)
        row[self.acting.honest] = np.arange(len(self.acting.honest))
        return row

    @cached_property
    def _fiedler(self) -> Floats:
        return fiedler_vector(self.network.sparse_mixing(self.network.honest))

    def fiedler(self) -> Floats:
        """(N,) Fiedler vector of the honest workers' links in the network itself, whatever the round's are."""
        return self._fiedler


def round_scene(
    stage: Stage,
    receiver: Integers,
    slots: tuple[Array, Array, Array, Array],
    weight: Floats,
    metropolis: Floats,
    sizes: tuple[int, int, int],
) -> Scene:
    """The scene of a round.

    slots   sender, honest_row, valid and lying (R, K) of an `Exchange`; weight, metropolis (R, K) of the same slots
    sizes   number of lying slots, of receivers with one, and of the most honest senders to one of these
    """
    pairs, count, near = sizes
    ids, numbers = np.empty((3, pairs), np.int64), np.empty((4, count))
    victims, neighbour = np.empty(count, np.int64), np.empty((count, near), np.int64)
    around = np.empty((2, count, near))
    _scene(*slots, weight, metropolis, receiver, ids, victims, neighbour, around, numbers)
    return made(
        Scene,
        honest=stage.network.honest,
        byzantine=stage.network.byzantine,
        liar=ids[0],
        victim=ids[1],
        place=ids[2],
        victims=victims,
        neighbour=neighbour,
        weight=around[0],
        own_weight=numbers[0],
        lie_weight=numbers[1],
        metropolis_weight=around[1],
        metropolis_own=numbers[2],
        metropolis_lie=numbers[3],
        fiedler=stage.fiedler,
        wrong_model=stage.wrong_model,
        gradient=stage.gradient,
    )


@exact
def _scene(
    sender: Any,
    row: Any,
    valid: Any,
    lying: Any,
    weight: Any,
    metropolis: Any,
    receivers: Any,
    ids: Any,
    victims: Any,
    neighbour: Any,
    around: Any,
    numbers: Any,
) -> None:
    """Fill the arrays of a `Scene` from the slots of the inboxes."""
    pair, spot = 0, 0
    for r in range(sender.shape[0]):
        first, heard, told, told_metropolis = pair, 0, 0.0, 0.0
        for slot in range(1, sender.shape[1]):
            if lying[r, slot]:
                ids[0, pair], ids[1, pair], ids[2, pair] = sender[r, slot], receivers[r], spot
                told += weight[r, slot]
                told_metropolis += metropolis[r, slot]
                pair += 1
        if pair == first:
            continue
        for slot in range(1, sender.shape[1]):
            if valid[r, slot] and not lying[r, slot]:
                neighbour[spot, heard] = row[r, slot]
                around[0, spot, heard], around[1, spot, heard] = weight[r, slot], metropolis[r, slot]
                heard += 1
        for rest in range(heard, neighbour.shape[1]):
            neighbour[spot, rest], around[0, spot, rest], around[1, spot, rest] = -1, 0.0, 0.0
        victims[spot] = r
        numbers[0, spot], numbers[1, spot] = weight[r, 0], told
        numbers[2, spot], numbers[3, spot] = metropolis[r, 0], told_metropolis
        spot += 1
