"""NNM, nearest-neighbour mixing: every vector becomes the mean of its S - f nearest, then any rule.

With y_m what neighbour m sent:

    z_m = the mean of the S - f vectors nearest y_m, itself included
    x_n = rule(z_n; the z_m of the neighbours)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from byzmesh.rules.base import Block, Rule, normalised, rules
from byzmesh.rules.nearest import pick_least
from byzmesh.rules.preaggregate import Mixed, feasible_before, premixed


@rules.register("NNM", aliases=("nearest-neighbour-mixing",))
def nnm(inner: Rule | str = "TriMean") -> Rule:
    """Nearest-neighbour mixing: each vector becomes the mean of its S - f nearest, then the inner rule.

    >>> import byzmesh as bm
    >>> bm.aggregate(bm.nnm("coomed"), [0.0], [[1.0], [2.0], [90.0]], f=1)
    array([1.])
    """
    rule = rules.build(inner)

    def mixing(block: Block) -> Mixed:
        slots = block.present.shape[1]
        both = block.present[:, :, None] & block.present[:, None, :]
        distance = np.where(both, block.distance2, np.inf)
        distance[:, np.arange(slots), np.arange(slots)] = -1.0  # itself first, even if another equals it
        distance = np.where(both, distance, np.inf)
        picks = np.repeat(block.present.sum(axis=1) - block.f, slots)
        chosen = pick_least(distance.reshape(-1, slots), picks, block.tie).reshape(distance.shape)
        matrix = chosen / np.maximum(chosen.sum(axis=2, keepdims=True), 1)
        return matrix, normalised(block.present), block.present

    feasible = feasible_before(rule)
    return replace(premixed("NNM", rule, mixing, feasible, weighted=False), symmetric=rule.symmetric)
