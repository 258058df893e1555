"""The adaptive attacker: it knows the rule and tries its lies on it before sending them.

Per victim and round it chooses a direction and a scale that maximise the damage to the rule's actual output,

    damage_n = ||A_n(lies) - xbar_n||,     xbar_n = sum_m w'_nm x_m + (w'_nn + b_n) x_n     over honest m

(b_n is the weight of the lying neighbours; xbar_n is what the worker should get: Definition 1 with the W of Theorem 3).
A lie is xbar_n + t u_n. The directions u_n are those of the fixed attacks in `FIXED`: towards and through the origin,
along plus and minus the spread, away from agreement, along the Fiedler vector. The lengths t are tried

    1. each fixed attack as it is, so that no fixed attack of the set does more damage;
    2. every direction at multiples (`LENGTHS`) of the honest spread max_m ||x_m - xbar_n||;
    3. the best pair's length, refined by factors (`STEPS`).

A victim's output depends only on its own inbox, so one call of the rule tries a lie on every victim at once. All lies
are in the span of the honest models and the fixed attacks' messages: against a rule that only uses inner products, the
search needs one Gram matrix and no models (`View.weigh`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from byzmesh.attacks.averages import dissensus, sign_flipping
from byzmesh.attacks.base import Attack, Forged, Scene, State, View, attacks
from byzmesh.attacks.evasive import min_max
from byzmesh.attacks.parts import BLOCK, holdings
from byzmesh.attacks.spectral import spectral_heterogeneity
from byzmesh.attacks.spread import alie
from byzmesh.compiled import fast
from byzmesh.errors import ConfigError
from byzmesh.types import Floats, Integers

FIXED = (sign_flipping, alie, min_max, dissensus, spectral_heterogeneity)
"""The attacks whose directions are searched, each as the text defines it."""
LENGTHS = (0.7, 1.5)
STEPS = (1.4, 0.75)


@attacks.register("adaptive", aliases=("rule-aware",))
def adaptive() -> Attack:
    """Among a set of directions and lengths, the lie that moves the rule in use farthest from the honest average.

    Needs the rule (`View.respond`), which a simulation provides.

    >>> adaptive().needs_response
    True
    """
    parts = tuple(make() for make in FIXED)

    def init(scene: Scene) -> tuple[State, ...]:
        return tuple(part.init(scene) for part in parts)

    @np.errstate(over="ignore", invalid="ignore")  # a rule without defence may overflow
    def forge(view: View, states: tuple[State, ...]) -> tuple[Forged, tuple[State, ...]]:
        if view.respond is None:
            raise ConfigError("attack adaptive tries its messages on the rule in use; run it in a simulation")
        scene = view.scene
        told = [part.forge(view, state)[0] for part, state in zip(parts, states, strict=True)]
        lies = span_search(view, told)
        if lies is None:
            lies = full_search(view, view.respond, told)
        return Forged(scene.liar, scene.victim, scene.place, view.models, rows=lies), states

    return Attack("adaptive", forge, init=init, needs_response=True)


def search(natural: Floats, spread: Floats, damage: Callable[[Integers, Floats], Floats]) -> tuple[Integers, Floats]:
    """(V,) direction and length of the most harmful lie for each victim.

    natural (directions, V) are the lengths of the fixed attacks, spread (V,) the honest spread, and damage takes T
    trials, (T, V) directions and (T, V) lengths, to their (T, V) damages.
    """
    victims = np.arange(len(spread))
    best = np.full(len(spread), -1.0)
    direction, length = np.zeros(len(spread), np.int64), np.zeros(len(spread))

    def attempt(which: Integers, far: Floats) -> None:
        done = np.nan_to_num(damage(which, far), nan=-1.0, posinf=np.inf)
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


def span_search(view: View, told: list[Forged]) -> Any:
    """(V, D) the worst lies in the span of the models and the fixed attacks' messages; None if that is not possible.

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
            lift[victims, start + victims] = 1.0
            start += len(victims)
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

    direction, length = search(natural, spread, lambda which, far: lengths(weigh(gram, lies(which, far)) - centre))
    return lies(direction, length).astype(models.dtype) @ basis + origin


def full_search(view: View, respond: Callable[[Any], Any], told: list[Forged]) -> Any:
    """(V, D) the worst lies, every trial with full models: for rules that work on coordinates or have a memory."""
    centre, spread = honest_average(view)
    messages = np.stack([forged.dense() for forged in told])
    victims = np.arange(len(centre))
    natural = np.stack([distances(rows, victims, centre) for rows in messages])
    lies = np.empty_like(centre)

    def tell(which: Integers, far: Floats) -> Any:
        stretch(centre, messages, which, shares(far, natural[which, victims]).astype(centre.dtype), lies)
        return lies

    def damage(which: Integers, far: Floats) -> Floats:
        return np.stack([distances(respond(tell(*trial)), view.scene.victims, centre) for trial in zip(which, far)])

    return tell(*search(natural, spread, damage))


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
