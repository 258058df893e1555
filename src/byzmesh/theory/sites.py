"""What one site can do at most, by the size of its data.

Site m lies alone, and every other worker n is told what m weighs for it, b_n = w'_nm (`b` of a config). Then

    weight_m = max_n w'_nm          the most that its message weighs at anybody
    pull_m   = sum_n pi_n w'_nm     what it moves the honest average by in one exchange, per unit of its distance, if
                                    nobody cut anything; pi the other sites' shares of their samples
    rho_m    = max_n rho_n(w'_nm)   by at most so many honest spreads it moves a worker, for rules whose proof needs no
                                    more than a bound on the weight of lies and cuts (`Contraction.within_b`), if
                                    they cut at all: a worker never cuts its only neighbour, and keeps its own model
                                    where the site's silence leaves it as few messages as it may cut

With Metropolis-Hastings weights by samples w'_nm <= (s_m / s_n) / (1 + d_m): a small site weighs little at a large one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from byzmesh.heaviest import most_within
from byzmesh.networks import Network
from byzmesh.rules.base import Rule
from byzmesh.rules.contraction import Neighbourhoods


@dataclass(frozen=True, kw_only=True)
class SiteReport:
    """One site as the only liar; share is its part of all samples, rho_bound None where nothing is proved."""

    site: int
    share: float
    weight: float
    pull: float
    rho_bound: float | None


def site_reports(network: Network, rule: Rule) -> tuple[SiteReport, ...]:
    """One report per site of a network with `samples`; none for a network without.

    >>> import byzmesh as bm
    >>> small, *_, large = site_reports(bm.network("complete", n=4, samples=[1, 49, 50, 50]), bm.rule("ios"))
    >>> round(small.weight, 4), round(large.weight, 4), round(small.rho_bound, 4), round(large.rho_bound, 4)
    (0.0051, 0.25, 0.0155, 1.6667)
    """
    if network.samples is None:
        return ()
    links, weight, samples = network.links, network.link_weight, network.samples
    declared = rule.contraction
    bound = np.full(len(weight), np.nan)
    if declared is not None and declared.of_h is not None and declared.within_b:
        degree = links.degree[links.receiver]
        rows = np.zeros((network.n, int(links.degree.max(initial=0))))
        rows[links.receiver, np.arange(len(weight)) - links.start[links.receiver]] = weight
        near = Neighbourhoods(
            neighbours=degree,
            lying=np.ones(len(weight), np.int64),
            f=most_within(rows[links.receiver], degree, weight),
            weight=rows[links.receiver],
            lying_weight=weight,
            room=weight,
        )
        cuts = np.array([rule.largest_f(count) > 0 < count - 1 for count in degree.tolist()], bool)
        bound = np.where(cuts, declared.bound(near), np.nan)
    made = []
    for site in range(network.n):
        heard = np.flatnonzero(links.sender == site)
        others = samples.sum() - samples[site]
        most = float(bound[heard].max(initial=0.0))  # NaN if one of them is
        made.append(
            SiteReport(
                site=site,
                share=float(samples[site] / samples.sum()),
                weight=float(weight[heard].max(initial=0.0)),
                pull=float((samples[links.receiver[heard]] * weight[heard]).sum() / others) if others else 0.0,
                rho_bound=None if math.isnan(most) else most,
            )
        )
    return tuple(made)


def in_a_sentence(network: Network, sites: tuple[SiteReport, ...]) -> list[str]:
    """The smallest and the largest site in words."""
    lines = []
    for word, choose in (("smallest", min), ("largest", max)):
        if sites:
            site = choose(sites, key=lambda one: one.share)
            end = "can do what is not bounded here: nothing is proved"
            if site.rho_bound is not None:
                end = f"moves no worker farther than {site.rho_bound:.3g} honest spreads"
            lines.append(
                f"The {word} site, {network.label(site.site)} with {100 * site.share:.2g}% of the samples, weighs at "
                f"most {site.weight:.3g} at a worker; lying alone, and known to weigh no more (b), it {end}."
            )
    return lines
