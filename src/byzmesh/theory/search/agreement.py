"""Measured agreement under attack: by how much lies can make an exchange raise the disagreement of a whole network.

    factor = H after / H before,      H the mean squared distance of the honest models from their mean

The adversary chooses all honest models, on a line, and the lies together. Lies bring the answer of worker n up to some
high_n or down to some low_n, and H, convex in every answer, is largest where each is one or the other: high_n, roughly,
where the middle of the two is above the mean of all answers. So all N + 1 cuts between the sorted middles are tried.
Honest models start as two camps and at random. The best are improved by gradient-free ascent, with lies near those that
did best so far. Over several rounds, each round starts from the models of the one before and the lies raise H most.
Both results are lower bounds, to compare with the upper bounds of `consensus.conditions`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from byzmesh import rng
from byzmesh.theory.search.exchange import Exchange, camps
from byzmesh.types import Floats, Integers

REACHES = np.array([-30.0, -3.0, -1.5, -0.75, -0.3, 0.0, 0.3, 0.75, 1.5, 3.0, 30.0])
"""Lies to victim n at x_n + reach (max - min): its own model, and to both sides of it."""
MEMBERS = 6
MOVES = 8
NEAR = 4
"""How many lies near the best so far are tried in a move."""
FINER = (0.3 * np.linspace(-1.0, 1.0, 9), 0.06 * np.linspace(-1.0, 1.0, 9))
"""Further lies around the best, round by round: a lie does most just before it is cut."""
SMALLEST = 1e-9
"""Disagreement below this fraction of the models' size counts as rounding."""


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """The result of a search: the worst factor of H in one exchange and the worst per exchange over several.

    models, lies  (N,) the input of the worst exchange and what each worker's lying neighbours tell it; None if nothing
                  was tried
    """

    factor: float
    over_rounds: float
    rounds: int
    models: Floats | None
    lies: Floats | None


