"""NNA, nearest-neighbour averaging: the mean of the S - f vectors nearest the receiver's own."""

from __future__ import annotations

import numpy as np

from byzmesh.rules.base import Block, Rule, normalised, rules
from byzmesh.rules.contraction import MEAN_WITHOUT_CUTS
from byzmesh.rules.feasible import BELOW_NEIGHBOURS
from byzmesh.rules.gram.rule import gram_rule
from byzmesh.rules.nearest import pick_least
from byzmesh.types import Floats


@rules.register("NNA", aliases=("nearest-neighbour-averaging", "monna"))
def nna() -> Rule:
    """Nearest-neighbour averaging: the plain mean of the S - f vectors closest to its own (itself included)."""

    def coefficients(block: Block) -> Floats:
        distance = np.where(block.present, np.einsum("rkk->rk", block.inner), np.inf)
        distance[:, 0] = -1.0  # its own comes first even where another equals it
        return normalised(pick_least(distance, block.present.sum(axis=1) - block.f, block.tie))

    return gram_rule("NNA", coefficients, feasible=BELOW_NEIGHBOURS, keeps_own=True, contraction=MEAN_WITHOUT_CUTS)
