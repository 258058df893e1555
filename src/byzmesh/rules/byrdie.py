"""ByRDiE: trimmed means by coordinate descent, a few coordinates per round.

Workers send their models x^t before the gradient step. For the coordinates whose turn it is in round t,

    x_n^{t+1} = TriMean(x_n^t; neighbours) + x_n^{t+1/2} - x_n^t,

the mean of its own value and the neighbours' without the f smallest and the f largest, plus the gradient step. All
other coordinates stay at x_n^t. The coordinates take turns in order, `block` of them at a time for `repeats` rounds.
One at a time this is ByRDiE (Yang and Bajwa 2019, whose T is `repeats`), all at once BRIDGE (Fang, Yang and Bajwa
2022). On the coordinates in turn it has TriMean's generic form, r_n = 1/(d - 2f + 1). Cost O(R block K log^2 K).
"""

from __future__ import annotations

import numpy as np

from byzmesh.checks import whole
from byzmesh.rules.base import Inbox, Outcome, Rule, State, rules, settle
from byzmesh.rules.coordinate import vectors
from byzmesh.rules.feasible import BELOW_HALF
from byzmesh.rules.ranks import rank_mean
from byzmesh.types import Integers


def in_turn(turn: int, block: int, dimension: int) -> Integers:
    """The coordinates of a turn: the next `block` of them, and after the last the first again.

    >>> in_turn(1, 3, 5)
    array([3, 4, 0])
    """
    size = min(block, dimension)
    return (turn * size + np.arange(size)) % dimension


@rules.register("ByRDiE")
def byrdie(block: int | None = 1, repeats: int = 1) -> Rule:
    """ByRDiE: on the coordinates in turn TriMean of the models before the step, plus the step; the others wait.

    block    how many coordinates are in turn; None: all, which is BRIDGE
    repeats  for how many rounds they are

    >>> import byzmesh as bm
    >>> before, others = [0.0, 0.0], [[1.0, 5.0], [2.0, 5.0], [90.0, 5.0]]
    >>> bm.aggregate("byrdie", [0.5, 0.5], others, f=1, previous=before)
    array([1.5, 0. ])
    """
    if block is not None:
        whole("rule ByRDiE: block", block, 1)
    whole("rule ByRDiE: repeats", repeats, 1)

    def apply(inbox: Inbox, state: State) -> tuple[Outcome, State]:
        f, kept = settle(inbox, BELOW_HALF)
        present = inbox.present.copy()
        present[kept, 1:] = False
        f = np.where(kept, 0, f)
        own, messages = vectors(inbox)
        dimension = own.shape[1]
        turn = in_turn(inbox.round.number // repeats, dimension if block is None else block, dimension)
        rows = (own[:, turn], messages[:, turn])
        trimmed = rank_mean(rows, inbox.index, present, f, present.sum(axis=1) - 1 - f, apart=True)
        models = own[inbox.index[:, 0]]
        models[:, turn] = inbox.half[:, turn] + (trimmed - models[:, turn])
        return Outcome(models=models, kept=kept), state

    return Rule(
        "ByRDiE",
        apply,
        feasible=BELOW_HALF,
        sends="start",
        coordinatewise=True,
        idempotent=False,
        keeps_own=True,
        options={"block": block, "repeats": repeats},
    )
