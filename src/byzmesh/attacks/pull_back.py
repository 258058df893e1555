"""Pull-back: keep the network where it is.

Per victim and round, the lie after which the rule's output A_n is as near to a former state of the network as the rule
lets it be: the largest

    <A_n - xbar_n, r - xbar_n> / ||r - xbar_n||,     r the start, a running average of the honest models, or their
                                                     average before the local steps of this round

The direction r - xbar_n is the honest workers' progress, reversed. Tried on the rule in use are: r itself and the
directions of the adaptive attacker, each at several lengths (`search.py`). A rule that cuts the outlier refuses r but
may take a lie to the side that is nearer to the honest models and still holds the victim back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.attacks import directions
from byzmesh.attacks.base import Attack, Forged, Scene, View, attacks
from byzmesh.attacks.reflection import average_before, remembered
from byzmesh.attacks.search import best_of, worst_lies
from byzmesh.attacks.state import Split
from byzmesh.checks import choice, fraction

REFERENCES = ("start", "average", "round")


@attacks.register("pull-back")
def pull_back(reference: str = "start", memory: float = 0.9) -> Attack:
    """Per victim the lie that most undoes the way from a reference to the honest average, tried on the rule in use.

    reference  start: the average of the honest models in the first round that the liars see; average: their running
               average, of which `memory` is kept in every round, so that the last progress is undone; round: the
               average of the honest models before the local steps of this round, for the simulator only

    Needs the rule (`View.respond`), which a simulation provides.

    >>> pull_back().needs_response
    True
    """
    choice("attack pull-back: reference", reference, REFERENCES)
    fraction("attack pull-back: memory", memory)

    def init(scene: Scene) -> Split:
        return Split(directions.prepared(scene), np.zeros(0))

    def forge(view: View, state: Split) -> tuple[Forged, Split]:
        state = observe(view, state)
        about = average_before("pull-back", view) if reference == "round" else state.memory
        told = [everybody_hears(view, about), *directions.told(view, state.plan)]
        return worst_lies("pull-back", view, told, best_of, goal=0), state

    def observe(view: View, state: Split) -> Split:
        return remembered(view, state, reference, memory)

    options = {"reference": reference, "memory": memory}
    return Attack("pull-back", forge, init=init, observe=observe, options=options, needs_response=True)


def everybody_hears(view: View, point: Any) -> Forged:
    """The same point (D,) told to every victim."""
    rows = np.asarray(point)[None, :].astype(view.models.dtype)
    return Forged(view.scene.liar, view.scene.victim, np.zeros(len(view.scene.liar), np.int64), view.models, rows=rows)
