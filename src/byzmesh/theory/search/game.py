"""One worker against its lying neighbours: the game whose value is the worker's contraction constant.

The adversary chooses every vector of worker n's inbox, the honest ones and the lies, to make

    ratio = ||A_n - xbar_n|| / max_{m honest slot} ||x_m - xbar_n||,    xbar_n = sum_m w_nm x_m

large. C choices are evaluated at once: each is one more receiver of the same pool.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.errors import ConfigError
from byzmesh.networks import Network
from byzmesh.networks.spectrum import as_dense
from byzmesh.round import Round
from byzmesh.rules.base import Rule
from byzmesh.rules.inbox import make_inbox
from byzmesh.theory.question import Question
from byzmesh.types import Booleans, Floats, Integers

NOISE = 1e-4
"""A smaller fraction of the largest vector is not a move: GeoMed's iteration stops that close to its limit."""
FINE = 1e-3
"""Honest spreads below this fraction of the largest vector are not tried, for the same reason."""


@dataclass(frozen=True, kw_only=True)
class Game:
    """The inbox of one worker; slots as in the network's layout, own first.

    sender   (K,) ids
    weight   (K,) mixing weights w'
    target   (K,) virtual weights w, 0 where the sender lies
    lying    (K,) whether the sender lies
    f        the worker's bound on the lies
    """

    worker: int
    sender: Integers
    weight: Floats
    target: Floats
    lying: Booleans
    f: int


def games_of(network: Network, mixing: Any, f: Integers) -> list[Game]:
    """The games of all honest workers, one for each distinct neighbourhood; mixing (N, N) dense or SciPy's.

    Workers whose inboxes differ only in the order of the senders play the same game; the first of them represents all.

    >>> from byzmesh.networks import network
    >>> from byzmesh.theory.mixing import to_own
    >>> net = network("complete", n=9, byzantine=[7, 8])
    >>> len(games_of(net, to_own(net), net.bounds("exact")))
    1
    """
    layout = network.layout
    row = np.full(network.n, -1, np.int64)
    row[network.honest] = np.arange(len(network.honest))
    games = []
    for number, worker in enumerate(layout.receiver.tolist()):
        sender = layout.sender[number, : layout.degree[number] + 1]
        lying: Booleans = row[sender] < 0
        target = np.where(lying, 0.0, as_dense(mixing[[number]])[0, np.maximum(row[sender], 0)])
        weight = layout.weight[number, : len(sender)]
        games.append(Game(worker=worker, sender=sender, weight=weight, target=target, lying=lying, f=int(f[number])))
    return distinct(games)


def games_anywhere(question: Question, form: str) -> list[Game]:
    """The distinct games of all nodes, each against its heaviest neighbours that may lie together.

    form  of the virtual mixing matrix, see `theory.mixing`
    """
    layout = question.network.layout
    games = []
    for worker in range(question.network.n):
        sender = layout.sender[worker, : layout.degree[worker] + 1]
        weight = layout.weight[worker, : len(sender)]
        lying: Booleans = np.isin(sender, question.worst_liars(worker))
        target = {
            "to-own": np.where(lying, 0.0, weight),
            "equal": ~lying / (~lying).sum(),
            "own": np.zeros(len(sender)),
        }[form]
        target[0] += 1.0 - target.sum()
        f = int(question.f[worker])
        games.append(Game(worker=worker, sender=sender, weight=weight, target=target, lying=lying, f=f))
    return distinct(games)


def distinct(games: list[Game]) -> list[Game]:
    """The distinct games: the first of those whose inboxes differ only in the order of the senders."""
    kinds: dict[tuple[object, ...], Game] = {}
    for game in games:
        weight, target = game.weight.round(12).tolist(), game.target.round(12).tolist()
        others = zip(weight[1:], target[1:], game.lying[1:].tolist())
        kinds.setdefault((game.f, weight[0], target[0], *sorted(others)), game)
    return list(kinds.values())


def playable(rule: Rule) -> bool:
    """Whether the rule's output depends only on the received models."""
    return not (rule.needs_previous or rule.needs_loss) and rule.sends == "half"


def check_playable(rule: Rule) -> None:
    """Raise `ConfigError` if the rule's output depends on more than the received models."""
    if not playable(rule):
        raise ConfigError(
            f"rule {rule.name} uses more than the received models, so its contraction cannot be searched; "
            f"leave out search"
        )


def respond(rule: Rule, game: Game, points: Floats) -> Floats:
    """(C, D) what the rule makes of C inboxes: points (C, K, D)."""
    count, slots, dimension = points.shape
    own = np.ascontiguousarray(points[:, 0])
    lies = np.ascontiguousarray(points[:, 1:]).reshape(-1, dimension)
    inbox = make_inbox(
        rule,
        own,
        weight=np.broadcast_to(game.weight, (count, slots)).copy(),
        f=np.full(count, game.f, np.int64),
        receiver=np.full(count, game.worker, np.int64),
        messages=lies if len(lies) else None,
        round=Round(total=1),
    )
    outcome, _ = rule.apply(inbox, rule.init(own))
    models: Floats = outcome.models
    return models


def average(game: Game, points: Floats) -> Floats:
    """(C, D) the virtual averages xbar_n."""
    mean: Floats = np.einsum("k,ckd->cd", game.target, points)
    return mean


def spread(game: Game, points: Floats, centre: Floats) -> Floats:
    """(C,) the largest distance of an honest point from the virtual average."""
    gap = points[:, ~game.lying] - centre[:, None]
    largest: Floats = np.sqrt((gap**2).sum(axis=2)).max(axis=1)
    return largest


def with_spread(game: Game, points: Floats, wanted: float) -> Floats:
    """The points, with the honest ones scaled about their virtual average to the wanted spread; lies are unchanged."""
    centre = average(game, points)
    now = spread(game, points, centre)
    factor = np.where(now > 0.0, wanted / np.where(now > 0.0, now, 1.0), 1.0)[:, None, None]
    scaled = centre[:, None] + factor * (points - centre[:, None])
    return np.where(game.lying[None, :, None], points, scaled)


def ratios(rule: Rule, game: Game, points: Floats) -> Floats:
    """(C,) deviation divided by spread; infinity where the honest agree exactly but the output still moves."""
    centre = average(game, points)
    wide = spread(game, points, centre)
    deviation = np.sqrt(((respond(rule, game, points) - centre) ** 2).sum(axis=1))
    size = np.abs(points - points[:, :1]).max(axis=(1, 2))
    agree = (points[:, ~game.lying] == points[:, :1]).all(axis=(1, 2))
    # All choices are one pool to the rule, whose rounding is that of the largest of them.
    moved = deviation > NOISE * size + 1e-12 * np.abs(points).max(initial=0.0)
    trusted = ~agree & (wide >= FINE * size)
    ratio = np.where(trusted, deviation / np.where(trusted, wide, 1.0), 0.0)
    result: Floats = np.where(agree & moved, np.inf, ratio)
    return result
