"""An attack from a plain function of what one victim sees: simple but slow, called victim by victim.

    own (D,), received (d, D)   ->   (D,) what every liar tells that victim; None: they keep silent

`own` is the victim's model of the round and `received` those of its honest neighbours, by id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from byzmesh.attacks.base import Attack, Forged, State, View, attacks
from byzmesh.entries import Plain
from byzmesh.errors import ConfigError

ARGUMENTS = ("own", "received")


def plain_attack(function: Callable[..., Any], name: str, options: Mapping[str, Any]) -> Attack:
    """The attack of a plain function; `options` are its further arguments.

    >>> import byzmesh as bm
    >>> def opposite(own, received):
    ...     return -received.mean(axis=0)
    >>> net = bm.network("paper/two-castle")
    >>> bm.forge(opposite, net, np.ones((10, 2)))[7, 0]
    array([-1., -1.])
    """

    def forge_victim_by_victim(view: View, state: State) -> tuple[Forged, State]:
        scene, models = view.scene, view.models
        rows = np.zeros((len(scene.victims), models.shape[1]), models.dtype)
        told = np.zeros(len(scene.victims), bool)
        for place, victim in enumerate(scene.victims):
            neighbours = scene.neighbour[place]
            lie = function(models[victim], models[neighbours[neighbours >= 0]], **options)
            if lie is not None:
                vector = np.asarray(lie)
                if vector.shape != models.shape[1:]:
                    raise ConfigError(
                        f"attack {name} must return a vector of shape {models.shape[1:]}, got shape {vector.shape}"
                    )
                rows[place], told[place] = vector, True
        pairs = told[scene.place]
        return Forged(scene.liar[pairs], scene.victim[pairs], scene.place[pairs], models, rows=rows), state

    return Attack(name, forge_victim_by_victim, options=options)


attacks.plain = Plain("attack", ARGUMENTS, plain_attack)
