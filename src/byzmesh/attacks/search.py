"""Lies tried on the rule in use: along which message, and how far, a liar gets most of what it wants.

A trial tells victim n the lie

    xbar_n + t (m_n - xbar_n) / ||m_n - xbar_n||,     xbar_n = sum_m w'_nm x_m + (w'_nn + b_n) x_n    over honest m

(b_n is the weight of the lying neighbours; xbar_n is what the worker should get: Definition 1 with the W of Theorem 3).
The messages m_n are those of other attacks, or any point: a direction. What counts is the rule's actual output A_n:

    distance    ||A_n - xbar_n||                                 no matter where to
    towards     <A_n - xbar_n, g_n - xbar_n> / ||g_n - xbar_n||  how far the victim is moved towards a goal g_n

A victim's output depends only on its own inbox, so one call of the rule tries a lie on every victim at once. All lies
are in the span of the honest models and the messages: against a rule that only uses inner products, the search needs
one Gram matrix and no models (`View.weigh`), and against one that takes means of ranks the honest values, sorted once
(`View.ranks`). Other rules are tried with full models (`View.respond`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from byzmesh.attacks.base import Forged, View
from byzmesh.attacks.parts import BLOCK, holdings
from byzmesh.attacks.rank_search import ranked_damage
from byzmesh.compiled import fast
from byzmesh.errors import ConfigError
from byzmesh.types import Floats, Integers

Damage = Callable[[Integers, Floats], Floats]
"""(T, V) which message, (T, V) how far -> (T, V) damage."""
Choose = Callable[[Floats, Floats, Damage], tuple[Integers, Floats]]
"""(natural (P, V) length of each message, spread (V,) of the honest models, damage) -> (V,) message, (V,) length."""


def worst_lies(attack: str, view: View, told: list[Forged], choose: Choose, goal: int | None = None) -> Forged:
    """What every victim is told: the lie that `choose` finds along one of the messages in `told`.

    goal  number of the message towards which the victim shall move; None: away from xbar_n, in any direction
    """
    if view.respond is None:
        raise ConfigError(f"attack {attack} tries its messages on the rule in use; run it in a simulation")
    with np.errstate(over="ignore", invalid="ignore"):  # a rule without defence may overflow
        lies = _search_span(view, told, choose, goal)
        if lies is None:
            lies = _search_models(view, view.respond, told, choose, goal)
    return Forged(view.scene.liar, view.scene.victim, view.scene.place, view.models, rows=lies)


def _search_span(view: View, told: list[Forged], choose: Choose, goal: int | None) -> Any:
    """(V, D) the worst lies in the span of the models and the messages; None if that is not possible.

    A message is x_0 + lift z, where z are the honest models and the messages that are not combinations of them, all
    relative to x_0, and x_0 itself for combinations whose coefficients do not sum to 1.
    """
    if view.weigh is None:
        return None
    weigh, models, count = view.weigh, view.models, len(view.models)
    origin = models[:1]
    dense = [forged.rows for forged in told if forged.combination is None]
    basis = np.concatenate([models, *dense, 2.0 * origin])
    basis -= origin
    gram = (basis @ basis.T).astype(np.float64)
    if not np.isfinite(gram).all():
        return None
    inbox, mixing = honest_shares(view)
    spread = spreads(gram[:count, :count], inbox, mixing)
    victims = np.arange(len(spread))
    centre = np.zeros((len(spread), len(basis)))
    centre[:, :count] = mixing
    push = np.zeros((len(told), *centre.shape))
    start = count
    for lift, forged in zip(push, told, strict=True):
        if forged.combination is None:
            lift[victims, start + (victims if len(forged.rows) > 1 else 0)] = 1.0
            start += len(forged.rows)
        else:
            np.add.at(lift, (victims[:, None], forged.combination.index), forged.combination.coefficient)
            lift[:, -1] = forged.combination.coefficient.sum(axis=1) - 1.0
    push -= centre

    def lengths(lift: Floats) -> Floats:
        square: Floats = np.maximum(((lift @ gram) * lift).sum(axis=-1), 0.0)
        return np.sqrt(square)

    natural = lengths(push)

    def lies(which: Integers, far: Floats) -> Floats:
        return centre + shares(far, natural[which, victims])[..., None] * push[which, victims]

    def damage(which: Integers, far: Floats) -> Floats:
        moved = weigh(gram, lies(which, far)) - centre
        if goal is None:
            return lengths(moved)
        along: Floats = (moved * (push[goal] @ gram)).sum(axis=-1) * shares(np.ones(len(spread)), natural[goal])
        return along

    return lies(*choose(natural, spread, damage)).astype(models.dtype) @ basis + origin


def _search_models(
    view: View, respond: Callable[[Any], Any], told: list[Forged], choose: Choose, goal: int | None
) -> Any:
    """(V, D) the worst lies, for rules that work on coordinates or have a memory, which are tried with full models."""
    centre, spread = honest_average(view)
    messages = np.stack([np.broadcast_to(forged.dense(), centre.shape) for forged in told])
    victims = np.arange(len(centre))
    natural = np.stack([distances(rows, victims, centre) for rows in messages])
    lies = np.empty_like(centre)
    inverse = np.ones(len(spread)) if goal is None else shares(np.ones(len(spread)), natural[goal])
    usual = bool(np.isfinite(natural).all() and np.isfinite(spread).all())  # then no lie overflows

    def tell(which: Integers, far: Floats) -> Any:
        stretch(centre, messages, which, shares(far, natural[which, victims]).astype(centre.dtype), lies)
        return lies

    def done(which: Integers, far: Floats) -> Any:
        models = respond(tell(which, far))
        if goal is None:
            return distances(models, view.scene.victims, centre)
        return products(models, view.scene.victims, centre, messages[goal]) * inverse

    def damage(which: Integers, far: Floats) -> Floats:
        if view.ranks is not None and usual:
            factor = shares(far, natural[which, victims])
            return ranked_damage(view.models, view.ranks, centre, messages, goal, which, factor) * inverse
        return np.stack([done(*trial) for trial in zip(which, far)])

    return tell(*choose(natural, spread, damage))


LENGTHS = (0.7, 1.5)
STEPS = (1.4, 0.75)


def best_of(natural: Floats, spread: Floats, damage: Damage) -> tuple[Integers, Floats]:
    """The most harmful of all messages: each as it is, so that no attack of the set does more damage; each at multiples
    (`LENGTHS`) of the honest spread max_m ||x_m - xbar_n||; the best one's length, refined by factors (`STEPS`).
    """
    victims = np.arange(len(spread))
    best = np.full(len(spread), -np.inf)
    direction, length = np.zeros(len(spread), np.int64), np.zeros(len(spread))

    def attempt(which: Integers, far: Floats) -> None:
        done = np.nan_to_num(damage(which, far), nan=-np.inf, posinf=np.inf, neginf=-np.inf)
        first = done.argmax(axis=0)
        better = done[first, victims] > best
        best[better] = done[first, victims][better]
        direction[better], length[better] = which[first, victims][better], far[first, victims][better]

    every = np.repeat(np.arange(len(natural))[:, None], len(spread), axis=1)
    multiples = np.array(LENGTHS)[:, None] * spread
    attempt(
        np.concatenate([every, np.repeat(every, len(LENGTHS), axis=0)]),
        np.concatenate([natural, np.tile(multiples, (len(natural), 1))]),
    )
    for step in STEPS:
        attempt(direction[None].copy(), step * length[None])
    return direction, length


def shares(far: Floats, reach: Floats) -> Floats:
    """The factor that scales a direction from length `reach` to `far`; 0 if it has no length."""
    return np.where(reach > 0.0, far / np.maximum(reach, 1e-300), 0.0)


@fast
def stretch(centre: Any, told: Any, which: Any, factor: Any, out: Any) -> None:
    """out[v] = centre[v] + factor[v] * (told[which[v], v] - centre[v])."""
    for victim in range(centre.shape[0]):
        base, lie, target = centre[victim], told[which[victim], victim], out[victim]
        for column in range(base.size):
            target[column] = base[column] + factor[victim] * (lie[column] - base[column])


@fast
def distances(models: Any, rows: Any, centre: Any) -> Any:
    """(V,) ||models[rows[v]] - centre[v]||, blocks of coordinates summed in float64."""
    out = np.zeros(rows.size)
    for victim in range(rows.size):
        line, base = models[rows[victim]], centre[victim]
        for left in range(0, line.size, BLOCK):
            total = models.dtype.type(0.0)
            for column in range(left, min(left + BLOCK, line.size)):
                gap = line[column] - base[column]
                total += gap * gap
            out[victim] += total
        out[victim] = np.sqrt(out[victim])
    return out


@fast
def products(models: Any, rows: Any, centre: Any, goal: Any) -> Any:
    """(V,) <models[rows[v]] - centre[v], goal[v] - centre[v]>, blocks of coordinates summed in float64."""
    out = np.zeros(rows.size)
    for victim in range(rows.size):
        line, base, there = models[rows[victim]], centre[victim], goal[victim]
        for left in range(0, line.size, BLOCK):
            total = models.dtype.type(0.0)
            for column in range(left, min(left + BLOCK, line.size)):
                total += (line[column] - base[column]) * (there[column] - base[column])
            out[victim] += total
    return out


def honest_shares(view: View) -> tuple[Integers, Floats]:
    """(V, 1 + J) rows of each victim's honest inbox, (V, N) coefficients of its xbar_n."""
    scene = view.scene
    inbox = holdings(scene)
    weight = np.concatenate([(scene.own_weight + scene.lie_weight)[:, None], scene.weight], axis=1)
    mixing = np.zeros((len(inbox), len(view.models)))
    np.add.at(mixing, (np.arange(len(inbox))[:, None], inbox), weight)
    return inbox, mixing


def spreads(gram: Floats, inbox: Integers, mixing: Floats) -> Floats:
    """(V,) the honest spread max_m ||x_m - xbar_n|| over m in inbox[n], from the Gram matrix of the models."""
    square = np.diag(gram)[None] - 2.0 * mixing @ gram + ((mixing @ gram) * mixing).sum(axis=1)[:, None]
    near: Floats = np.take_along_axis(square, inbox, axis=1).max(axis=1, initial=0.0)
    return np.sqrt(np.maximum(near, 0.0))


def honest_average(view: View) -> tuple[Any, Any]:
    """(V, D) xbar_n of the victims and (V,) the honest spread max_m ||x_m - xbar_n||, m its honest inbox."""
    models = view.models
    inbox, mixing = honest_shares(view)
    # relative to one honest model: products of nearly equal models would lose the differences in float32
    centred = models - models[:1]
    gram = (centred @ centred.T).astype(np.float64)
    return mixing.astype(models.dtype) @ centred + models[:1], spreads(gram, inbox, mixing)
