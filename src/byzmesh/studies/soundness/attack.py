"""Attacks on what a certificate claims. Every level that it calls proved is attacked:

bounded    admitted placements, inputs and lies searched for the worst ratio, liars that fall silent
fair       whether W is doubly stochastic and the honest are connected in these placements
connected  the same, and the cuts that a certificate names must be admitted and must cut
agrees     honest models and lies searched for the worst factor of H, in one and in several rounds, compared with
           the factor that each condition proves
"""

from __future__ import annotations

from itertools import chain, combinations
from typing import Any

import numpy as np

from byzmesh.networks import Network
from byzmesh.rules.base import Rule
from byzmesh.studies.soundness.cases import Case
from byzmesh.theory.certificate import Certificate
from byzmesh.theory.mixing import MATRICES, doubly_stochastic
from byzmesh.theory.question import Question
from byzmesh.theory.search.agreement import REACHES, search_agreement, worst_round
from byzmesh.theory.search.climb import search_contraction
from byzmesh.theory.search.exchange import Exchange
from byzmesh.theory.search.game import Game, games_of, respond
from byzmesh.types import Floats, Integers

ROUNDING = 1e-6


class Broken(AssertionError):
    """A certificate makes a false claim."""


def placements(question: Question, draw: np.random.Generator, count: int) -> list[list[int]]:
    """Liars that the question admits: the given ones, or the worst of some workers, random ones, groups and nobody."""
    if not question.anywhere:
        return [question.network.byzantine.tolist()]
    n = question.network.n
    chosen: list[list[int]] = [[]]
    for worker in draw.permutation(n)[:count].tolist():
        chosen.append(question.worst_liars(worker))
        liars: list[int] = []
        for node in draw.permutation(n).tolist():
            if len(liars) < n - 2 and question.admits([*liars, node]):
                liars.append(node)
        chosen.append(liars)
        fewer = [liars[: int(draw.integers(len(liars) + 1))], *_groups(question, worker)]
        chosen += [group for group in fewer if question.admits(group)]
    return [list(liars) for liars in {tuple(sorted(liars)) for liars in chosen}]


def _groups(question: Question, worker: int) -> list[list[int]]:
    """A worker with some of its neighbours: with different f some nodes can only lie together."""
    near = question.network.neighbours(worker).tolist()
    cautious = [node for node in near if question.f[node] == 0]
    return [[worker, *cautious], *([worker, node] for node in near)]


def challenge(case: Case, budget: int = 120) -> dict[str, str]:
    """Certify a case and attack every level that holds: level -> status. `Broken` if an attack succeeds."""
    told = case.certificate()
    question = told.question
    draw = np.random.default_rng([51, case.seed])
    statuses = {
        "bounded": told.bounded.status,
        "fair": told.fair.status,
        "agrees": told.agrees.status,
        "connected": told.connectivity.verdict.status,
    }
    _check_connected(case, told, draw)
    if not (told.bounded or told.agrees):
        return statuses
    for liars in placements(question, draw, 2 if budget < 1000 else 6):
        placed = question.network.with_byzantine(liars) if question.anywhere else question.network
        f = question.f[placed.honest] if question.anywhere else question.f
        if told.fair and not doubly_stochastic(MATRICES[told.mixing.form](placed)):
            raise Broken(f"{case}: not doubly stochastic with liars {liars}")
        if told.bounded:
            _check_bounded(case, told, placed, f, budget, draw)
        if told.agrees and len(placed.honest) > 1:
            _check_agrees(case, told, placed, f, budget, draw)
    return statuses


def _check_connected(case: Case, told: Certificate, draw: np.random.Generator) -> None:
    question, verdict = told.question, told.connectivity.verdict
    n = question.network.n
    if not question.anywhere or verdict.status == "unknown":
        return
    if verdict.status == "refuted":
        cut = [] if told.connectivity.cut is None else told.connectivity.cut.tolist()
        if not question.admits(cut) or question.network.with_byzantine(cut).honest_connected:
            raise Broken(f"{case}: liars {cut} are said to cut the honest workers off")
        return
    sets = chain.from_iterable(combinations(range(n), size) for size in range(n - 1)) if n <= 8 else []
    for liars in [*map(list, sets), *placements(question, draw, 4)]:
        if question.admits(liars) and not question.network.with_byzantine(liars).honest_connected:
            raise Broken(f"{case}: liars {liars} cut the honest workers off")


