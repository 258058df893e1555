"""Attacks made of means over the victim's honest inbox: its own model and those of its honest neighbours.

With n the victim, N_n its honest and B_n its lying neighbours, w' the mixing weights and b_n = sum_{b in B_n} w'_nb:

    gaussian        mean + std * noise, with new noise for every message
    sign-flipping   -scale * mean
    isolation       x_n + scale * (m_n - x_n),   m_n = (x_n - sum_{m in N_n} w'_nm x_m) / b_n
    IPM             -eps * mean, own model included
    dissensus       x_n - eps * sum_{m in N_n} w'_nm (x_m - x_n) / b_n

For a victim without honest neighbours the mean is its own model. All but gaussian are combinations of honest models
fixed by the graph: one message per victim, sent by all its liars.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh import rng
from byzmesh.attacks.base import Attack, Forged, Scene, View, attacks
from byzmesh.attacks.parts import (
    BLOCK,
    MEANS,
    Plan,
    against,
    frozen,
    mean_of_holdings,
    pair_ids,
    per_victim,
    send_as_planned,
)
from byzmesh.checks import at_least, choice, finite, flag
from byzmesh.compiled import fast

NOISE = 1
"""The random stream of this file among those of the attacks."""
WEIGHTS = ("mixing", "metropolis")


@attacks.register("gaussian", aliases=("noise",), published={"std": 30.0, "mean": "plain"})
def gaussian(std: float = 1.0, mean: str = "weighted") -> Attack:
    """Mean of the victim's honest neighbours plus Gaussian noise of standard deviation `std` per coordinate.

    `mean` is "weighted" by the mixing weights (the text) or "plain" (the published runs, with std 30). Every liar draws
    new noise for every victim and round.

    >>> gaussian(mean="median")
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: attack gaussian: mean must be weighted or plain, got 'median'
    """
    at_least("attack gaussian: std", std, 0)
    choice("attack gaussian: mean", mean, MEANS)

    def init(scene: Scene) -> Plan:
        return per_victim(scene, mean_of_holdings(scene, mean, own=False))

    def forge(view: View, plan: Plan) -> tuple[Forged, Plan]:
        scene, models = view.scene, frozen(view.models)
        key = rng.key(view.round.seed, rng.ATTACK, NOISE)
        # 24 random bits are enough even for float64 models, and four times as fast to draw
        rows = rng.normals(key, pair_ids(scene), view.round.number, models.shape[1]).astype(models.dtype, copy=False)
        about = plan.combination
        scale_and_add(rows, models.dtype.type(std), plan.row, models, about.index, about.coefficient.astype(rows.dtype))
        return Forged(scene.liar, scene.victim, np.arange(len(rows)), view.models, rows=rows), plan

    return Attack("gaussian", forge, init=init, options={"std": std, "mean": mean})


@attacks.register("sign-flipping", aliases=("sign-flip", "sf"), published={"own": True, "mean": "plain"})
def sign_flipping(own: bool = False, mean: str = "weighted", scale: float = 1.0) -> Attack:
    """Minus `scale` times the mean of the victim's honest neighbours, with its own model if `own`.

    `mean` is "weighted" by the mixing weights or "plain". The text: weighted without own; the published runs:
    plain with own.

    >>> dict(sign_flipping(own=True).options)
    {'own': True, 'mean': 'weighted', 'scale': 1.0}
    """
    flag("attack sign-flipping: own", own)
    finite("attack sign-flipping: scale", scale)
    choice("attack sign-flipping: mean", mean, MEANS)

    def init(scene: Scene) -> Plan:
        return per_victim(scene, -scale * mean_of_holdings(scene, mean, own))

    options = {"own": own, "mean": mean, "scale": scale}
    return Attack("sign-flipping", send_as_planned, init=init, fixed=True, options=options)


@attacks.register("isolation", published={"own": True, "weights": "metropolis"})
def isolation(own: bool = False, weights: str = "mixing", scale: float = 1.0) -> Attack:
    """The message that turns the victim's weighted mean into its own model: (x_n - sum_m w'_nm x_m) / sum_b w'_nb.

    With `own` the sum over m includes the victim, so that the messages do add up to x_n and it learns nothing from
    anybody (the published runs); without, w'_nn x_n is left out as in the text's formula. `weights` is "mixing" for the
    victims' weights, or "metropolis" for Metropolis-Hastings weights whatever the victims use. `scale` multiplies the
    way from the victim's model to the message.

    >>> isolation(weights="equal")
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: attack isolation: weights must be mixing or metropolis, got 'equal'
    """
    flag("attack isolation: own", own)
    choice("attack isolation: weights", weights, WEIGHTS)
    finite("attack isolation: scale", scale)

    def init(scene: Scene) -> Plan:
        if weights == "metropolis":
            weight, own_weight, lie = scene.metropolis_weight, scene.metropolis_own, scene.metropolis_lie
        else:
            weight, own_weight, lie = scene.weight, scene.own_weight, scene.lie_weight
        neighbours = -against(scene, weight, lie, "isolation", "give weights='metropolis' or change the mixing weights")
        itself = (1.0 - own_weight if own else np.ones_like(lie)) / lie
        coefficient = scale * np.concatenate([itself[:, None], neighbours], axis=1)
        coefficient[:, 0] += 1.0 - scale
        return per_victim(scene, coefficient)

    options = {"own": own, "weights": weights, "scale": scale}
    return Attack("isolation", send_as_planned, init=init, fixed=True, options=options)


@attacks.register("IPM", aliases=("foe", "fall-of-empires", "inner-product-manipulation"))
def ipm(eps: float = 0.1) -> Attack:
    """Inner-product manipulation: -eps times the plain mean of the victim's honest inbox, own model included.

    A small eps hides among honest models; eps = 1 is sign-flipping as published.

    >>> ipm(eps=float("nan"))
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: attack IPM: eps must be a finite number, got nan
    """
    finite("attack IPM: eps", eps)

    def init(scene: Scene) -> Plan:
        return per_victim(scene, -eps * mean_of_holdings(scene, "plain", own=True))

    return Attack("IPM", send_as_planned, init=init, fixed=True, options={"eps": eps})


@attacks.register("dissensus")
def dissensus(eps: float = 1.5) -> Attack:
    """Away from agreement: x_n - eps * sum_m w'_nm (x_m - x_n) / sum_b w'_nb over honest neighbours m.

    eps = 1 cancels what a weighted mean would learn from honest neighbours; more drives the victim away from them.

    >>> dissensus().options["eps"]
    1.5
    """
    finite("attack dissensus: eps", eps)

    def init(scene: Scene) -> Plan:
        push = eps * against(scene, scene.weight, scene.lie_weight, "dissensus", "change the mixing weights")
        return per_victim(scene, np.concatenate([1.0 + push.sum(axis=1, keepdims=True), -push], axis=1))

    return Attack("dissensus", send_as_planned, init=init, fixed=True, options={"eps": eps})


@fast
def scale_and_add(rows: Any, factor: Any, place: Any, models: Any, index: Any, coefficient: Any) -> None:
    """rows[f] = factor * rows[f] + message place[f] of the combination, in place.

    rows (F, D), place (F,) ascending, models (N, D), index and coefficient (V, K). Block by block, because a second
    (F, D) array costs more to allocate than all the arithmetic.
    """
    dimension = models.shape[1]
    message = np.empty(BLOCK, models.dtype)
    for start in range(0, dimension, BLOCK):
        stop = min(start + BLOCK, dimension)
        current = -1
        for pair in range(len(rows)):
            if place[pair] != current:
                current = place[pair]
                message[:] = 0
                for slot in range(index.shape[1]):
                    share = coefficient[current, slot]
                    if share != 0:
                        model = models[index[current, slot], start:stop]
                        for i in range(stop - start):
                            message[i] += share * model[i]
            row = rows[pair, start:stop]
            for i in range(stop - start):
                row[i] = factor * row[i] + message[i]
