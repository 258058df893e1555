"""A lower bound on rho that holds for every W: what the best virtual mixing matrix could do.

(rho, W) is not unique (Remark 1), so an input on which a rule deviates from one xbar_n refutes nothing about another W.
On scalar inputs x with answers A the best row w of worker n solves a linear programme,

    minimise t   such that   |A - w . x| <= t (max x - min x) for every input,   w >= 0,   sum w = 1,

and since max_m |x_m - w . x| <= max x - min x, no row has a contraction constant below t. The inputs are clusters of
the honest values, in many orders, with lies at several positions.
"""

from __future__ import annotations

import numpy as np

from byzmesh import rng
from byzmesh.rules.base import Rule
from byzmesh.theory.search.game import Game, respond
from byzmesh.theory.search.starts import structured_starts
from byzmesh.types import Floats

ORDERS = 6
"""Number of orders of the honest values to try for each arrangement."""


def best_row(rule: Rule, game: Game, seed: int = 0) -> float:
    """t: whatever row W has for this worker, its contraction constant is at least this.

    >>> from byzmesh.networks import network
    >>> from byzmesh.rules.aggregate import rule
    >>> from byzmesh.theory.mixing import equal_honest
    >>> from byzmesh.theory.search.game import games_of
    >>> net = network("paper/two-castle-3")
    >>> game = games_of(net, equal_honest(net), net.bounds(0))[0]
    >>> best_row(rule("coomed"), game) > 0.1, best_row(rule("weimean"), game) < 1e-6
    (True, True)
    """
    from scipy.optimize import linprog

    honest = np.flatnonzero(~game.lying)
    start = structured_starts(game, 1)
    draw = rng.generator(seed, rng.RULE, game.worker)
    tables = [start]
    for _ in range(ORDERS - 1):
        turned = start.copy()
        turned[:, honest] = start[:, draw.permutation(honest)]
        tables.append(turned)
    points = np.concatenate(tables)
    points = points[np.abs(points).max(axis=(1, 2)) < 100.0]  # far lies drown the honest values in rounding
    values: Floats = points[:, honest, 0]
    wide = values.max(axis=1) - values.min(axis=1)
    points, values, wide = points[wide > 0.0], values[wide > 0.0], wide[wide > 0.0]
    if len(points) == 0:
        return 0.0
    answer = respond(rule, game, points)[:, 0]
    table = np.block([[values, -wide[:, None]], [-values, -wide[:, None]]])
    solved = linprog(
        np.append(np.zeros(len(honest)), 1.0),
        A_ub=table,
        b_ub=np.concatenate([answer, -answer]),
        A_eq=np.append(np.ones(len(honest)), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0.0, 1.0)] * len(honest) + [(0.0, None)],
    )
    return max(0.0, float(solved.fun) - 1e-6) if solved.status == 0 else 0.0
