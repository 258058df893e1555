"""Rules declare what theory needs: one file gets a third party's rule its certificate, none borrows another's."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.errors import ConfigError
from byzmesh.rules.base import rules
from byzmesh.rules.contraction import cutting
from byzmesh.theory.certify import certify
from byzmesh.theory.contraction import ContradictedProof, proved_contraction
from byzmesh.theory.mixing import virtual_mixing

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"
FILES = re.findall(r"```python\n(# \S*closest\.py\n.*?)```", CONTRIBUTING.read_text(), re.DOTALL)


@pytest.fixture
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forgets what a test registers."""
    rules.load()
    monkeypatch.setattr(rules, "_entries", dict(rules._entries))
    monkeypatch.setattr(rules, "_names", dict(rules._names))


@pytest.fixture(params=range(len(FILES)), ids=["plain", "declared"])
def third_party(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_registry: None
) -> Iterator[bool]:
    """A file of CONTRIBUTING.md, imported; whether it declares a bound."""
    (tmp_path / "closest_of_a_third_party.py").write_text(FILES[request.param])
    monkeypatch.syspath_prepend(str(tmp_path))
    import_module("closest_of_a_third_party")
    yield "contraction=" in FILES[request.param]
    del sys.modules["closest_of_a_third_party"]


def test_contributing_shows_both_files() -> None:
    assert ["contraction=" in text for text in FILES] == [False, True]


def test_a_third_party_gets_its_certificate_by_declaring(third_party: bool) -> None:
    net = bm.network("paper/two-castle")
    np.testing.assert_allclose(bm.aggregate("closest", [0.0, 0.0], [[1.0, 0.0], [0.0, 4.0]]), [0.5, 0.0])
    told = bm.certify(net, "closest", own=0.75, rho=1.5)
    assert told.rdsa.status == ("proved" if third_party else "unknown")
    assert told.holds == third_party
    assert told.rho_bound == (1.5 if third_party else None)
    assert told.search is not None
    assert told.mixing.source == ("theory" if third_party else "convention")
    if third_party:
        assert "the nearest message is no farther than an honest one" in str(told)
        assert 0.5 < told.search.rho <= 1.5
        alone = bm.network("star", n=4, byzantine=[0])  # a leaf hears the lying hub only
        assert np.isnan(proved_contraction(alone, bm.rule("closest"), alone.bounds("exact")).bound).all()


def test_a_false_declaration_is_contradicted() -> None:
    mean = replace(bm.rule("weimean"), contraction=bm.Contraction(lambda near: np.full(len(near.f), 0.1), "hope"))
    with pytest.raises(ContradictedProof, match="hope"):
        certify(bm.network("paper/two-castle"), mean)


def test_a_third_party_rule_that_cuts_learns_how_many_liars_it_tolerates() -> None:
    halved = replace(bm.rule("ios"), name="halved", contraction=cutting(6.0, "half of Theorem 3"))
    net = bm.network("paper/two-castle")
    told, of_ios = certify(net, halved, search=0), certify(net, "ios", search=0)
    assert told.rho_bound is not None
    assert of_ios.proof.beside[0].rho == pytest.approx(2.0 * told.rho_bound)
    assert [line for line in str(told).splitlines() if "can tolerate" in line]
    assert "(half of Theorem 3)" in told.rdsa.reason


def test_a_third_party_gossip_rule_is_held_against_its_factor() -> None:
    net = bm.network("complete", n=12, byzantine=[0])
    errors = (None, lambda near: 4.0 * near.cut_weight(), lambda near: 6.0 * near.cut_weight())
    told = [
        certify(net, replace(bm.rule("gts"), name="gossip", gossip_error=error), guarantee="agrees", search=0)
        for error in errors
    ]
    answers = [[each.holds for each in one.conditions if each.name == "gossip"] for one in told]
    assert answers == [[], [True], [False]]


def test_malformed_declarations_are_refused() -> None:
    net = bm.network("complete", n=5)
    mixing = bm.gram_rule("mine", lambda block: block.weight, virtual_mixing="mean")
    with pytest.raises(ConfigError, match="rule mine: virtual_mixing must be to-own, equal or own, got 'mean'"):
        virtual_mixing(net, mixing)
    short = replace(bm.rule("ios"), contraction=bm.Contraction(lambda near: np.zeros(2), "too short"))
    with pytest.raises(ConfigError, match=r"rule IOS must have one entry per honest worker, \(5,\), got \(2,\)"):
        proved_contraction(net, short, net.bounds(1))


@pytest.mark.parametrize("outer", ["bucketing", "NNM", "ARC"])
@pytest.mark.parametrize("inner", [name for name in rules.names() if name not in ("bucketing", "NNM", "ARC")])
def test_a_rule_around_another_inherits_no_theorem(outer: str, inner: str) -> None:
    """Mixed inboxes hold lies inside honest slots: nothing that is proved about the inner rule is proved here."""
    both = rules.build(outer, inner=inner)
    assert (both.virtual_mixing, both.contraction, both.gossip_error) == (None, None, None)
    net = bm.network("complete", n=12, byzantine=[0])
    assert np.isnan(proved_contraction(net, both, net.bounds(1)).bound).all()
    assert virtual_mixing(net, both).source == "convention"
    assert not certify(net, both, 1, guarantee="agrees", search=0).holds


def test_nearest_neighbour_mixing_forgets_the_weights() -> None:
    assert rules.build("IOS").uses_weights
    assert rules.build("bucketing", inner="IOS").uses_weights
    assert not rules.build("NNM", inner="IOS").uses_weights
    assert rules.build("bucketing", inner="WeiMean").uses_f
