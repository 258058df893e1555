"""Measured agreement under attack: by how much lies can make an exchange raise the disagreement of a whole network.

    factor = H after / H before,      H the mean squared distance of the honest models from their mean

The adversary chooses all honest models and every lie (one per receiver and liar) together. Structured starts are two
camps and random models, with lies that send each worker its own model, push it away from the mean or pull it past the
mean; the best are improved by gradient-free ascent. Over several rounds, each round starts from the models of the one
before and takes the best of many lies. Both are lower bounds, to compare with the upper bounds of
`consensus.conditions`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from byzmesh import rng
from byzmesh.theory.search.exchange import Exchange, camps, disagreement
from byzmesh.types import Floats

PUSHES = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, -0.5, -1.0, -2.0, 30.0)
"""Lies at x_n + push (x_n - mean): its own model, away from the mean, towards it and beyond."""
MEMBERS = 6
MOVES = 12
SMALLEST = 1e-9
"""Disagreement below this fraction of the models' size counts as rounding."""


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """The result of a search: the worst factor of H in one exchange and the worst per exchange over several.

    models, lies  the input of the worst exchange, (N, D) and (lies, D); None if nothing was tried
    """

    factor: float
    over_rounds: float
    rounds: int
    models: Floats | None
    lies: Floats | None


def search_agreement(
    exchange: Exchange, *, budget: int = 2000, rounds: int = 8, seed: int = 0, dimension: int = 1
) -> Agreement:
    """The worst factors found; `budget` exchanges are tried.

    >>> from byzmesh.networks import network
    >>> from byzmesh.rules.aggregate import rule
    >>> net = network("complete", n=8, byzantine=[7])
    >>> seen = search_agreement(Exchange(net, rule("ios"), net.bounds(1)), budget=300)
    >>> 0.02 < seen.factor < 1.0
    True
    """
    workers = len(exchange.network.honest)
    if workers < 2:
        return Agreement(factor=0.0, over_rounds=0.0, rounds=rounds, models=None, lies=None)
    draw = rng.generator(seed, rng.RULE, workers)
    start = _starts(exchange, draw, dimension, max(8, budget // 3))
    models, lies = start
    value = factors(exchange, models, lies)
    used = len(value)
    order = np.argsort(-value, kind="stable")[:MEMBERS]
    models, lies, value = models[order], lies[order], value[order]
    step = np.full(len(value), 0.5)
    while used < budget:
        near, said = _moves(models, lies, step, draw)
        flat = len(models) * MOVES
        trial = factors(exchange, near.reshape(flat, *near.shape[2:]), said.reshape(flat, *said.shape[2:]))
        table = trial.reshape(len(models), MOVES)
        used += table.size
        pick, rows = table.argmax(axis=1), np.arange(len(models))
        better = table[rows, pick] > value * (1.0 + 1e-9)
        models = np.where(better[:, None, None], near[rows, pick], models)
        lies = np.where(better[:, None, None], said[rows, pick], lies)
        value = np.where(better, table[rows, pick], value)
        step = np.where(better, np.minimum(1.0, 1.5 * step), 0.5 * step)
        if step.max() < 1e-4:
            break
    best = int(value.argmax())
    several = _over_rounds(exchange, np.concatenate([models, start[0][:16]]), rounds)
    return Agreement(
        factor=float(value[best]), over_rounds=several, rounds=rounds, models=models[best], lies=lies[best]
    )


def factors(exchange: Exchange, models: Floats, lies: Floats) -> Floats:
    """(C,) H after divided by H before; 0 where the workers agree up to rounding."""
    before = disagreement(models)
    centred = models - models[:, :1]
    size = (centred**2).sum(axis=2).max(axis=1)
    after = disagreement(exchange.apply(models, lies))
    fine = before > SMALLEST * np.maximum(size, (lies**2).sum(axis=2).max(axis=1, initial=0.0) * 1e-6)
    ratio: Floats = np.where(fine, after / np.where(fine, before, 1.0), 0.0)
    return ratio


def pushed(exchange: Exchange, models: Floats, push: Floats) -> Floats:
    """(C, lies, D) lies at x_n + push (x_n - mean) for each receiver n: push (C,) or (C, lies)."""
    own = models[:, exchange.receivers]
    away = own - models.mean(axis=1, keepdims=True)
    spread = np.broadcast_to(push[:, None] if push.ndim == 1 else push, own.shape[:2])
    return np.asarray(own + spread[..., None] * away)


def _starts(exchange: Exchange, draw: np.random.Generator, dimension: int, count: int) -> tuple[Floats, Floats]:
    workers = len(exchange.network.honest)
    cut = camps(exchange.network)
    known = np.zeros((len(cut), workers, dimension))
    known[:, :, 0] = cut
    fresh = draw.normal(size=(max(4, count // len(PUSHES) // 2), workers, dimension))
    fresh[::2] = np.sign(fresh[::2])
    few = known[draw.permutation(len(known))[: max(4, count // len(PUSHES) // 2)]]
    base = np.concatenate([few, fresh])
    models = np.repeat(base, len(PUSHES), axis=0)
    push = np.tile(np.array(PUSHES), len(base))
    return models, pushed(exchange, models, push)


def _moves(models: Floats, lies: Floats, step: Floats, draw: np.random.Generator) -> tuple[Floats, Floats]:
    count, workers, _ = models.shape
    scale = np.sqrt(disagreement(models)) * step + 1e-12
    near = np.repeat(models[:, None], MOVES, axis=1)
    said = np.repeat(lies[:, None], MOVES, axis=1)
    both = draw.random((count, MOVES, 1, 1))
    alone = draw.random((count, MOVES, workers, 1)) < 1.5 / workers
    near = near + scale[:, None, None, None] * np.where(both < 0.7, alone, 0.0) * draw.normal(size=near.shape)
    if lies.shape[1]:
        one = draw.random((count, MOVES, lies.shape[1], 1)) < 2.0 / lies.shape[1]
        said = said + scale[:, None, None, None] * np.where(both > 0.3, one, 0.0) * draw.normal(size=said.shape)
    return near, said


def _over_rounds(exchange: Exchange, models: Floats, rounds: int) -> float:
    """The largest (H after / H before)^(1 / rounds) if the lies of every round raise H most."""
    first = disagreement(models)
    now = models[first > 0.0]
    first = first[first > 0.0]
    if len(now) == 0:
        return 0.0
    for _ in range(rounds):
        options = np.repeat(now, len(PUSHES), axis=0)
        after = exchange.apply(options, pushed(exchange, options, np.tile(np.array(PUSHES), len(now))))
        table = disagreement(after).reshape(len(now), len(PUSHES))
        pick = table.argmax(axis=1)
        now = after.reshape(len(now), len(PUSHES), *after.shape[1:])[np.arange(len(now)), pick]
    return float(((disagreement(now) / first) ** (1.0 / rounds)).max())
