"""When and to whom liars lie: wrappers around any attack that forges messages.

    late          honest until some round, then the attack
    alternating   the attack in one part of every period, honest in the other
    one-victim    the attack against one victim at a time, honest to all others
    mixed         different lies by different liars: two attacks, dealt out in turn

"Honest" here is what a liar without data of its own can say that nobody can object to: the mean of the victim's honest
neighbours, weighted by the mixing weights. Trust that is won this way is what a rule with a memory gives away. What an
attack remembers, the start or a running average, it remembers of the honest rounds, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from byzmesh.attacks.base import Attack, Combination, Forged, Scene, View, attacks
from byzmesh.attacks.parts import Plan, mean_of_holdings, per_victim, send_as_planned
from byzmesh.attacks.state import Split, States
from byzmesh.checks import fraction, whole
from byzmesh.errors import ConfigError
from byzmesh.types import Booleans

Lies = Callable[[View], Booleans]
"""A view -> (F,) whether a pair lies in this round; the others are honest."""


@attacks.register("late", aliases=("sleeper",))
def late(inner: Any = "sign-flipping", after: int = 1000) -> Attack:
    """Honest before round `after`, then the inner attack.

    >>> late("ALIE", after=500).options["inner"]
    {'name': 'ALIE', 'z': None}
    """
    whole("attack late: after", after, 0)
    return _sometimes("late", inner, {"after": after}, lambda view: _everybody(view, view.round.number >= after))


@attacks.register("alternating")
def alternating(inner: Any = "sign-flipping", period: int = 100, share: float = 0.5) -> Attack:
    """The inner attack in the first `share` of every `period` of rounds, honest in the rest.

    >>> alternating("ALIE", period=10).options["share"]
    0.5
    """
    whole("attack alternating: period", period, 1)
    fraction("attack alternating: share", share)

    def lies(view: View) -> Booleans:
        return _everybody(view, view.round.number % period / period < share)

    return _sometimes("alternating", inner, {"period": period, "share": share}, lies)


@attacks.register("one-victim")
def one_victim(inner: Any = "sign-flipping", period: int = 100) -> Attack:
    """The inner attack against one victim at a time, each for `period` rounds in turn; the others hear the truth.

    On a changing network every round counts its own victims.

    >>> one_victim("ALIE", period=0)
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: attack one-victim: period must be a whole number of at least 1, got 0
    """
    whole("attack one-victim: period", period, 1)

    def lies(view: View) -> Booleans:
        turn = view.round.number // period % max(len(view.scene.victims), 1)
        chosen: Booleans = view.scene.place == turn
        return chosen

    return _sometimes("one-victim", inner, {"period": period}, lies)


@attacks.register("mixed")
def mixed(inner: Any = "sign-flipping", other: Any = "ALIE") -> Attack:
    """Different lies by different liars: every second one, by id, tells the `other` attack's message.

    >>> mixed("dissensus", "ALIE").options["other"]
    {'name': 'ALIE', 'z': None}
    """
    parts = _forging("mixed", inner), _forging("mixed", other)

    def init(scene: Scene) -> States:
        return States(part.init(scene) for part in parts)

    def forge(view: View, states: States) -> tuple[Forged, States]:
        (one, first), (two, second) = (part.forge(view, state) for part, state in zip(parts, states, strict=True))
        odd = np.searchsorted(view.scene.byzantine, view.scene.liar) % 2 == 1
        return chosen_from(view, one, two, odd), States((first, second))

    def observe(view: View, states: States) -> States:
        return States(part.observe(view, state) for part, state in zip(parts, states, strict=True))

    horizons = [part.horizon for part in parts if part.horizon]
    return Attack(
        "mixed",
        forge,
        init=init,
        observe=observe,
        options={"inner": _spec(parts[0]), "other": _spec(parts[1])},
        needs_response=any(part.needs_response for part in parts),
        needs_data=any(part.needs_data for part in parts),
        horizon=math.gcd(*horizons) if horizons else 0,
    )


def truth() -> Attack:
    """What an honest liar says: the weighted mean of the victim's honest neighbours."""

    def init(scene: Scene) -> Plan:
        return per_victim(scene, mean_of_holdings(scene, "weighted", own=False))

    return Attack("truth", send_as_planned, init=init, fixed=True)


