"""WeightedKrum: the vector nearest to the others that outweigh what lies can weigh.

The score of a vector is the sum of w' times the squared distance over its nearest vectors, itself first, as many as
weigh 1 - b' together (of the last one a part). b' is the weight of the f + 1 heaviest neighbours, or b and the heaviest
one if b is given and that is less. A vector that weighs 1 - b' alone needs no others: its score is 0. With equal
weights this is Krum, whose S - f - 2 nearest others leave out f + 1 too.
"""

from __future__ import annotations

import numpy as np

from byzmesh.heaviest import of_the_heaviest
from byzmesh.rules.base import Block, Rule, rules
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.rules.krum import ALL_BUT_TWO
from byzmesh.rules.nearest import nearest_of_weight, pick_least
from byzmesh.types import Booleans, Floats


def weighted_scores(distance2: Floats, weight: Floats, present: Booleans, lies: Floats, tie: float) -> Floats:
    """(R, K) weighted squared distances to the nearest, itself included, of weight 1 - b'; infinity where absent."""
    counted = nearest_of_weight(distance2, weight, present, 1.0 - lies, tie)
    total = np.where(counted > 0.0, counted * distance2, 0.0).sum(axis=2)
    return np.where(present, total, np.inf)


def left_out(block: Block) -> Floats:
    """(R,) b': the weight of the f + 1 heaviest neighbours that were heard, at most b and that of the heaviest."""
    heard = np.where(block.present, block.weight, 0.0)[:, 1:]
    most = of_the_heaviest(block.f + 1, heard)
    return most if block.b is None else np.minimum(most, block.b + heard.max(axis=1, initial=0.0))


@rules.register("WeightedKrum", aliases=("wkrum",))
def weighted_krum() -> Rule:
    """Krum by weights: the vector nearest to the nearest vectors, itself included, of weight 1 - b'.

    >>> import byzmesh as bm
    >>> bm.aggregate("wkrum", [0.0], [[1.0], [1.1], [9.0]], weights=[0.1, 0.4, 0.3, 0.2], f=1)
    array([1.])
    """

    def coefficients(block: Block) -> Floats:
        scores = weighted_scores(block.distance2, block.weight, block.present, left_out(block), block.tie)
        return pick_least(scores, np.ones(len(scores), np.int64), block.tie).astype(np.float64)

    return gram_rule("WeightedKrum", coefficients, feasible=ALL_BUT_TWO, uses_weights=True, virtual_mixing="to-own")
