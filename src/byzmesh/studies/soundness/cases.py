"""Random cases to certify: a graph with weights, a rule, liars (given, or anywhere) and a limit on rho."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.networks import Network
from byzmesh.rules.aggregate import rule as make_rule
from byzmesh.rules.base import Rule
from byzmesh.rules.base import rules as registry
from byzmesh.theory.certificate import Certificate
from byzmesh.theory.certify import certify
from byzmesh.theory.search.game import playable
from byzmesh.types import Booleans


def declaring() -> tuple[str, ...]:
    """Names of the rules that declare something about their contraction and answer to the received models alone.

    >>> {"IOS", "FABA", "WeiMean"} <= set(declaring()), "Krum" in declaring()
    (True, False)
    """
    registry.load()
    made = [(name, make_rule(name)) for name in registry.names()]
    return tuple(name for name, rule in made if rule.contraction is not None and playable(rule))


@dataclass(frozen=True, kw_only=True)
class Case:
    """A network, rule and question to certify, drawn from a seed."""

    seed: int
    network: Network
    rule: Rule
    f: Any
    total: int | None
    limit: float

    def __str__(self) -> str:
        return (
            f"case {self.seed}: {self.rule.name} {dict(self.rule.options)} on {self.network}, f={self.f}, "
            f"total={self.total}, rho={self.limit}"
        )

    def certificate(self) -> Certificate:
        """The certificate, without a search: only its proofs matter."""
        return certify(self.network, self.rule, self.f, total=self.total, rho=self.limit, guarantee="fair", search=0)


def draw_case(seed: int, rules: tuple[str, ...] | None = None, largest: int = 14) -> Case:
    """The case of a seed, with one of these rules (default: all that declare a contraction).

    >>> draw_case(3).network.n == draw_case(3).network.n
    True
    """
    rules = declaring() if rules is None else rules
    draw = np.random.default_rng([15, seed])
    links = _graph(draw, int(draw.integers(2, largest + 1, 2).max()))
    network = Network.from_adjacency(links, weights=_weights(draw, links), name="fuzzed")
    name = rules[int(draw.integers(len(rules)))]
    rule = make_rule(name, c=float(draw.uniform(1.0, 5.0))) if name in ("Reprieve", "Tether") else make_rule(name)
    limit = float(draw.choice([0.3, 1.0, 1.0, 3.0, 20.0]))
    way = draw.random()
    f: Any
    if way < 0.4:
        count = int(draw.integers(1, max(2, len(links) // 3 + 1)))
        placed = network.with_byzantine(draw.choice(len(links), count, replace=False).tolist())
        exact = placed.lying_neighbours
        f = "exact" if draw.random() < 0.5 else (exact + draw.integers(-1, 2, len(exact))).clip(0)
        return Case(seed=seed, network=placed, rule=rule, f=f, total=None, limit=limit)
    most = int(draw.choice([0, 1, 1, 1, 2, 2, 3]))
    f = most if draw.random() < 0.7 else draw.integers(0, most + 1, len(links))
    total = int(draw.integers(0, min(4, len(links)))) if way > 0.7 else None
    return Case(seed=seed, network=network, rule=rule, f=f, total=total, limit=limit)


def _graph(draw: np.random.Generator, n: int) -> Booleans:
    links = np.zeros((n, n), bool)
    way = draw.integers(8)
    if way in (0, 6):
        links[:] = True
        if way == 6:
            links &= draw.random((n, n)) < 0.95
            links &= links.T
    elif way == 7:  # two sides, everybody linked to the other side
        links[: n // 2, n // 2 : 2 * (n // 2)] = True
        links[n - 1, 0] |= n % 2 == 1
    elif way == 1:  # a ring with chords
        for reach in range(1, int(draw.integers(2, 4))):
            links[np.arange(n), (np.arange(n) + reach) % n] = True
    elif way == 2:  # two blocks with some links across
        half = n // 2
        links[:half, :half] = links[half:, half:] = True
        links |= draw.random((n, n)) < draw.uniform(0.05, 0.5)
    elif way == 3:  # a tree with chords
        for node in range(1, n):
            links[node, draw.integers(node)] = True
        links |= draw.random((n, n)) < draw.uniform(0.0, 0.3)
    else:
        links |= draw.random((n, n)) < draw.uniform(0.3, 1.0)
    links |= links.T
    np.fill_diagonal(links, False)
    return links


def _weights(draw: np.random.Generator, links: Booleans) -> Any:
    way = int(draw.integers(9))
    if way == 8:  # columns sum to 1 too, but w'_nm is not w'_mn
        raw = np.where(links | np.eye(len(links), dtype=bool), draw.uniform(0.1, 1.0, links.shape), 0.0)
        for _ in range(200):
            raw /= raw.sum(axis=0)
            raw /= raw.sum(axis=1, keepdims=True)
        return raw
    if way == 7:  # as little as possible on its own model
        raw = links / max(1.0, float(links.sum(axis=1).max()))
        np.fill_diagonal(raw, np.maximum(0.0, 1.0 - raw.sum(axis=1)))
        return raw
    if way < 5:
        return ("mh", "mh", "equal", "lazy", "max-degree")[way]
    raw = np.where(links, draw.random(links.shape) ** draw.uniform(0.2, 3.0), 0.0)
    raw[draw.random(links.shape) < 0.05] = 0.0
    if way == 5:  # symmetric
        raw = np.maximum(raw, raw.T)
        raw /= max(1e-12, float(raw.sum(axis=1).max())) * draw.uniform(1.001, 1.5)
    else:
        raw /= np.maximum(1e-12, raw.sum(axis=1, keepdims=True)) * draw.uniform(1.001, 2.0)
    np.fill_diagonal(raw, 0.0)
    np.fill_diagonal(raw, 1.0 - raw.sum(axis=1))
    return raw
