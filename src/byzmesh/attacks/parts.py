"""Parts shared by several attacks: combinations of honest models, identities of pairs, checks of options.

A victim's honest inbox is its own model and its honest neighbours' models. `holdings` lists their rows and
`mean_of_holdings` the coefficients of a mean over them, both (V, 1 + J) with the victim itself in column 0. Padded
columns name the victim's own row with coefficient 0, so that every index is valid.

A `Plan` is a combination, with the message that each pair sends; it depends only on the graph, so `init` makes it once
and a round costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.attacks.base import Combination, Forged, Scene, View
from byzmesh.compiled import exact
from byzmesh.errors import ConfigError
from byzmesh.records import made
from byzmesh.sums import MOST, row_sum
from byzmesh.types import Floats, Integers

BLOCK = 512
"""Coordinates per block of a kernel: a block of a dozen rows fits into the L1 cache."""
MEANS = ("weighted", "plain")


@dataclass(frozen=True)
class Plan:
    """Messages prepared from the graph: `row` (F,) is the message of each pair, `combination` has Q messages."""

    row: Integers
    combination: Combination


def send(view: View, plan: Plan) -> Forged:
    """The planned messages with this round's models."""
    return planned(view.scene, plan, view.models)


def planned(scene: Scene, plan: Plan, models: Any) -> Forged:
    """The planned messages with these models."""
    told = {"row": plan.row, "combination": plan.combination}
    return made(Forged, liar=scene.liar, victim=scene.victim, models=models, rows=None, **told)


def send_as_planned(view: View, plan: Plan) -> tuple[Forged, Plan]:
    """`forge` of an attack whose combination never changes."""
    return send(view, plan), plan


def per_victim(scene: Scene, coefficient: Floats) -> Plan:
    """A plan in which all liars tell a victim the same: coefficient (V, 1 + J) over its honest inbox."""
    return Plan(scene.place, Combination(holdings(scene), coefficient))


def frozen(models: Any) -> Any:
    """The models as kernels need them: contiguous and read-only, so that each kernel is compiled once per type."""
    view = np.ascontiguousarray(models).view()
    view.flags.writeable = False
    return view


def holdings(scene: Scene) -> Integers:
    """(V, 1 + J) rows of each victim's honest inbox: itself, then its honest neighbours, padded with itself."""
    rows = np.empty((len(scene.victims), 1 + scene.neighbour.shape[1]), np.int64)
    _hold(scene.victims, scene.neighbour, rows)
    return rows


def heard(scene: Scene) -> tuple[Integers, Integers]:
    """Rows (V, 1 + J) of each victim's honest neighbours and their number (V,): itself, 1 if it has none.

    The columns from that number on are padding.
    """
    rows = np.ascontiguousarray(np.roll(holdings(scene), -1, axis=1))
    return rows, np.maximum(honest_degree(scene), 1)


def honest_degree(scene: Scene) -> Integers:
    """(V,) number of honest neighbours of each victim."""
    degree: Integers = np.count_nonzero(scene.neighbour >= 0, axis=1).astype(np.int64)
    return degree


def liar_degree(scene: Scene) -> Integers:
    """(V,) number of lying neighbours of each victim."""
    return np.bincount(scene.place, minlength=len(scene.victims)).astype(np.int64)


def pair_ids(scene: Scene) -> Integers:
    """(F,) identity of each (liar, victim) pair for random draws; other workers do not change it."""
    return (scene.liar << 32) | scene.victim


def mean_of_holdings(scene: Scene, mean: str, own: bool) -> Floats:
    """(V, 1 + J) coefficients of the mean over a victim's honest neighbours, with its own model if `own`.

    weighted: sum_m w'_nm x_m / sum_m w'_nm; plain: equal weights. If the weights sum to 0 the mean is plain, and
    without honest neighbours it is the victim's own model.
    """
    if scene.neighbour.shape[1] < MOST:
        out = np.empty((len(scene.victims), 1 + scene.neighbour.shape[1]))
        _mean(scene.neighbour, scene.own_weight, scene.weight, own, mean == "weighted", out)
        return out
    counts = np.concatenate([np.full((len(scene.victims), 1), own), scene.neighbour >= 0], axis=1).astype(np.float64)
    counts[:, 0] = np.where(counts.sum(axis=1) == 0.0, 1.0, counts[:, 0])
    if mean == "weighted":
        weight = counts * np.concatenate([scene.own_weight[:, None], scene.weight], axis=1)
        counts = np.where(weight.sum(axis=1, keepdims=True) > 0.0, weight, counts)
    coefficient: Floats = counts / counts.sum(axis=1, keepdims=True)
    return coefficient


@exact
def _hold(victims: Any, neighbour: Any, rows: Any) -> None:
    for victim in range(len(victims)):
        rows[victim, 0] = victims[victim]
        for place in range(neighbour.shape[1]):
            row = neighbour[victim, place]
            rows[victim, place + 1] = row if row >= 0 else victims[victim]


@exact
def _mean(neighbour: Any, own_weight: Any, weight: Any, own: bool, weighted: bool, out: Any) -> None:
    """`mean_of_holdings` for up to `MOST` columns, in the same order of sums."""
    for victim in range(out.shape[0]):
        alone = not own
        out[victim, 0] = own_weight[victim] if own else 0.0
        for place in range(neighbour.shape[1]):
            heard = neighbour[victim, place] >= 0
            alone = alone and not heard
            out[victim, place + 1] = weight[victim, place] if heard else 0.0
        if alone:
            out[victim, 0] = own_weight[victim]
        if not (weighted and row_sum(out[victim]) > 0.0):
            out[victim, 0] = 1.0 if own or alone else 0.0
            for place in range(neighbour.shape[1]):
                out[victim, place + 1] = 1.0 if neighbour[victim, place] >= 0 else 0.0
        total = row_sum(out[victim])
        for place in range(out.shape[1]):
            out[victim, place] /= total


def against(scene: Scene, weight: Floats, lie: Floats, attack: str, way_out: str) -> Floats:
    """(V, J) w'_nm / sum_b w'_nb: honest weights as multiples of the weight the liars can move."""
    if not np.all(lie > 0.0):
        worker = int(scene.honest[scene.victims[int(np.argmin(lie))]])
        raise ConfigError(
            f"attack {attack} needs a positive mixing weight on the lying neighbours of worker {worker}, "
            f"got {float(lie.min()):g}; {way_out}"
        )
    return weight / lie[:, None]
