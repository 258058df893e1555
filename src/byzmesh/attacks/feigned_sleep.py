"""Liars that pretend to be asleep: any attack, with silence in some rounds.

A worker that expects f liars and hears fewer messages still cuts f of them: what is cut then is honest. On a network
whose workers sleep now and then, nobody can tell such a liar from a sleeper.
"""

from __future__ import annotations

from typing import Any

from byzmesh import rng
from byzmesh.attacks.base import Attack, Forged, State, View, attacks
from byzmesh.checks import fraction
from byzmesh.errors import ConfigError

_PURPOSE = 9


@attacks.register("feigned-sleep", aliases=("intermittent",))
def feigned_sleep(inner: Any = "sign-flipping", p: float = 0.5) -> Attack:
    """The inner attack, but each liar is silent to everybody with probability p in each round.

    >>> feigned_sleep("ALIE", p=0.3).options
    {'inner': {'name': 'ALIE', 'z': None}, 'p': 0.3}
    """
    fraction("attack feigned-sleep: p", p)
    attack = attacks.build(inner)
    if attack.poisons_data:
        raise ConfigError(
            f"attack feigned-sleep: inner must forge messages, and {attack.name} acts on data; use another"
        )

    def forge(view: View, state: State) -> tuple[Forged, State]:
        forged, after = attack.forge(view, state)
        key = rng.key(view.round.seed, rng.ATTACK, _PURPOSE)
        speaks = rng.uniforms(key, forged.liar, view.round.number, 1)[:, 0] >= p
        if speaks.all():
            return forged, after
        told = (forged.liar[speaks], forged.victim[speaks], forged.row[speaks])
        return Forged(*told, forged.models, rows=forged.rows, combination=forged.combination), after

    return Attack(
        "feigned-sleep",
        forge,
        init=attack.init,
        observe=attack.observe,
        options={"inner": {"name": attack.name, **attack.options}, "p": p},
        needs_response=attack.needs_response,
        needs_data=attack.needs_data,
        horizon=attack.horizon,
    )
