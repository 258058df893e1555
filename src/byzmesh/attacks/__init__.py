"""Attacks: what lying workers send.

An attack is registered by name and is a record of two pure functions; `base.py` says what they see and return.

    averages.py   gaussian, sign-flipping, isolation, IPM, dissensus: means over the victim's honest inbox
    spread.py     ALIE: a mean moved by a multiple of the honest spread
    copies.py     sample-duplicating, mimic: true models of honest workers, sent by liars
    faults.py     none, silent, zero, same-value, stale, nan, infinity, huge, label-flipping: what broken workers do
    evasive.py    min-max, min-sum: as far along the spread as the honest models reach
    spectral.py   spectral-heterogeneity: along the slowest mode of the honest graph
    reflection.py the honest mean mirrored at zero, at the start or at a running average
    threshold_riding.py, pull_back.py, target.py
                  the lie that moves a victim farthest in a direction, back, or to a wrong model: tried on the rule
    adaptive.py   adaptive: of a set of attacks the one that will have harmed most some rounds later
    timing.py     late, alternating, one-victim, mixed: when and to whom any of the others lies

Options default to the paper's text; each registration names those that reproduce the published numbers (`published`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from byzmesh.attacks.base import Attack, Combination, Forged, Scene, View, attacks

__all__ = ["Attack", "Combination", "Forged", "Scene", "View", "attack", "attacks"]


def attack(spec: str | Attack | Mapping[str, Any] | Callable[..., Any], /, **options: Any) -> Attack:
    """The attack of a name or a mapping with `name`, with these options.

    >>> attack("foe", eps=1.0).name
    'IPM'
    >>> attack("alie", zz=1)
    Traceback (most recent call last):
    byzmesh.errors.UnknownOption: attack ALIE has no option 'zz': did you mean 'z'?
    """
    return attacks.build(spec, **options)
