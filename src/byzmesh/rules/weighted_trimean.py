"""WeightedTriMean: per coordinate the weighted mean without the smallest and the largest neighbours of weight b each.

b is the weight of the f heaviest neighbours, or what lies weigh at most if that is given and less. A neighbour at the
border counts in part. If lies weigh b at most, what is left of each coordinate lies between honest values. With equal
weights this is TriMean. 2 f < d: a worker with one or two neighbours cuts nothing.

For every point c, with h < 1/2 the weight of the f heaviest, f lies and sums over the honest, own included
(`Rule.square_error`),

    ||x_n - c||^2 <= 2 / (1 - 2 h) sum_m w'_nm ||y_m - c||^2

Proof. Sort a coordinate of the neighbours, T their weight. Where the weight below is p, b <= p <= T - b, the value is
at most the honest neighbours' where theirs is p, and at least theirs where it is p less the lies' weight, which is at
most b. So over what is left, of weight 1 - 2 b with its own, squared distances from c sum to at most twice the honest
ones'. The square of a mean is at most the mean of squares; add up the coordinates. If nothing is left of the
neighbours, the result is its own model, which then weighs at least 1 - 2 h.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from byzmesh.rules.base import Inbox, Rule, rules
from byzmesh.rules.contraction import MEAN_WITHOUT_CUTS, twice_over_the_middle
from byzmesh.rules.coordinate import coordinate_rule, vectors
from byzmesh.rules.feasible import BELOW_HALF
from byzmesh.rules.gossip import lying_weight
from byzmesh.rules.interop import from_host, to_host
from byzmesh.rules.ranks.weighted import weighted_trimmed_mean
from byzmesh.types import Booleans, Integers


@rules.register("WeightedTriMean", aliases=("weighted-trimmed-mean", "wtm"))
def weighted_trimean() -> Rule:
    """Trimmed mean by the mixing weights: own and, per coordinate, the neighbours without weight b at either end.

    >>> import byzmesh as bm
    >>> bm.aggregate("wtm", [0.0], [[1.0], [2.0], [90.0]], weights=[0.4, 0.2, 0.3, 0.1], b=0.1).round(4)
    array([0.875])
    """

    def models(inbox: Inbox, f: Integers, present: Booleans) -> Any:
        own, messages = vectors(inbox)
        rows = np.concatenate([to_host(own), to_host(messages)])
        cut = lying_weight(replace(inbox, f=f, present=present))
        return from_host(weighted_trimmed_mean(rows, inbox.index, present, inbox.weight, cut), own)

    return coordinate_rule(
        "WeightedTriMean",
        models,
        feasible=BELOW_HALF,
        uses_weights=True,
        keeps_own=True,
        virtual_mixing="to-own",
        contraction=MEAN_WITHOUT_CUTS,
        square_error=twice_over_the_middle,
    )
