"""Attacks that send true models of honest workers, which no distance filter can call outliers.

    sample-duplicating   the model of an honest neighbour of the victim, drawn again in every round
    mimic                the model of one honest worker, always the same

Both starve the network of information: some honest data are counted twice and, by a rule that drops, others not at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh import rng
from byzmesh.attacks.base import Attack, Combination, Forged, Scene, View, attacks
from byzmesh.attacks.parts import Plan, heard, pair_ids, send
from byzmesh.checks import flag
from byzmesh.types import Integers

CHOICE = 2
"""The random stream of this file among those of the attacks."""


@dataclass(frozen=True)
class Draws:
    """What to draw in every round: for each of Q messages its random stream and the rows it may copy.

    ids (Q,), sample (Q, 1 + J) of which the first count (Q,) columns are drawn from, row (F,) message of each pair
    """

    ids: Integers
    sample: Integers
    count: Integers
    row: Integers


@attacks.register("sample-duplicating", aliases=("duplicate", "sample-duplicate"), published={"together": True})
def sample_duplicating(together: bool = False) -> Attack:
    """The model of a random honest neighbour of the victim, drawn again in every round.

    Each liar draws for itself (the text), or all liars of a victim send the same draw if `together` (the published
    runs). A victim without honest neighbours gets its own model.

    >>> sample_duplicating(together=True).options["together"]
    True
    """
    flag("attack sample-duplicating: together", together)

    def init(scene: Scene) -> Draws:
        sample, count = heard(scene)
        if together:
            return Draws(scene.honest[scene.victims], sample, count, scene.place)
        return Draws(pair_ids(scene), sample[scene.place], count[scene.place], np.arange(len(scene.place)))

    def forge(view: View, draws: Draws) -> tuple[Forged, Draws]:
        key = rng.key(view.round.seed, rng.ATTACK, CHOICE)
        column = rng.integers(key, draws.ids, view.round.number, 1, draws.count)
        chosen = draws.sample[np.arange(len(column))[:, None], column]
        return send(view, Plan(draws.row, Combination(chosen, np.ones(chosen.shape)))), draws

    return Attack("sample-duplicating", forge, init=init, options={"together": together})


@attacks.register("mimic")
def mimic() -> Attack:
    """A copy of one fixed honest worker: the one farthest along the top direction of honest variation.

    It is chosen in the first round in which it is told and kept in the state (a row; -1 before).

    >>> mimic().name
    'mimic'
    """

    def init(scene: Scene) -> int:
        return -1

    def forge(view: View, chosen: int) -> tuple[Forged, int]:
        if chosen < 0:
            chosen = most_singular(view.models)
        row = np.zeros(len(view.scene.liar), np.int64)
        messages = min(len(row), 1)
        copy = Combination(np.full((messages, 1), chosen), np.ones((messages, 1)))
        return send(view, Plan(row, copy)), chosen

    return Attack("mimic", forge, init=init)


def most_singular(models: Any) -> int:
    """Row of the (N, D) models farthest from their mean along the first principal direction; the first among equals.

    The projections on that direction are, up to a factor, the top eigenvector of the centred (N, N) Gram matrix.

    >>> most_singular(np.array([[0.0, 0.0], [1.0, 0.1], [-5.0, 0.0], [1.0, 9.0]]))
    3
    """
    centred = models - models.mean(axis=0, dtype=np.float64).astype(models.dtype)
    centred = np.ldexp(centred, -np.frexp(np.abs(centred).max())[1])  # exact, and no product overflows
    gram = (centred @ centred.T).astype(np.float64)
    distance = np.abs(np.linalg.eigh(gram)[1][:, -1])
    return int(np.argmax(distance >= (1.0 - 1e-6) * distance.max()))
