"""Scenes for tests, made by plain loops from an adjacency, a weight matrix and a list of liars."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from byzmesh.attacks import Scene, View
from byzmesh.round import Round


@dataclass(frozen=True)
class World:
    """A whole network as the oracles see it, by node number."""

    nodes: int
    adjacency: np.ndarray
    weights: np.ndarray
    metropolis: np.ndarray
    honest: list[int]
    byzantine: list[int]

    def honest_neighbours(self, n: int) -> list[int]:
        return [m for m in self.honest if self.adjacency[n, m]]

    def lying_neighbours(self, n: int) -> list[int]:
        return [b for b in self.byzantine if self.adjacency[n, b]]

    def pairs(self) -> list[tuple[int, int]]:
        return [(b, n) for n in self.honest for b in self.lying_neighbours(n)]


def metropolis_weights(adjacency: np.ndarray) -> np.ndarray:
    nodes = len(adjacency)
    degree = [int(sum(adjacency[n])) for n in range(nodes)]
    weights = np.zeros((nodes, nodes))
    for n in range(nodes):
        for m in range(nodes):
            if n != m and adjacency[n, m]:
                weights[n, m] = min(1 / (degree[n] + 1), 1 / (degree[m] + 1))
        weights[n, n] = 1 - sum(weights[n])
    return weights


def random_row_weights(adjacency: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Row-stochastic weights, all different, so that a forgotten weight shows."""
    weights = (adjacency | np.eye(len(adjacency), dtype=bool)) * generator.uniform(0.2, 1.0, adjacency.shape)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def make_world(adjacency: np.ndarray, byzantine: list[int], weights: np.ndarray | None = None) -> World:
    nodes = len(adjacency)
    metropolis = metropolis_weights(adjacency)
    honest = [n for n in range(nodes) if n not in byzantine]
    return World(nodes, adjacency, metropolis if weights is None else weights, metropolis, honest, sorted(byzantine))


def random_world(seed: int, nodes: int = 9, liars: int = 3, probability: float = 0.5) -> World:
    generator = np.random.default_rng(seed)
    adjacency = np.zeros((nodes, nodes), bool)
    for n in range(nodes):
        for m in range(n):
            adjacency[n, m] = adjacency[m, n] = generator.random() < probability
    byzantine = sorted(int(b) for b in generator.choice(nodes, liars, replace=False))
    return make_world(adjacency, byzantine, random_row_weights(adjacency, generator))


def two_castle(k: int = 6, byzantine: tuple[int, ...] = (7, 9)) -> World:
    adjacency = np.zeros((2 * k, 2 * k), bool)
    for i in range(2 * k):
        for j in range(2 * k):
            adjacency[i, j] = i != j and ((i < k) == (j < k) or abs(i - j) != k)
    return make_world(adjacency, list(byzantine))


def star(leaves: int) -> World:
    """A liar in the middle: victims without honest neighbours."""
    adjacency = np.zeros((leaves + 1, leaves + 1), bool)
    adjacency[0, 1:] = adjacency[1:, 0] = True
    return make_world(adjacency, [0])


def scene_of(world: World) -> Scene:
    row = {n: position for position, n in enumerate(world.honest)}
    victims = [n for n in world.honest if world.lying_neighbours(n)]
    widest = max((len(world.honest_neighbours(n)) for n in victims), default=0)
    neighbour = np.full((len(victims), widest), -1, np.int64)
    weight, metropolis = np.zeros((len(victims), widest)), np.zeros((len(victims), widest))
    for v, n in enumerate(victims):
        for j, m in enumerate(world.honest_neighbours(n)):
            neighbour[v, j] = row[m]
            weight[v, j] = world.weights[n, m]
            metropolis[v, j] = world.metropolis[n, m]

    def lying(weights: np.ndarray) -> np.ndarray:
        return np.array([sum(weights[n, b] for b in world.lying_neighbours(n)) for n in victims], float)

    pairs = world.pairs()
    return Scene(
        honest=np.array(world.honest, np.int64),
        byzantine=np.array(world.byzantine, np.int64),
        liar=np.array([b for b, _ in pairs], np.int64),
        victim=np.array([n for _, n in pairs], np.int64),
        place=np.array([victims.index(n) for _, n in pairs], np.int64),
        victims=np.array([row[n] for n in victims], np.int64),
        neighbour=neighbour,
        weight=weight,
        own_weight=np.array([world.weights[n, n] for n in victims], float),
        lie_weight=lying(world.weights),
        metropolis_weight=metropolis,
        metropolis_own=np.array([world.metropolis[n, n] for n in victims], float),
        metropolis_lie=lying(world.metropolis),
        fiedler=lambda: fiedler_of(world),
    )


def fiedler_of(world: World) -> np.ndarray:
    """The unit eigenvector of the second smallest eigenvalue of the honest workers' Laplacian."""
    block = world.weights[np.ix_(world.honest, world.honest)]
    block = block + block.T
    np.fill_diagonal(block, 0.0)
    vectors = np.linalg.eigh(np.diag(block.sum(axis=1)) - block)[1]
    return vectors[:, min(1, len(block) - 1)]


def mean_of_inbox(world: World, models: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """`View.respond` of workers that take the weighted mean of everything, for messages per pair or per victim."""
    pairs = world.pairs()
    victims = [n for n in world.honest if world.lying_neighbours(n)]

    def respond(messages: np.ndarray) -> np.ndarray:
        out = np.empty((len(world.honest), models.shape[1]))
        for row, n in enumerate(world.honest):
            out[row] = world.weights[n, n] * models[row].astype(np.float64)
            for m in world.honest_neighbours(n):
                out[row] += world.weights[n, m] * models[world.honest.index(m)]
            for b in world.lying_neighbours(n):
                line = victims.index(n) if len(messages) == len(victims) else pairs.index((b, n))
                out[row] += world.weights[n, b] * messages[line]
        return out.astype(models.dtype)

    return respond


def frozen_models(world: World, dimension: int, seed: int = 0, dtype: type = np.float64) -> np.ndarray:
    """(N, D) read-only honest models around a common point."""
    generator = np.random.default_rng([seed, 77])
    models: np.ndarray = (3.0 + generator.normal(size=(len(world.honest), dimension))).astype(dtype)
    models.flags.writeable = False
    return models


def view_of(world: World, models: np.ndarray, round: int = 0, seed: int = 0) -> View:
    now = Round(number=round, seed=seed)
    wide = models.shape[1]
    scene = replace(
        scene_of(world),
        wrong_model=lambda rounds: np.full(wide, -2.0),
        gradient=lambda model: model - np.arange(wide),
    )
    return View(models=models, scene=scene, round=now, respond=mean_of_inbox(world, models))
