"""The adaptive attacker: it knows the rule and tries its lies on it before it tells them.

Per victim and round it chooses a direction and a scale that maximise the damage to the rule's actual output,

    damage_n = ||A_n(lies) - xbar_n||,     xbar_n = sum_m w'_nm x_m + (w'_nn + b_n) x_n     over honest m

(b_n the weight of the lying neighbours; xbar_n is what the worker should get, Definition 1 with the W of Theorem 3).
A lie is xbar_n + t u_n. The directions u_n are those of the fixed attacks in `FIXED`: towards and through the origin,
along plus and minus the spread, away from agreement, along the Fiedler vector. The lengths t are tried

    1. each fixed attack as it is, so that no fixed attack of the set does more damage;
    2. every direction at multiples (`LENGTHS`) of the honest spread max_m ||x_m - xbar_n||;
    3. the best pair's length, refined by factors (`STEPS`).

A victim's output depends on its own inbox only, so one call of the rule tries a lie on every victim at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.attacks.averages import dissensus, sign_flipping
from byzmesh.attacks.base import Attack, Floats, Forged, Integers, Scene, State, View, attacks
from byzmesh.attacks.evasive import min_max
from byzmesh.attacks.parts import BLOCK, holdings
from byzmesh.attacks.spectral import spectral_heterogeneity
from byzmesh.attacks.spread import alie
from byzmesh.compiled import fast
from byzmesh.errors import ConfigError

FIXED = (sign_flipping, alie, min_max, dissensus, spectral_heterogeneity)
"""The attacks whose directions are searched, each in its text's form."""
LENGTHS = (0.7, 1.5)
STEPS = (1.4, 0.75)


@attacks.register("adaptive", aliases=("rule-aware",))
def adaptive() -> Attack:
    """The lie that, of a set of directions and lengths, moves the rule in use farthest from the honest average.

    Needs the rule (`View.respond`), which a simulation provides.

    >>> adaptive().needs_response
    True
    """
    parts = tuple(make() for make in FIXED)

    def init(scene: Scene) -> tuple[State, ...]:
        return tuple(part.init(scene) for part in parts)

    @np.errstate(over="ignore", invalid="ignore")  # a rule without defence is driven out of the range of numbers
    def forge(view: View, states: tuple[State, ...]) -> tuple[Forged, tuple[State, ...]]:
        if view.respond is None:
            raise ConfigError("attack adaptive tries its messages on the rule in use; run it in a simulation")
        scene, respond = view.scene, view.respond
        centre, spread = honest_average(view)
        told = np.stack([part.forge(view, state)[0].dense() for part, state in zip(parts, states, strict=True)])
        victims = np.arange(len(centre))
        natural = np.stack([distances(rows, victims, centre) for rows in told])
        lies = np.empty_like(centre)
        best = np.full(len(centre), -1.0)
        direction, length = np.zeros(len(centre), np.int64), np.zeros(len(centre))

        def prepare(which: Integers, far: Floats) -> None:
            """Into `lies`: xbar_n + the direction's unit vector times `far`."""
            reach = natural[which, victims]
            factor = np.where(reach > 0.0, far / np.maximum(reach, 1e-300), 0.0)
            stretch(centre, told, which, factor.astype(centre.dtype), lies)

        def attempt(which: Integers, far: Floats) -> None:
            """Tell every victim its lie and keep what beats the best so far."""
            prepare(which, far)
            damage = distances(respond(lies), scene.victims, centre)
            better = damage > best
            best[better] = damage[better]
            direction[better], length[better] = which[better], far[better]

        every = [np.full(len(victims), number) for number in range(len(parts))]
        for number, which in enumerate(every):
            attempt(which, natural[number])
        for which in every:
            for multiple in LENGTHS:
                attempt(which, multiple * spread)
        for step in STEPS:
            attempt(direction.copy(), step * length)
        prepare(direction, length)
        return Forged(scene.liar, scene.victim, scene.place, view.models, rows=lies), states

    return Attack("adaptive", forge, init, needs_response=True)


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


def honest_average(view: View) -> tuple[Any, Any]:
    """(V, D) xbar_n of the victims and (V,) the honest spread max_m ||x_m - xbar_n||, m its honest inbox."""
    scene, models = view.scene, view.models
    held = holdings(scene)
    weight = np.concatenate([(scene.own_weight + scene.lie_weight)[:, None], scene.weight], axis=1)
    mixing = np.zeros((len(held), len(models)))
    np.add.at(mixing, (np.arange(len(held))[:, None], held), weight)
    # differences from one honest model: a product of near equal models would lose them in float32
    centred = models - models[:1]
    toward = mixing.astype(models.dtype) @ centred
    gram = (centred @ centred.T).astype(np.float64)
    square = np.diag(gram)[None] - 2.0 * mixing @ gram + np.einsum("vn,nm,vm->v", mixing, gram, mixing)[:, None]
    near = np.take_along_axis(square, held, axis=1)
    return toward + models[:1], np.sqrt(np.maximum(near.max(axis=1, initial=0.0), 0.0))
