"""Min-max and min-sum: as far along the spread as the honest models themselves reach.

    message to n = mean - gamma std       per coordinate over the models of n's honest neighbours, n excluded

with the largest gamma for which the message is no farther from the honest models than they are from each other:

    min-max   max_m ||message - x_m||^2 <= max_{l, m} ||x_l - x_m||^2
    min-sum   sum_m ||message - x_m||^2 <= max_l sum_m ||x_l - x_m||^2

(Shejwalkar and Houmansadr, NDSS 2021, who search for gamma.) Both are quadratic in gamma and solved exactly here from
the Gram matrix of the honest models and their products with the spread: with p = -std and e_m = mean - x_m,

    ||message - x_m||^2 = ||e_m||^2 + 2 gamma <p, e_m> + gamma^2 ||p||^2,     sum_m e_m = 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from byzmesh.attacks.base import Attack, Forged, Scene, View, attacks
from byzmesh.attacks.parts import frozen, heard
from byzmesh.attacks.spread import shifted_means
from byzmesh.checks import finite
from byzmesh.types import Floats, Integers

Sample = tuple[Integers, Integers]
Reach = Callable[[Floats, Floats, Floats, Floats], Floats]
"""(square (V, J, J), error (V, J), lean (V, J), present (V, J)) -> gamma (V,), for a direction of length 1."""


@attacks.register("min-max")
def min_max(scale: float = 1.0) -> Attack:
    """Mean - gamma std of the victim's honest neighbours, no farther from any of them than they are from each other.

    `scale` multiplies gamma.

    >>> min_max().name
    'min-max'
    """
    return _evasive("min-max", within_every_distance, scale)


@attacks.register("min-sum")
def min_sum(scale: float = 1.0) -> Attack:
    """Mean - gamma std of the victim's honest neighbours, with a sum of squared distances no larger than theirs.

    `scale` multiplies gamma.

    >>> min_sum().name
    'min-sum'
    """
    return _evasive("min-sum", within_sum_of_squares, scale)


def within_every_distance(square: Floats, error: Floats, lean: Floats, present: Floats) -> Floats:
    """(V,) the largest gamma of min-max."""
    room = square.max(axis=(1, 2))[:, None] - error
    root = np.sqrt(np.maximum(lean**2 + room, 0.0)) - lean
    gamma: Floats = np.where(present > 0.0, root, np.inf).min(axis=1)
    return np.maximum(gamma, 0.0)


def within_sum_of_squares(square: Floats, error: Floats, lean: Floats, present: Floats) -> Floats:
    """(V,) the largest gamma of min-sum."""
    room = square.sum(axis=2).max(axis=1) - error.sum(axis=1)
    gamma: Floats = np.sqrt(np.maximum(room, 0.0) / present.sum(axis=1))
    return gamma


def _evasive(name: str, reach: Reach, scale: float) -> Attack:
    finite(f"attack {name}: scale", scale)

    @np.errstate(over="ignore", invalid="ignore")  # models of diverging workers may overflow
    def forge(view: View, sample: Sample) -> tuple[Forged, Sample]:
        member, count = sample
        models = frozen(view.models)
        present = (np.arange(member.shape[1]) < count[:, None]).astype(np.float64)
        mean = np.empty((len(member), models.shape[1]), models.dtype)
        shifted_means(models, member, count, np.zeros(len(count), models.dtype), mean)
        rows = np.empty_like(mean)
        shifted_means(models, member, count, np.full(len(count), -1.0, models.dtype), rows)
        push = rows - mean
        length = np.sqrt(np.einsum("vd,vd->v", push, push, dtype=np.float64))
        # relative to one honest model: near consensus, products of the models would lose the differences
        centred = models - models[:1]
        gram = (centred @ centred.T).astype(np.float64)
        inner = gram[member[:, :, None], member[:, None, :]]
        corner = np.einsum("vjj->vj", inner)
        pair = present[:, :, None] * present[:, None, :]
        square = np.maximum(corner[:, :, None] + corner[:, None, :] - 2.0 * inner, 0.0) * pair
        share = present / present.sum(axis=1, keepdims=True)
        toward = np.einsum("vjk,vk->vj", inner, share)
        middle = np.einsum("vj,vj->v", toward, share)
        error = np.maximum(corner - 2.0 * toward + middle[:, None], 0.0) * present
        product = np.take_along_axis((push @ centred.T).astype(np.float64), member, axis=1)
        lean = (
            (np.einsum("vj,vj->v", product, share)[:, None] - product) / np.maximum(length, 1e-300)[:, None] * present
        )
        gamma = np.where(length > 0.0, reach(square, error, lean, present) / np.maximum(length, 1e-300), 0.0)
        mean += (scale * gamma)[:, None].astype(models.dtype) * push
        return Forged(view.scene.liar, view.scene.victim, view.scene.place, view.models, rows=mean), sample

    def init(scene: Scene) -> Sample:
        return heard(scene)

    return Attack(name, forge, init=init, options={"scale": scale})