def _check_bounded(
    case: Case, told: Certificate, placed: Network, f: Integers, budget: int, draw: np.random.Generator
) -> None:
    matrix = MATRICES[told.mixing.form](placed)
    seed, dimension = int(draw.integers(1 << 30)), int(draw.integers(1, 3))
    games = games_of(placed, matrix, f)
    keep = draw.permutation(len(games))[: 3 if budget < 1000 else 99]
    games = [games[number] for number in keep.tolist()]
    searched = search_contraction(placed, case.rule, budget=budget, seed=seed, dimension=dimension, games=games)
    if searched.rho > case.limit * (1.0 + ROUNDING):
        raise Broken(f"{case}: liars {placed.byzantine.tolist()} move a worker by {searched.rho}")
    bound = dict(zip(told.question.workers.tolist(), told.proof.bound.tolist()))
    for worker, ratio in searched.by_worker.items():
        if ratio > bound[worker] + ROUNDING * (1.0 + bound[worker]):
            raise Broken(f"{case}: liars {placed.byzantine.tolist()} move worker {worker} by {ratio} > {bound[worker]}")
    for game in games:
        ratio = float(silenced(case.rule, game, draw).max(initial=0.0))
        if ratio > bound[game.worker] + ROUNDING * (1.0 + bound[game.worker]):
            raise Broken(f"{case}: silent liars move worker {game.worker} by {ratio} > {bound[game.worker]}")


def silenced(rule: Rule, game: Game, draw: np.random.Generator, count: int = 40) -> Floats:
    """(C,) ratios on random inputs in which some lies never arrive."""
    liars = np.flatnonzero(game.lying)
    points = np.sign(draw.normal(size=(count, len(game.sender), 1))) * draw.integers(0, 2, (count, 1, 1)) + draw.normal(
        size=(count, len(game.sender), 1)
    ) * draw.choice([0.0, 0.3, 1.0], (count, 1, 1))
    centre = (points[:, :, 0] * game.target).sum(axis=1)
    wide = np.abs(points[:, ~game.lying, 0] - centre[:, None]).max(axis=1)
    points[:, liars] = centre[:, None, None] + draw.uniform(0.5, 4.0, (count, len(liars), 1)) * wide[:, None, None]
    points[:, liars] = np.where(draw.random((count, len(liars), 1)) < 0.5, np.nan, points[:, liars])
    answer = respond(rule, game, points)[:, 0]
    fine = wide > 1e-6
    ratio: Floats = np.where(fine, np.abs(answer - centre) / np.where(fine, wide, 1.0), 0.0)
    return ratio


def _check_agrees(
    case: Case, told: Certificate, placed: Network, f: Integers, budget: int, draw: np.random.Generator
) -> None:
    exchange = Exchange(placed, case.rule, f)
    seed = int(draw.integers(1 << 30))
    seen = search_agreement(exchange, budget=budget, rounds=3, seed=seed)
    who = f"{case}: liars {placed.byzantine.tolist()}"
    workers = len(placed.honest)
    for condition in told.conditions:
        if not condition.holds:
            continue
        if condition.name in ("spectral", "gossip") and seen.factor > condition.factor + ROUNDING:
            raise Broken(f"{who} multiply H by {seen.factor}, {condition} promises {condition.factor}")
        if condition.name == "overlap":
            reached = _spread_after(exchange, condition.rounds, draw)
            if reached > condition.value + ROUNDING:
                raise Broken(f"{who} multiply the largest distance by {reached}, {condition}")
        if condition.name == "RCA" and seen.factor > 1.0 + ROUNDING:
            raise Broken(f"{who} multiply H by {seen.factor}, {condition}")
    models = draw.normal(size=(4, workers))
    first = models.var(axis=1)
    rounds = 60 if budget > 100 else 20
    for _ in range(rounds):
        models = worst_round(exchange, models, _reaches(models))[2]
        if (models.var(axis=1) < 1e-6 * first).all():
            return
    left = float((models.var(axis=1) / first).max())
    slowest = min((told_factor(each) for each in told.conditions if each.holds), default=0.0)
    if left > max(1e-6, slowest**rounds) * 4.0 * workers**2 + 1e-12:
        raise Broken(f"{who} keep H at {left:.3g} of what it was after {rounds} rounds")


def told_factor(condition: Any) -> float:
    """Largest factor by which one exchange multiplies H in the long run; 1 for RCA, whose factor is not computed."""
    return 1.0 if condition.name == "RCA" else float(condition.factor ** (1.0 / condition.rounds))


def _reaches(models: Floats) -> Floats:
    return np.broadcast_to(REACHES, (*models.shape, len(REACHES)))


def _spread_after(exchange: Exchange, rounds: int, draw: np.random.Generator) -> float:
    """The largest distance between two honest models after some rounds, divided by that before.

    Lies bring each worker of the upper half as far up as they can, and the others down.
    """
    workers = len(exchange.network.honest)
    models = np.sign(draw.normal(size=(24, workers)))
    models[:4] = draw.normal(size=(4, workers))
    models = models[np.ptp(models, axis=1) > 0.0]
    wide = np.ptp(models, axis=1)
    for _ in range(rounds):
        lies = models[:, :, None] + _reaches(models) * np.ptp(models, axis=1)[:, None, None]
        table = exchange.answers(models, lies)
        upper = models > (models.max(axis=1) + models.min(axis=1))[:, None] / 2.0
        models = np.where(upper, table.max(axis=2), table.min(axis=2))
    return float((np.ptp(models, axis=1) / wide).max(initial=0.0))
