"""What certificates say about data of unequal size, and what a bound on the weight of lies is worth."""

from __future__ import annotations

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.errors import ConfigError
from byzmesh.heaviest import most_within
from byzmesh.rules.contraction import Neighbourhoods
from byzmesh.theory.mixing import chi2, virtual_mixing
from byzmesh.theory.sites import site_reports

SIZES = [0.6, 1.4, 2.0, 4.0, 6.0, 8.0, 12.0, 16.0, 20.0, 30.0]


def network(liars: list[int], name: str = "complete") -> bm.Network:
    return bm.network(name, n=10, samples=SIZES, byzantine=liars)


def rho_at(rule: str, h: float) -> float:
    """What the rule declares for lies of weight h."""
    declared = bm.rule(rule).contraction
    assert declared is not None and declared.of_h is not None
    return float(declared.of_h(np.array([h]))[0])


def declared_at(rule: str, weights: np.ndarray, lies: np.ndarray, b: float) -> float:
    """What the rule declares for a worker with these weights, own first, that is told b."""
    declared, each = bm.rule(rule).contraction, weights[None, 1:]
    assert declared is not None
    size, b_of = np.array([len(weights) - 1]), np.array([b])
    near = Neighbourhoods(
        neighbours=size,
        lying=np.array([len(lies)]),
        f=np.minimum(most_within(each, size, b_of), size - 1),
        weight=each,
        lying_weight=each[:, lies].sum(axis=1),
        room=b_of,
    )
    return float(declared.bound(near)[0])


def test_chi2_is_the_distance_of_what_counts_from_what_should() -> None:
    for liars in ([], [0], [9], [2, 7]):
        net = network(liars)
        own = virtual_mixing(net, bm.rule("ios")).matrix.toarray()
        assert chi2(own, net.target) == pytest.approx(0.0, abs=1e-15)
        even = virtual_mixing(net, bm.rule("faba")).matrix.toarray()
        by_loop = sum(
            (sum(net.target[n] * even[n, m] for n in range(len(even))) - net.target[m]) ** 2 / net.target[m]
            for m in range(len(even))
        )
        assert chi2(even, net.target) == pytest.approx(by_loop) and by_loop > 0.1
    plain = bm.network("star", n=5)
    matrix = virtual_mixing(plain, bm.rule("faba")).matrix
    assert chi2(matrix, plain.target) == pytest.approx(chi2(matrix))


def test_fair_means_that_every_sample_counts_the_same() -> None:
    told = bm.certify(network([0]), "ios", guarantee="fair", search=0)
    assert told.holds and "weighs by samples" in told.fair.reason and told.chi2 == pytest.approx(0.0, abs=1e-15)
    assert told.rdsa.status == "refuted", "the paper's definition is about workers"
    assert bm.certify(network([0]), "faba", guarantee="fair", search=0).fair.status == "refuted"
    anywhere = bm.certify(network([]), "ios", 1, guarantee="fair", search=0)
    assert anywhere.holds, "detailed balance holds whoever lies"
    turned = network([]).mixing.T / network([]).mixing.T.sum(axis=1, keepdims=True)
    other = bm.network("complete", n=10, weights=turned).with_samples(SIZES)
    assert not bm.certify(other, "ios", 1, guarantee="fair", search=0).holds
    text = str(told)
    assert "every honest sample counts the same" in text and "The smallest site, 0 with 0.6% of the samples" in text
    assert told.to_dict()["sites"][0]["share"] == pytest.approx(0.006)
    with pytest.raises(ConfigError, match="about the mean over workers"):
        bm.certify(network([0]), "ios", search=0, L=1.0, delta_in=1.0, delta_out=1.0)


def test_a_small_site_can_do_little_and_the_number_says_how_much() -> None:
    reports = site_reports(network([]), bm.rule("ios"))
    assert [100 * site.share for site in reports] == pytest.approx(SIZES)
    bounds = [site.rho_bound or 0.0 for site in reports]
    assert bounds == sorted(bounds), "the more data, the more a liar can do"
    assert all(site.pull <= site.share / (1 - site.share) + 1e-12 for site in reports)
    assert site_reports(network([]), bm.rule("coomed"))[0].rho_bound is None
    hub, *leaves = site_reports(bm.network("star", n=4, samples=[1.0, 5.0, 5.0, 5.0]), bm.rule("ios"))
    assert bm.aggregate("ios", [0.0], [[1e9]], [1.0 - hub.weight, hub.weight], b=hub.weight)[0] > 1e6
    assert hub.rho_bound is None and all(leaf.rho_bound is not None for leaf in leaves), "a leaf hears nobody else"
    assert site_reports(bm.network("ring", n=5), bm.rule("ios")) == ()


@pytest.mark.parametrize("rule", ["ios", "lazyios"])
def test_a_bound_on_the_weight_of_lies_is_never_contradicted(rule: str) -> None:
    """Searched lies of weight b, at a worker that is told b: near and far, alone and together, and silence."""
    draw, worst = np.random.default_rng(5), 0.0
    for _ in range(600):
        size = int(draw.integers(3, 7))
        weights = draw.dirichlet(np.full(size + 1, draw.choice([0.3, 3.0])))
        lies = draw.permutation(size)[: int(draw.integers(1, 3))]
        b = float(weights[1 + lies].sum())
        if not 0.0 < b < 0.45:
            continue
        own, received = draw.normal(size=2), draw.normal(size=(size, 2))
        honest = np.setdiff1d(np.arange(size), lies)
        average = weights[0] * own + b * own + (weights[1 + honest, None] * received[honest]).sum(axis=0)
        spread = max(np.linalg.norm(x - average) for x in [own, *received[honest]])
        far = spread * 10.0 ** draw.uniform(-1, 2, (len(lies), 1))
        received[lies] = average + far * draw.normal(size=(len(lies), 2))
        silent = draw.random() < 0.5
        if silent:  # its own model as far from the average as the honest ones allow
            received[honest] = own + draw.normal(size=2)
            average = own + weights[1 + honest].sum() * (received[honest[0]] - own)
            spread = max(np.linalg.norm(x - average) for x in [own, received[honest[0]]])
        heard = [None if silent and place in lies else message for place, message in enumerate(received)]
        found = bm.aggregate(rule, own, heard, weights, b=b)
        bound = declared_at(rule, weights, lies, b)
        ratio = np.linalg.norm(found - average) / spread / bound
        worst = max(worst, float(ratio))
        assert ratio <= 1.0 + 1e-9, (weights, lies, own, received)
    assert worst > 0.3, "the search comes near"
    told = bm.certify(network([0]), rule, {"weight": 0.06})
    assert told.proof.rho == pytest.approx(rho_at(rule, 0.06))
    assert bm.certify(network([0]), rule, {"weight": 0.04}).bounded.status != "proved", "the liar weighs 0.043"
