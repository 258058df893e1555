"""Phocas: per coordinate the mean of the S - f values nearest the trimmed mean (Xie, Koyejo and Gupta 2018).

    x_n,j = the mean of the S - f values y_m,j nearest t_j,    t_j the trimmed mean of the y_m,j

The trimmed mean leaves out the f smallest and the f largest of the S values.
"""

from __future__ import annotations

from typing import Any

from byzmesh.rules.base import Inbox, Rule, rules
from byzmesh.rules.coordinate import coordinate_rule, vectors
from byzmesh.rules.feasible import BELOW_HALF_OF_ALL
from byzmesh.rules.ranks import near_trimmed_mean
from byzmesh.types import Booleans, Integers


@rules.register("Phocas")
def phocas() -> Rule:
    """Phocas: per coordinate the mean of the S - f values nearest the trimmed mean, own included.

    If two values are equally near up to rounding, the smaller counts as nearer.

    >>> import byzmesh as bm
    >>> bm.aggregate("phocas", [0.0], [[1.0], [2.0], [90.0]], f=1)
    array([1.])
    """

    def models(inbox: Inbox, f: Integers, present: Booleans) -> Any:
        return near_trimmed_mean(vectors(inbox), inbox.index, present, f)

    return coordinate_rule("Phocas", models, feasible=BELOW_HALF_OF_ALL, symmetric=True)
