"""The adaptive attacker: it knows the rule, the data and what comes, and does what will have harmed most.

Every `horizon` rounds it looks ahead: each of `CANDIDATES` is played for that many rounds in a copy of the simulation,
with the batches that the honest workers will draw, and the one after which they are worst (lowest mean accuracy, or the
highest loss of a problem without accuracy) is played for real until the next look. The first candidate is

    displacement   per victim and round, the direction and length that move the rule's actual output farthest from the
                   honest average: damage_n = ||A_n(lies) - xbar_n||    (`search.py`)

With horizon 1, or where there is no future to look into (liars among real peers), it is the only one: the largest
displacement of a single round, which is not the worst in the long run.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from byzmesh.attacks import directions
from byzmesh.attacks.ascent import ascent
from byzmesh.attacks.averages import sign_flipping
from byzmesh.attacks.base import Attack, Forged, Scene, State, View, attacks
from byzmesh.attacks.box import box
from byzmesh.attacks.pull_back import pull_back
from byzmesh.attacks.reflection import reflection
from byzmesh.attacks.search import best_of, worst_lies
from byzmesh.attacks.spread import alie
from byzmesh.attacks.state import States
from byzmesh.attacks.target import target
from byzmesh.attacks.threshold_riding import threshold_riding
from byzmesh.attacks.timing import mixed, one_victim, truth
from byzmesh.checks import whole


def displacement() -> Attack:
    """The lies that move the rule in use farthest from the honest average, in this round."""

    def forge(view: View, prepared: State) -> tuple[Forged, State]:
        return worst_lies("adaptive", view, directions.told(view, prepared), best_of), prepared

    return Attack("displacement", forge, init=directions.prepared, needs_response=True)


CANDIDATES: tuple[Callable[[], Attack], ...] = (
    displacement,
    lambda: alie(z=3.0),
    lambda: threshold_riding(direction="ALIE"),
    lambda: threshold_riding(direction="negative"),
    pull_back,
    target,
    lambda: threshold_riding(direction="ascent"),
    lambda: ascent(length=1e4),
    ascent,
    box,
    lambda: threshold_riding(direction="fiedler"),
    lambda: threshold_riding(direction="ALIE-minus"),
    sign_flipping,
    reflection,
    lambda: reflection(reference="round"),
    lambda: pull_back(reference="round"),
    lambda: one_victim({"name": "threshold-riding", "direction": "negative"}, period=25),
    lambda: mixed("target", {"name": "ALIE", "z": 3.0}),
    lambda: reflection(reference="average"),
    lambda: pull_back(reference="average"),
    truth,
)


@attacks.register("adaptive", aliases=("rule-aware",))
def adaptive(horizon: int = 25) -> Attack:
    """Every `horizon` rounds, the attack of a set that will have harmed most after them.

    With horizon 1 it is the largest displacement of one round. The state is the number of the attack that is played,
    and the states of all.

    >>> adaptive().needs_response, adaptive(horizon=1).horizon
    (True, 0)
    """
    whole("attack adaptive: horizon", horizon, 1)
    parts = tuple(make() for make in (CANDIDATES if horizon > 1 else CANDIDATES[:1]))

    def init(scene: Scene) -> States:
        return States((0, *(part.init(scene) if scene.has_data or not part.needs_data else None for part in parts)))

    def forge(view: View, state: States) -> tuple[Forged, States]:
        played, states = state[0], state[1:]
        if view.foresee is not None and view.round.number % horizon == 0:  # `mixed` may look more often
            able = [n for n, part in enumerate(parts) if states[n] is not None or not part.needs_data]
            harm = [view.foresee(parts[number], states[number], horizon) for number in able]
            played = able[harm.index(max(harm, key=lambda value: -math.inf if math.isnan(value) else value))]
        forged, told = parts[played].forge(view, states[played])
        after = [*observe(view, state)[1:]]
        after[played] = told
        return forged, States((played, *after))

    def observe(view: View, state: States) -> States:
        kept = zip(parts, state[1:], strict=True)
        return States((state[0], *(known if known is None else part.observe(view, known) for part, known in kept)))

    return Attack(
        "adaptive",
        forge,
        init=init,
        observe=observe,
        options={"horizon": horizon},
        needs_response=True,
        horizon=horizon if horizon > 1 else 0,
    )
