"""Spectral heterogeneity: push every victim along the slowest mode of the honest graph.

    message to n = x_n + scale v_n (v^T X),    v the Fiedler vector of the honest graph, X (N, D) the honest models

v^T X is how far the two loosely linked parts of the network are apart. The victims of each part are pulled further to
its side, so that the difference that gossip removes last never dies out. (Gaucher, Dieuleveut and Hendrikx, 2024.) One
message per victim, a combination of all honest models that is fixed by the graph.
"""

from __future__ import annotations

import numpy as np

from byzmesh.attacks.base import Attack, Combination, Scene, attacks
from byzmesh.attacks.parts import Plan, send_as_planned
from byzmesh.checks import finite


@attacks.register("spectral-heterogeneity", aliases=("spectral", "fiedler"))
def spectral_heterogeneity(scale: float = 1.0) -> Attack:
    """The victim's model moved along the Fiedler mode of the honest graph: x_n + scale v_n sum_m v_m x_m.

    >>> spectral_heterogeneity(scale=4.0).options["scale"]
    4.0
    """
    finite("attack spectral-heterogeneity: scale", scale)

    def init(scene: Scene) -> Plan:
        mode = scene.fiedler() if len(scene.honest) > 1 else np.zeros(len(scene.honest))
        coefficient = scale * np.outer(mode[scene.victims], mode)
        coefficient[np.arange(len(scene.victims)), scene.victims] += 1.0
        index = np.broadcast_to(np.arange(len(scene.honest)), coefficient.shape).copy()
        return Plan(scene.place, Combination(index, coefficient))

    return Attack("spectral-heterogeneity", send_as_planned, init=init, fixed=True, options={"scale": scale})
