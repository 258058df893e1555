"""Who might lie instead: liars A and honest workers C who can be exchanged so that nobody else can tell.

    |N_n & A| = |N_n & C|  for every honest worker n outside C,        |A| = |C|

Each of these workers may know its number of lying neighbours (`f: exact`), and how many lie in all: if C play the part
of honest workers in one world and of liars in the other, and A the opposite, it cannot tell which world it is in.
"""

from __future__ import annotations

import numpy as np

from byzmesh.networks import Network
from byzmesh.types import Integers

LARGEST, SECONDS = 200, 5.0
"""Nodes of a network that is searched, and the limit on the time."""


def stand_ins(network: Network) -> tuple[Integers, Integers]:
    """A and C, as many as can be exchanged; empty if nobody can, or none were found in the time.

    An integer program: a_j and c_n say who is in A and in C, d_n is the number of n's neighbours.

        largest sum of c_n    with    |sum_j in N_n (a_j - c_j)| <= d_n c_n    and    sum of a_j = sum of c_n < N

    >>> import byzmesh as bm
    >>> liars, instead = stand_ins(bm.network("paper/two-castle"))
    >>> liars.tolist(), instead.tolist()
    ([7, 9], [1, 3])
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    honest, liars = network.honest, network.byzantine
    count = len(honest)
    nobody = np.zeros(0, np.int64), np.zeros(0, np.int64)
    if network.n > LARGEST or len(liars) == 0 or count < 2:
        return nobody
    heard = (np.asarray(network.adjacency) != 0)[honest].astype(np.float64)
    more = np.hstack([heard[:, liars], -heard[:, honest]])
    slack = np.hstack([np.zeros((count, len(liars))), np.diag(heard.sum(axis=1))])
    in_all = np.concatenate([np.ones(len(liars)), -np.ones(count)])
    chosen = np.concatenate([np.zeros(len(liars)), np.ones(count)])
    found = milp(
        -chosen,
        integrality=np.ones(len(chosen)),
        bounds=Bounds(0.0, 1.0),
        constraints=[
            LinearConstraint(more - slack, ub=0.0),
            LinearConstraint(more + slack, lb=0.0),
            LinearConstraint(in_all[None], 0.0, 0.0),
            LinearConstraint(chosen[None], ub=count - 1.0),
        ],
        options={"time_limit": SECONDS},
    )
    if found.x is None:
        return nobody
    taken = found.x > 0.5
    exchanged, instead = liars[taken[: len(liars)]], honest[taken[len(liars) :]]
    return (exchanged, instead) if unnoticed(network, exchanged, instead) else nobody


def unnoticed(network: Network, exchanged: Integers, instead: Integers) -> bool:
    """Whether every honest worker that is not `instead` hears as many of both: the definition, in whole numbers.

    >>> import byzmesh as bm
    >>> unnoticed(bm.network("paper/two-castle"), np.array([7]), np.array([2]))
    False
    """
    heard = np.asarray(network.adjacency) != 0
    rest = np.setdiff1d(network.honest, instead)
    same = heard[np.ix_(rest, exchanged)].sum(axis=1) == heard[np.ix_(rest, instead)].sum(axis=1)
    return len(exchanged) == len(instead) and len(rest) > 0 and bool(same.all())
