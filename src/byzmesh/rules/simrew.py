"""SimRew: reweight each neighbour's update by how much it resembles the receiver's own.

With D_j = y_j - x_n^k (the neighbour's half step seen from the receiver's model before its gradient step) and D_n
its own gradient step,

    x_n^{k+1} = x_n^k + sum_j s1_j s2_j clip(D_j, ||D_n||)         over own and neighbours, not renormalised
    s1 = softmax_j(-divergence(own, j)) of the histograms of the signs (-1, 0, 1) of D_n and D_j
    s2 = max(0, cos(D_j, D_n)), 1 for own

The published runs set a liar's s2 to 0, which no worker could know; this rule does not.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from byzmesh.checks import choice
from byzmesh.rules.base import Inbox, Outcome, Rule, State, rules
from byzmesh.rules.gram.products import inner_blocks, mix
from byzmesh.rules.gram.rule import anchored
from byzmesh.rules.ranks import sign_histogram
from byzmesh.types import Booleans, Floats


def sign_scores(counts: npt.NDArray[np.int64], present: Booleans, divergence: str) -> Floats:
    """(R, K) s1 from the sign counts (R, K, 3)."""
    share = counts / np.maximum(counts.sum(axis=2, keepdims=True), 1)
    own = share[:, :1]
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = np.where(own > 0.0, own * np.log(own), 0.0)
        cross = own * share / 3.0 if divergence == "published" else np.where(own > 0.0, own * np.log(share), 0.0)
    scale = 3.0 if divergence == "published" else 1.0
    logit = np.where(present, (cross - entropy / scale).sum(axis=2), -np.inf)
    score = np.exp(logit - logit.max(axis=1, keepdims=True))
    result: Floats = score / score.sum(axis=1, keepdims=True)
    return result


@rules.register("SimRew", aliases=("similarity-reweighting",), published={"divergence": "published"})
def simrew(divergence: str = "kl") -> Rule:
    """Similarity-based reweighting of the neighbours' updates by sign histograms and cosines.

    divergence="kl": the true Kullback-Leibler divergence; "published": (1/3) sum_i t_i (log t_i - p_i), as it was run.
    """
    choice("rule SimRew: divergence", divergence, ("kl", "published"))

    def apply(inbox: Inbox, state: State) -> tuple[Outcome, State]:
        held = anchored(inbox, inbox.previous)
        inner = inner_blocks(held.pool, held.index, held.present)
        start = inner[:, -1:, :]
        moves = inner - start - inner[:, :, -1:] + inner[:, -1:, -1:]
        length = np.sqrt(np.maximum(np.einsum("rkk->rk", moves), 0.0))[:, :-1]
        own_length = length[:, :1]
        with np.errstate(divide="ignore", invalid="ignore"):
            cosine = np.where(length * own_length > 0.0, moves[:, 0, :-1] / (length * own_length), 0.0)
            shrink = np.where(length > own_length, own_length / length, 1.0)
        cosine[:, 0] = 1.0
        rows = (inbox.pool.own, inbox.pool.dense_messages())
        counts = sign_histogram(rows, inbox.index, inbox.present, inbox.previous)
        score = sign_scores(counts, inbox.present, divergence) * np.maximum(cosine, 0.0) * shrink
        score = np.where(inbox.present, score, 0.0)
        anchor = 1.0 - score.sum(axis=1)
        models = mix(held.pool, held.index, np.concatenate([score, anchor[:, None]], axis=1))
        kept = np.zeros(len(inbox.index), bool)
        outcome = Outcome(models=models, coefficients=score, kept=kept, anchor=anchor, self_weight=np.zeros(len(kept)))
        return outcome, state

    return Rule("SimRew", apply, needs_previous=True, idempotent=False, options={"divergence": divergence})
