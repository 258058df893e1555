"""One exchange of a whole network under lies: the honest models before, every lie, the honest models after.

C choices are evaluated at once. A liar may tell each of its neighbours something different, so lies are one vector per
(receiver, lying neighbour).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from byzmesh.networks import Network
from byzmesh.rules.base import Rule
from byzmesh.theory.search.game import Game, respond
from byzmesh.types import Floats, Integers


@dataclass(frozen=True)
class Exchange:
    """A rule on a network with its liars, each honest worker with its bound f (N,)."""

    network: Network
    rule: Rule
    f: Integers

    @cached_property
    def games(self) -> list[Game]:
        """The inbox of every honest worker."""
        layout = self.network.layout
        games = []
        for row, worker in enumerate(layout.receiver.tolist()):
            sender = layout.sender[row, : layout.degree[row] + 1]
            lying = np.isin(sender, self.network.byzantine)
            weight = layout.weight[row, : len(sender)]
            games.append(
                Game(worker=worker, sender=sender, weight=weight, target=weight, lying=lying, f=int(self.f[row]))
            )
        return games

    @cached_property
    def rows(self) -> list[Integers]:
        """The row of the honest models in each slot of each inbox; -1 for lying slots."""
        row = np.full(self.network.n, -1, np.int64)
        row[self.network.honest] = np.arange(len(self.network.honest))
        return [row[game.sender] for game in self.games]

    @cached_property
    def lies(self) -> int:
        """How many vectors the liars choose in one exchange."""
        return sum(int(game.lying.sum()) for game in self.games)

    def apply(self, models: Floats, lies: Floats) -> Floats:
        """(C, N, D) honest models after an exchange: models (C, N, D), lies (C, lies, D) by receiver, then sender."""
        after = np.empty_like(models)
        used = 0
        for receiver, (game, rows) in enumerate(zip(self.games, self.rows)):
            points = models[:, np.maximum(rows, 0)]
            count = int(game.lying.sum())
            points[:, game.lying] = lies[:, used : used + count]
            used += count
            after[:, receiver] = respond(self.rule, game, points)
        return after

    def answers(self, models: Floats, lies: Floats) -> Floats:
        """(C, N, G) what each worker would answer if all its lying neighbours told it the same.

        models (C, N) on a line, lies (C, N, G)
        """
        choices, _, kinds = lies.shape
        table = np.empty(lies.shape)
        for receiver, (game, rows) in enumerate(zip(self.games, self.rows)):
            points = models[:, np.maximum(rows, 0)]
            if not game.lying.any():
                table[:, receiver] = respond(self.rule, game, points[:, :, None])
                continue
            told = np.repeat(points, kinds, axis=0)
            told[:, game.lying] = lies[:, receiver].reshape(-1, 1)
            table[:, receiver] = respond(self.rule, game, told[:, :, None]).reshape(choices, kinds)
        return table

    @cached_property
    def receivers(self) -> Integers:
        """(lies,) the row of the receiver of each lie."""
        return np.repeat(np.arange(len(self.games)), [int(game.lying.sum()) for game in self.games])


def disagreement(models: Floats) -> Floats:
    """(C,) H of models (C, N, D).

    >>> disagreement(np.array([[[0.0], [2.0]]]))
    array([1.])
    """
    centred = models - models.mean(axis=1, keepdims=True)
    value: Floats = (centred**2).sum(axis=2).mean(axis=1)
    return value


def camps(network: Network) -> Floats:
    """(C, N) honest workers in two camps, 0 and 1, of every size: cut along the Fiedler vector and along their ids."""
    from byzmesh.networks import fiedler_vector

    workers = len(network.honest)
    if workers < 2:
        return np.zeros((0, workers))
    orders = [np.arange(workers), np.argsort(fiedler_vector(network.sparse_mixing(network.honest)), kind="stable")]
    cuts = []
    for order in orders:
        for size in range(1, workers):
            camp = np.zeros(workers)
            camp[order[size:]] = 1.0
            cuts.append(camp)
    return np.unique(np.stack(cuts), axis=0)


def stuck_camps(exchange: Exchange) -> Floats | None:
    """(N,) two camps that an exchange leaves unchanged while liars send every worker its own model; or None.

    >>> from byzmesh.networks import network
    >>> from byzmesh.rules.aggregate import rule
    >>> net = network("paper/two-castle-3")
    >>> stuck_camps(Exchange(net, rule("coomed"), net.bounds(0))) is not None
    True
    >>> stuck_camps(Exchange(net, rule("ios"), net.bounds(0))) is None
    True
    """
    models = camps(exchange.network)[:, :, None]
    if len(models) == 0:
        return None
    after = exchange.apply(models, models[:, exchange.receivers])
    weight = exchange.network.link_weight
    lightest = weight[weight > 0.0].min(initial=1.0) if exchange.rule.uses_weights else 1.0  # so little is a move too
    stays = np.abs(after - models).max(axis=(1, 2)) <= 1e-12 * lightest
    return None if not stays.any() else np.asarray(models[stays][0, :, 0])
