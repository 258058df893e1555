"""Table I by computation: the contraction constant of each rule on complete graphs, and whether it is RCA and RDSA.

rho is searched on complete graphs of n nodes for several numbers B of liars, mu = B/n, and compared with the published
order. The columns RCA and RDSA are not copied but decided, with reasons:

    RCA    refuted if even without liars there are inputs on which no W does well enough (the pair (rho, W) is not
           unique: Remark 1); proved if a bound with constants is below rho* for one liar on a large enough complete
           graph (whose size is given); otherwise unknown
    RDSA   W of the rule on an incomplete graph (the octopus): is it doubly stochastic?

CC and SCC have a fixed radius and therefore no contraction constant: even where all honest models agree, a liar moves a
worker. Their numbers here are for a radius of twice the honest spread, as their published order assumes. With it no
honest message is clipped, and lies of weight b move SCC by at most 2 b and CC by at most 3 b times the spread.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from byzmesh.errors import ConfigError
from byzmesh.networks import network as make_network
from byzmesh.rules.aggregate import rule as make_rule
from byzmesh.rules.base import Rule
from byzmesh.rules.ios import theorem_3
from byzmesh.theory.contraction import first_size, proved_contraction
from byzmesh.theory.mixing import chi2, doubly_stochastic, mixing_rate, rho_star, virtual_mixing
from byzmesh.theory.search.climb import search_contraction
from byzmesh.theory.search.every_mixing import best_row
from byzmesh.theory.search.game import games_of
from byzmesh.theory.verdict import Verdict
from byzmesh.theory.verdicts import ROUNDING


@dataclass(frozen=True)
class Published:
    """A row of Table I: the order as text and as a function of (mu, N), and its marks for RCA and RDSA.

    spread_factor  k in rho <= k mu for a clipping rule with a radius of twice the honest spread; None for other rules
    """

    order: str
    value: Callable[[float, int], float]
    _: KW_ONLY
    rca: bool
    rdsa: bool
    spread_factor: float | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The rule's options: a radius of 2 for an honest spread of 1."""
        return {} if self.spread_factor is None else {"tau": 2.0}