def _sometimes(name: str, inner: Any, options: dict[str, Any], lies: Lies) -> Attack:
    attack, honest = _forging(name, inner), truth()

    def init(scene: Scene) -> Split:
        return Split(honest.init(scene), States([attack.init(scene)]))

    def forge(view: View, state: Split) -> tuple[Forged, Split]:
        told, lying = honest.forge(view, state.plan)[0], lies(view)
        if not lying.any():
            return told, observe(view, state)
        forged, inner_state = attack.forge(view, state.memory[0])
        return chosen_from(view, told, forged, lying), Split(state.plan, States([inner_state]))

    def observe(view: View, state: Split) -> Split:
        return Split(state.plan, States([attack.observe(view, state.memory[0])]))

    return Attack(
        name,
        forge,
        init=init,
        observe=observe,
        options={"inner": _spec(attack), **options},
        needs_response=attack.needs_response,
        needs_data=attack.needs_data,
        horizon=attack.horizon,
    )


def chosen_from(view: View, one: Forged, other: Forged, second: Booleans) -> Forged:
    """The messages of two attacks: of `other` for the pairs (F,) where `second`, of `one` for the rest."""
    pairs = [(_pairs(forged), forged) for forged in (one, other)]
    wanted = (view.scene.liar << 32) | view.scene.victim
    source, row = np.full(len(wanted), -1), np.zeros(len(wanted), np.int64)
    for number, (ids, forged) in enumerate(pairs):
        order = np.argsort(ids)
        place = np.searchsorted(ids, wanted, sorter=order)
        found = np.flatnonzero((second == bool(number)) & (place < len(ids)))
        found = found[ids[order[place[found]]] == wanted[found]]
        source[found], row[found] = number, forged.row[order[place[found]]]
    sent = source >= 0
    used, line = np.unique(np.stack([source[sent], row[sent]]), axis=1, return_inverse=True)
    parts = [(forged, used[1, used[0] == number]) for number, (_, forged) in enumerate(pairs)]
    scene = view.scene
    about = (scene.liar[sent], scene.victim[sent], np.asarray(line, np.int64).reshape(-1), view.models)
    if any(forged.combination is None for forged, rows in parts if len(rows)):
        return Forged(*about, rows=np.concatenate([forged.dense()[rows] for forged, rows in parts]))
    mixtures = [(forged.combination, rows) for forged, rows in parts if forged.combination is not None and len(rows)]
    index = np.zeros((used.shape[1], max((mixture.index.shape[1] for mixture, _ in mixtures), default=1)), np.int64)
    coefficient = np.zeros(index.shape)
    start = 0
    for mixture, rows in mixtures:
        here, wide = slice(start, start + len(rows)), mixture.index.shape[1]
        index[here, :wide], coefficient[here, :wide] = mixture.index[rows], mixture.coefficient[rows]
        start += len(rows)
    return Forged(*about, combination=Combination(index, coefficient))


def _pairs(forged: Forged) -> Any:
    return (forged.liar << 32) | forged.victim


def _everybody(view: View, lies: bool) -> Booleans:
    return np.full(len(view.scene.liar), lies)


def _spec(attack: Attack) -> dict[str, Any]:
    return {"name": attack.name, **attack.options}


def _forging(name: str, inner: Any) -> Attack:
    attack = attacks.build(inner)
    if attack.poisons_data:
        raise ConfigError(f"attack {name}: {attack.name} acts on training data; give an attack that forges messages")
    return attack
