"""Measured contraction: a lower bound on rho for any rule, from inputs on which it does badly.

For each distinct neighbourhood (`games`), structured and random starts are evaluated at once; the best are kept and
improved by gradient-free ascent. In every round each tries moves of single points, of all lies together and of
everything, takes the best one if it helps and halves its step if none does; if its step has become small it restarts
elsewhere. The result is an input, so anybody can check the bound: `Witness.verify`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from byzmesh import rng
from byzmesh.checks import whole
from byzmesh.errors import ConfigError
from byzmesh.files import replacing
from byzmesh.networks import Network
from byzmesh.rules.aggregate import rule as make_rule
from byzmesh.rules.base import Rule
from byzmesh.theory.contraction import ContradictedProof, Proof
from byzmesh.theory.mixing import virtual_mixing
from byzmesh.theory.search.game import Game, average, check_playable, games_of, playable, ratios, spread, with_spread
from byzmesh.theory.search.starts import AGREEING, random_starts, structured_starts
from byzmesh.types import Floats

MEMBERS = 8
MOVES = 24
SMALLEST_STEP = 1e-4
SMALL_NETWORK = 64
ROUNDING = 1e-6
"""The error of a ratio by rounding: a rule knows squared distances to 1e-16 of the largest, distances to 1e-8."""
DEFAULT_BUDGET = 10_000


@dataclass(frozen=True, kw_only=True)
class Witness:
    """An input on which a rule deviates: worker `game.worker` receives `points` (K, D), own first."""

    rule: str
    options: dict[str, Any]
    game: Game
    points: Floats
    ratio: float
    network: str = ""

    def verify(self, rule: Rule | None = None) -> float:
        """Recompute the ratio; give the rule if it is not registered."""
        chosen = make_rule(self.rule, **self.options) if rule is None else rule
        return float(ratios(chosen, self.game, self.points[None])[0])

    def save(self, path: str | Path) -> Path:
        """Write to an .npz file that `load` and plain NumPy read."""
        target = Path(path)
        game = self.game
        about = {"rule": self.rule, "options": self.options, "network": self.network, "worker": game.worker}
        with replacing(target) as file:
            np.savez(
                file,
                about=np.array(json.dumps(about)),
                sender=game.sender,
                weight=game.weight,
                target=game.target,
                lying=game.lying,
                f=game.f,
                points=self.points,
                ratio=self.ratio,
            )
        return target

    @classmethod
    def load(cls, path: str | Path) -> Witness:
        """Read what `save` wrote."""
        try:
            with np.load(Path(path), allow_pickle=False) as saved:
                about = json.loads(str(saved["about"]))
                game = Game(
                    worker=about["worker"],
                    **{name: saved[name] for name in ("sender", "weight", "target", "lying")},
                    f=int(saved["f"]),
                )
                points, ratio = saved["points"], float(saved["ratio"])
        except (OSError, KeyError, ValueError) as error:
            raise ConfigError(f"witness {path} cannot be read: {error}") from None
        return cls(
            rule=about["rule"],
            options=about["options"],
            game=game,
            points=points,
            ratio=ratio,
            network=about["network"],
        )


@dataclass(frozen=True, kw_only=True)
class Search:
    """The result of a search: `rho` is a lower bound on the contraction constant, attained by `witness`.

    by_worker    the largest ratio of each worker searched (one per distinct neighbourhood)
    evaluations  how many inputs were tried
    """

    rho: float
    witness: Witness | None
    by_worker: dict[int, float]
    evaluations: int
    seed: int


def search_contraction(
    network: Network,
    rule: Rule | str,
    f: Any = "exact",
    *,
    budget: int = DEFAULT_BUDGET,
    seed: int = 0,
    dimension: int = 2,
    spread: float | None = None,
    mixing: Any = None,
    games: list[Game] | None = None,
    proof: Proof | None = None,
) -> Search:
    """The worst ratio found on this network.

    budget     inputs to try per distinct neighbourhood
    dimension  of the models searched, 1 to 3
    spread     None, or the only honest spread allowed, for rules with their own scale (clipping radii)
    mixing     (N, N) virtual mixing matrix to compare with (default: the rule's)
    games      who plays against whom (default: every worker against the network's liars)
    proof      a proved bound to check the result against; `ContradictedProof` if it fails

    >>> from byzmesh.networks import network
    >>> net = network("complete", n=9, byzantine=[8])
    >>> search_contraction(net, "weimean", budget=200).rho, search_contraction(net, "nocomm", budget=200).rho
    (inf, 0.0)
    """
    chosen = make_rule(rule)
    check_playable(chosen)
    whole("dimension", dimension, 1, 3)
    whole("budget", budget, 1)
    if games is None:
        matrix = virtual_mixing(network, chosen).matrix if mixing is None else mixing
        games = games_of(network, matrix, network.bounds(f))
    row = {worker: number for number, worker in enumerate(network.honest.tolist())}
    by_worker: dict[int, float] = {}
    best: Witness | None = None
    used = 0
    for game in games:
        if game.f > chosen.largest_f(len(game.sender) - 1):
            continue
        draw = rng.generator(seed, rng.RULE, game.worker)
        points, ratio, spent = climb(chosen, game, budget, draw, dimension, spread)
        used += spent
        witness = Witness(
            rule=chosen.name,
            options=dict(chosen.options),
            game=game,
            points=points,
            ratio=ratio,
            network=network.name,
        )
        by_worker[game.worker] = ratio
        if proof is not None:
            bound = float(proof.bound[row[game.worker]])
            hold_against(witness, bound, proof.reason)
            by_worker[game.worker] = float(np.fmin(ratio, bound))  # what is above a bound that held is rounding
        if best is None or ratio > best.ratio:
            best = witness
    return Search(
        rho=max(by_worker.values(), default=0.0), witness=best, by_worker=by_worker, evaluations=used, seed=seed
    )


def default_budget(network: Network, rule: Rule) -> int:
    """Evaluations that a certificate spends by default.

    Zero on networks of more than 64 workers, and for rules that use more than the received models.
    """
    return DEFAULT_BUDGET if network.n <= SMALL_NETWORK and playable(rule) else 0


def hold_against(witness: Witness, bound: float, reason: str) -> None:
    """Raise `ContradictedProof` if the witness exceeds a proved bound (NaN: nothing is proved)."""
    if witness.ratio > bound + ROUNDING * (1.0 + bound):
        raise ContradictedProof(
            f"worker {witness.game.worker} with rule {witness.rule}: an input with ratio {witness.ratio:.6g} "
            f"contradicts the proved bound {bound:.6g} ({reason}); please report it with the witness"
        )


def climb(
    rule: Rule, game: Game, budget: int, draw: np.random.Generator, dimension: int, fixed: float | None
) -> tuple[Floats, float, int]:
    """(points (K, D), ratio, evaluations) of the worst input found for one worker."""

    def evaluate(points: Floats) -> tuple[Floats, Floats]:
        if fixed is None:
            return points, ratios(rule, game, points)
        scaled = with_spread(game, points, fixed)
        wide = spread(game, scaled, average(game, scaled))
        return scaled, np.where(np.abs(wide - fixed) < 1e-6 * fixed, ratios(rule, game, scaled), 0.0)

    known = structured_starts(game, dimension)
    if len(known) > budget // 2:  # a small budget samples them, but always includes starts where all agree
        rest = AGREEING + draw.permutation(len(known) - AGREEING)
        known = known[np.concatenate([np.arange(AGREEING), rest])[: max(1, budget // 2)]]
    fresh = random_starts(game, dimension, min(64, budget - len(known)), draw)
    pool, value = evaluate(np.concatenate([known, fresh]))
    used = len(pool)
    order = np.argsort(-value, kind="stable")[:MEMBERS]
    member, height = pool[order].copy(), value[order].copy()
    step = np.full(len(member), 0.5)
    best, top = member[0].copy(), float(height[0])
    while used < budget and np.isfinite(top):
        trial = moves(game, member, step, draw)
        tried, value = evaluate(trial.reshape(-1, *member.shape[1:]))
        used += len(tried)
        table = value.reshape(len(member), MOVES)
        pick = table.argmax(axis=1)
        rows = np.arange(len(member))
        better = table[rows, pick] > height * (1.0 + 1e-9)
        member = np.where(better[:, None, None], tried.reshape(trial.shape)[rows, pick], member)
        height = np.where(better, table[rows, pick], height)
        step = np.where(better, np.minimum(1.0, 1.5 * step), 0.5 * step)
        if height.max() > top:
            best, top = member[height.argmax()].copy(), float(height.max())
        tired = np.flatnonzero(step < SMALLEST_STEP)
        if len(tired):
            member[tired], height[tired] = evaluate(random_starts(game, dimension, len(tired), draw))
            step[tired] = 0.5
            used += len(tired)
    return best, top, used


def moves(game: Game, member: Floats, step: Floats, draw: np.random.Generator) -> Floats:
    """(M, MOVES, K, D) neighbours of each member: one point moved, all lies moved together, or everything moved."""
    count, slots, dimension = member.shape
    shift = draw.normal(size=(count, MOVES, slots, dimension))
    chance = draw.random((count, MOVES, 1))
    alone = np.arange(slots) == draw.integers(slots, size=(count, MOVES, 1))
    lies = np.broadcast_to(game.lying, alone.shape)
    together = np.broadcast_to(shift[:, :, :1], shift.shape)
    shift = np.where(((chance > 0.5) & (chance <= 0.75))[..., None], together, shift)
    moved = np.where(chance <= 0.5, alone, np.where(chance <= 0.75, lies, True))
    wide = np.maximum(spread(game, member, average(game, member)), 1e-3)
    return member[:, None] + (step * wide)[:, None, None, None] * shift * moved[..., None]
