"""ARC, adaptive robust clipping: clip the vectors farthest from its own to the next distance, then any rule.

    y_m <- x_n + min(1, r / ||y_m - x_n||) (y_m - x_n),   r the k + 1st largest distance,   k = floor(2 f (S - f) / S)

The publication clips gradients about 0 (Allouah et al. 2024); models are clipped about the receiver's own, so that a
shift of all models changes nothing. As k >= f for 2f <= S, no lie stays farther away than the farthest honest model.
"""

from __future__ import annotations

import numpy as np

from byzmesh.rules.base import Block, Rule, rules
from byzmesh.rules.feasible import Feasible, below_half_of_all
from byzmesh.rules.gossip import reach2, shrinking
from byzmesh.rules.preaggregate import Mixed, premixed


@rules.register("ARC", aliases=("adaptive-robust-clipping",))
def arc(inner: Rule | str = "IOS") -> Rule:
    """Adaptive robust clipping: the floor(2 f (S - f) / S) farthest come as near as the next, then the inner rule.

    >>> import byzmesh as bm
    >>> bm.aggregate(bm.arc("weimean"), [0.0], [[1.0], [2.0], [90.0]], f=1)
    array([1.25])
    """
    rule = rules.build(inner)

    def mixing(block: Block) -> Mixed:
        receivers, slots = block.present.shape
        vectors = block.present.sum(axis=1)
        clipped = 2 * block.f * (vectors - block.f) // vectors
        distance2 = np.where(block.present, reach2(block), -1.0)  # absent slots are the nearest, and never the radius
        radius2 = np.sort(distance2, axis=1)[np.arange(receivers), slots - 1 - clipped]
        factor = np.where(block.present, shrinking(distance2, radius2), 0.0)
        matrix = factor[:, :, None] * np.eye(slots)
        matrix[:, :, 0] += 1.0 - factor
        return matrix, block.weight, block.present

    def largest_f(neighbours: int) -> int:
        return min(below_half_of_all(neighbours), rule.largest_f(neighbours))

    def resisted(messages: int) -> int:
        most = below_half_of_all(messages)
        return most if rule.feasible is None else min(most, rule.feasible.resisted(messages))

    feasible = Feasible("2f < d + 1 and that of the inner rule", largest_f, resisted)
    return premixed("ARC", rule, mixing, feasible, weighted=True)