def search_agreement(exchange: Exchange, *, budget: int = 4000, rounds: int = 8, seed: int = 0) -> Agreement:
    """The worst factors found, with about `budget` exchanges for one round and as many for several.

    >>> from byzmesh.networks import network
    >>> from byzmesh.rules.aggregate import rule
    >>> net = network("complete", n=12, byzantine=[0, 1])
    >>> seen = search_agreement(Exchange(net, rule("ios"), net.bounds(2)))
    >>> 0.5 < seen.factor < 1.0, seen.over_rounds <= seen.factor
    (True, True)
    """
    workers = len(exchange.network.honest)
    if workers < 2:
        return Agreement(factor=0.0, over_rounds=0.0, rounds=rounds, models=None, lies=None)
    draw = rng.generator(seed, rng.RULE, workers)
    models = start = _starts(exchange, draw, max(4, budget // (3 * len(REACHES))))
    reach = np.broadcast_to(REACHES, (len(models), workers, len(REACHES)))
    value, reach, _ = worst_round(exchange, models, reach)
    used = reach.size // workers * len(REACHES)
    order = np.argsort(-value, kind="stable")[:MEMBERS]
    models, reach, value = models[order], reach[order], value[order]
    step = np.full(len(value), 0.5)
    while used < budget and step.max() >= 1e-4:
        near, tried = _moves(models, reach, step, draw)
        found, said, _ = worst_round(exchange, near, tried)
        used += len(found) * tried.shape[2]
        table = found.reshape(len(models), MOVES)
        pick = table.argmax(axis=1) + MOVES * np.arange(len(models))
        better = found[pick] > value * (1.0 + 1e-9)
        models = np.where(better[:, None], near[pick], models)
        reach = np.where(better[:, None], said[pick], reach)
        value = np.where(better, found[pick], value)
        step = np.where(better, np.minimum(1.0, 1.5 * step), 0.5 * step)
    best = int(value.argmax())
    count = max(1, budget // (rounds * (len(REACHES) + sum(map(len, FINER)))))
    several = over_rounds(exchange, np.concatenate([models, start])[:count], rounds)
    lies = models[best] + reach[best] * np.ptp(models[best])
    return Agreement(
        factor=float(value[best]), over_rounds=several, rounds=rounds, models=models[best], lies=np.asarray(lies)
    )


def worst_round(exchange: Exchange, models: Floats, reach: Floats) -> tuple[Floats, Floats, Floats]:
    """The lies that raise H most, for C networks of honest models (C, N), among lies at `reach` (C, N, G).

    (C,) factors, 0 where the workers agree up to rounding; (C, N) the reach of the lies, and the models after.
    """
    wide = np.ptp(models, axis=1)
    lies = models[:, :, None] + reach * wide[:, None, None]
    table = exchange.answers(models, lies)
    down, up = table.argmin(axis=2), table.argmax(axis=2)
    low, high = _taken(table, down), _taken(table, up)
    rank = (low + high).argsort(axis=1).argsort(axis=1)
    above = rank[:, None, :] >= np.arange(models.shape[1] + 1)[:, None]  # (C, N + 1, N)
    cut = np.where(above, high[:, None], low[:, None]).var(axis=2).argmax(axis=1)
    pick = np.where(rank >= cut[:, None], up, down)
    before, after = models.var(axis=1), _taken(table, pick).var(axis=1)
    fine = before > SMALLEST * np.abs(models).max(axis=1) ** 2
    factor: Floats = np.where(fine, after / np.where(fine, before, 1.0), 0.0)
    return factor, _taken(np.asarray(reach), pick), _taken(table, pick)


def _taken(table: Floats, pick: Integers) -> Floats:
    return np.asarray(np.take_along_axis(table, pick[:, :, None], axis=2)[:, :, 0])


def _starts(exchange: Exchange, draw: np.random.Generator, count: int) -> Floats:
    workers = len(exchange.network.honest)
    cut = camps(exchange.network)
    few = cut[draw.permutation(len(cut))[: max(2, count // 2)]]
    fresh = draw.normal(size=(max(2, count // 2), workers))
    fresh[::2] = draw.random(fresh[::2].shape) < draw.uniform(0.1, 0.9, (len(fresh[::2]), 1))
    return np.concatenate([few, fresh])


def _moves(models: Floats, reach: Floats, step: Floats, draw: np.random.Generator) -> tuple[Floats, Floats]:
    """(M MOVES, N) models near each of M, and (M MOVES, N, G) lies near the best ones, further ones among them."""
    count, workers = models.shape
    few = draw.choice([1.5 / workers, 0.5, 1.0], (count, MOVES, 1))
    moved = draw.random((count, MOVES, workers)) < few
    size = (step * models.std(axis=1))[:, None, None]
    near = models[:, None] + size * moved * draw.normal(size=moved.shape)
    shape = (count, MOVES, workers, NEAR)
    close = reach[:, None, :, None] + step[:, None, None, None] * draw.normal(size=shape) * draw.choice(
        [0.1, 1.0], shape
    )
    close[..., 0] = reach[:, None]
    tried = np.concatenate([close, draw.choice(REACHES, shape)], axis=3)
    return near.reshape(-1, workers), tried.reshape(count * MOVES, workers, -1)


def over_rounds(exchange: Exchange, models: Floats, rounds: int) -> float:
    """The largest (H after / H before)^(1 / rounds) if the lies of every round raise H most: models (C, N)."""
    first = models.var(axis=1)
    now, first = models[first > 0.0], first[first > 0.0]
    if len(now) == 0:
        return 0.0
    coarse = np.broadcast_to(REACHES, (*now.shape, len(REACHES)))
    for _ in range(rounds):
        _, reach, after = worst_round(exchange, now, coarse)
        for finer in FINER if exchange.lies else ():
            _, reach, after = worst_round(exchange, now, reach[:, :, None] + finer)
        now = after
    return float(((now.var(axis=1) / first) ** (1.0 / rounds)).max())
