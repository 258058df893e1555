"""Bucketing: means of random groups of s neighbours, then any rule. f liars corrupt at most f groups.

With y_m what neighbour m sent:

    z_g = the mean of the y_m in group g
    x_n = rule(x_n; z_1, ..., z_ceil(d/s))
"""

from __future__ import annotations

import numpy as np

from byzmesh import rng
from byzmesh.checks import whole
from byzmesh.rules.base import Block, Rule, rules
from byzmesh.rules.feasible import Feasible
from byzmesh.rules.preaggregate import Mixed, premixed


@rules.register("bucketing")
def bucketing(inner: Rule | str = "IOS", s: int = 2) -> Rule:
    """Bucketing: means of random groups of s neighbours, then the inner rule.

    >>> bucketing("Krum", s=2).largest_f(9)
    3
    """
    rule = rules.build(inner)
    whole("rule bucketing: s", s, 1)

    def mixing(block: Block) -> Mixed:
        receivers, slots = block.present.shape
        groups = -(-(slots - 1) // s)
        draw = rng.uniforms(rng.key(block.round.seed, rng.RULE), block.receiver, block.round.number, slots - 1)
        draw[~block.present[:, 1:]] = 2.0
        place = np.empty((receivers, slots - 1), np.int64)
        np.put_along_axis(place, draw.argsort(axis=1, kind="stable"), np.arange(slots - 1)[None, :], axis=1)
        member = (place[:, None, :] // s == np.arange(groups)[None, :, None]) & block.present[:, None, 1:]
        size = member.sum(axis=2)
        matrix = np.zeros((receivers, groups + 1, slots))
        matrix[:, 0, 0] = 1.0
        matrix[:, 1:, 1:] = member / np.maximum(size, 1)[:, :, None]
        weight = np.empty((receivers, groups + 1))
        weight[:, 0] = block.weight[:, 0]
        weight[:, 1:] = np.einsum("rgk,rk->rg", member, block.weight[:, 1:])
        present = np.concatenate([np.ones((receivers, 1), bool), size > 0], axis=1)
        return matrix, weight, present

    def largest_f(neighbours: int) -> int:
        return rule.largest_f(-(-neighbours // s))

    def resisted(messages: int) -> int:
        groups = -(-messages // s)
        return groups if rule.feasible is None else rule.feasible.resisted(groups)

    feasible = Feasible("that of the inner rule for ceil(d / s) neighbours", largest_f, resisted)
    return premixed("bucketing", rule, mixing, feasible, weighted=True, s=s)