PUBLISHED: dict[str, Published] = {
    "CooMed": Published("O(1 + mu)", lambda mu, n: 1.0 + mu, rca=False, rdsa=False),
    "GeoMed": Published("O((1 - mu)/(1 - 2 mu))", lambda mu, n: (1.0 - mu) / (1.0 - 2.0 * mu), rca=False, rdsa=False),
    "Krum": Published("O(N + B - q)", lambda mu, n: float(n), rca=False, rdsa=False),
    "CC": Published("O(mu)", lambda mu, n: mu, rca=True, rdsa=False, spread_factor=3.0),
    "FABA": Published("O(mu/(1 - 3 mu))", lambda mu, n: mu / (1.0 - 3.0 * mu), rca=True, rdsa=False),
    "TriMean": Published(
        "O(mu (1 - mu)/(1 - 2 mu)^2)", lambda mu, n: mu * (1.0 - mu) / (1.0 - 2.0 * mu) ** 2, rca=True, rdsa=False
    ),
    "SCC": Published("O(mu)", lambda mu, n: mu, rca=True, rdsa=True, spread_factor=2.0),
    "IOS": Published("O(mu/(1 - 3 mu))", lambda mu, n: mu / (1.0 - 3.0 * mu), rca=True, rdsa=True),
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """A rule's row: searched rho and the published order's value for each fraction of liars, and the verdicts."""

    rule: str
    published: Published
    share: tuple[float, ...]
    rho: tuple[float, ...]
    order: tuple[float, ...]
    rho_star: tuple[float, ...]
    rca: Verdict
    rdsa: Verdict


def table_1(
    nodes: int = 16, liars: Sequence[int] = (0, 1, 2, 3, 4), *, budget: int = 20_000, seed: int = 0, dimension: int = 2
) -> list[Row]:
    """All rows of Table I; `budget` inputs are tried per rule and number of liars.

    >>> row = table_1(10, [0, 1], budget=500)[-1]
    >>> row.rule, row.rca.status, row.rdsa.status, row.rho[0] < 1e-9 < row.rho[1]
    ('IOS', 'proved', 'proved', True)
    """
    if not liars or liars[0] != 0 or 3 * max(liars) >= nodes:
        raise ConfigError(f"liars must begin with 0 and stay below nodes/3 = {nodes / 3:.3g}, got {list(liars)}")
    return [_row(name, nodes, liars, budget, seed, dimension) for name in PUBLISHED]


def _row(name: str, nodes: int, liars: Sequence[int], budget: int, seed: int, dimension: int) -> Row:
    published = PUBLISHED[name]
    rule = make_rule(name, **published.options)
    rho, star = [], []
    for count in liars:
        net = make_network("complete", n=nodes, byzantine=range(count))
        clips = published.spread_factor is not None
        proof = None if clips else proved_contraction(net, rule, net.bounds(count))
        spread = 1.0 if clips else None
        searched = search_contraction(
            net, rule, count, budget=budget, seed=seed, dimension=dimension, spread=spread, proof=proof
        )
        rho.append(searched.rho)
        star.append(rho_star(mixing_rate(virtual_mixing(net, rule).matrix), nodes - count))
    share = tuple(count / nodes for count in liars)
    return Row(
        rule=name,
        published=published,
        share=share,
        rho=tuple(rho),
        order=tuple(published.value(mu, nodes - count) for mu, count in zip(share, liars)),
        rho_star=tuple(star),
        rca=decide_rca(rule, published, nodes, seed),
        rdsa=_rdsa(rule, published),
    )


def decide_rca(rule: Rule, published: Published, nodes: int, seed: int = 0) -> Verdict:
    """Whether the rule is RCA: refuted on the complete graph of `nodes` without a liar, or proved on a large one."""
    net = make_network("complete", n=nodes)
    game = games_of(net, virtual_mixing(net, rule).matrix, net.bounds(0))[0]
    least, most = best_row(rule, game, seed), rho_star(1.0, nodes)
    if published.spread_factor is None and least > most * (1.0 + ROUNDING):
        return Verdict("refuted", f"even without liars rho >= {least:.3g} whatever W, and rho* <= {most:.3g}")
    to_own = rule.virtual_mixing == "to-own"
    if published.spread_factor is not None:
        factor = published.spread_factor
        size = first_size(lambda h: factor * h, to_own)
        return Verdict(
            "refuted",
            "with a fixed radius a liar moves workers that agree; a radius of twice the honest spread would give "
            f"rho <= {factor:.0f} mu: RCA for one liar among {size:,} or more",
        )
    if rule.contraction is not None and rule.contraction.beside:
        size = first_size(lambda h: float(theorem_3(np.array([h]))[0]), to_own)
        return Verdict("proved", f"for small shares: Theorem 3, one liar among {size:,} or more")
    return Verdict("unknown", "rho falls with mu, but only its order is known")


def _rdsa(rule: Rule, published: Published) -> Verdict:
    matrix = virtual_mixing(make_network("paper/octopus"), rule).matrix
    if published.spread_factor is not None:
        other = "is" if doubly_stochastic(matrix) else "is not"
        return Verdict(
            "refuted",
            "with a fixed radius there is no contraction constant, see RCA; with a radius of twice the honest spread "
            f"there is, and W {other} doubly stochastic",
        )
    if doubly_stochastic(matrix):
        return Verdict("proved", "the liars' weight goes to own, so a symmetric W' leaves W symmetric")
    return Verdict("refuted", f"equal weights on the octopus graph: chi^2 = {chi2(matrix):.3f}")


def to_markdown(rows: Sequence[Row]) -> str:
    """The table as Markdown: searched rho per fraction of liars, the published order and the verdicts."""
    share = rows[0].share
    head = ["rule", "published rho", *(f"mu = {mu:.3f}" for mu in share), "RCA (published)", "RDSA (published)", "why"]
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    for row in rows:
        values = ["unbounded" if math.isinf(value) else f"{value:.3f}" for value in row.rho]
        ticks = [f"{row.rca.status} ({_tick(row.published.rca)})", f"{row.rdsa.status} ({_tick(row.published.rdsa)})"]
        why = f"RCA: {row.rca.reason}. RDSA: {row.rdsa.reason}."
        lines.append("| " + " | ".join([row.rule, row.published.order, *values, *ticks, why]) + " |")
    return "\n".join(lines)


def _tick(value: bool) -> str:
    return "yes" if value else "no"
