"""WeightedTriMean: per coordinate the weighted mean without the smallest and the largest neighbours of weight b each.

b is the weight of the f heaviest neighbours, or what lies weigh at most if that is given and less. A neighbour at the
border counts in part. If lies weigh b at most, what is left of each coordinate lies between honest values. With equal
weights this is TriMean. 2 f < d: a worker with one or two neighbours cuts nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from byzmesh.rules.base import Inbox, Rule, rules
from byzmesh.rules.contraction import MEAN_WITHOUT_CUTS
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
    )
