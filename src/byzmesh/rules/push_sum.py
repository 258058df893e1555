"""Push-sum: exact averaging on directed graphs, without liars (Kempe et al. 2003; stochastic gradient push).

On a directed graph a worker knows whom it hears, not how much the others count, and row-stochastic averaging leads to a
weighted mean of all, not to the mean. Push-sum keeps a mass w_n beside each model, 1 at first. With A column-stochastic
(every sender divides itself equally among its readers and itself; d_m readers in this round) and z the models:

    x_m = w_m z_m - step g_m            half steps, scaled by the mass
    x_n <- sum_m x_m / (1 + d_m),   w_n <- sum_m w_m / (1 + d_m),   z_n <- x_n / w_n

The sum of all x is that of one worker that averages everybody's gradient. Nothing in it resists a lie: a message that
does not come from an honest worker counts with mass 1, as if it were sent to nobody else. It is a baseline.

A simulation knows how many readers each worker has, also when links change from round to round. A peer alone does not:
there, and with one receiver, this is the mean of what arrived.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.rules.base import Inbox, Outcome, Rule, State, rules
from byzmesh.rules.interop import from_host, to_host


@rules.register("push-sum", aliases=("sgp",))
def push_sum() -> Rule:
    """Exact averaging on directed graphs, for networks without liars: the baseline, not a robust rule.

    >>> import byzmesh as bm
    >>> bm.aggregate("push-sum", [0.0], [[3.0], [9.0]], previous=[0.0])
    array([4.])
    """
    return Rule("push-sum", _apply, init=_masses, needs_previous=True)


def _masses(models: Any) -> State:
    return np.ones(len(models))


def _apply(inbox: Inbox, mass: State) -> tuple[Outcome, State]:
    pool, index, present = inbox.pool, inbox.index, inbox.present
    size, receivers = pool.size, len(index)
    row = np.repeat(np.arange(receivers), index.shape[1])[present.ravel()]
    sender = index[present]
    told = np.bincount(sender, minlength=size)  # how often a row is heard, by its own worker too
    told[receivers:] = 1
    weight = np.ones(size)
    weight[:receivers] = mass
    share = np.zeros((receivers, size))
    np.add.at(share, (row, sender), 1.0 / told[sender])
    after = share @ weight
    rows = np.where(pool.usable[:, None], to_host(pool.rows()), 0.0).astype(np.float64)
    before = to_host(inbox.previous).astype(np.float64)
    rows[:receivers] = mass[:, None] * before + (rows[:receivers] - before)
    models = (share @ rows) / after[:, None]
    chosen = np.where(present, share[np.arange(receivers)[:, None], index] * weight[index], 0.0) / after[:, None]
    outcome = Outcome(
        models=from_host(models.astype(pool.dtype), pool.own), kept=np.zeros(receivers, bool), coefficients=chosen
    )
    return outcome, after
