"""Certificates under attack: hundreds of random networks, and mutants of every condition that must be caught."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzmesh.rules import contraction, gts
from byzmesh.rules.base import Rule
from byzmesh.studies.soundness import report
from byzmesh.studies.soundness.attack import Broken, challenge
from byzmesh.studies.soundness.cases import Case, draw_case
from byzmesh.theory import certify, connectivity, consensus, question, verdicts
from byzmesh.theory.connectivity import Connectivity
from byzmesh.theory.contraction import Proof
from byzmesh.theory.gossip import Spectrum
from byzmesh.theory.verdict import Verdict
from byzmesh.types import Floats

Patch = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.parametrize("block", range(4))
def test_nothing_that_holds_can_be_broken(block: int) -> None:
    seen: Counter[tuple[str, str]] = Counter()
    for seed in range(50 * block, 50 * block + 50):
        seen.update(challenge(draw_case(seed), budget=40).items())
    for level in ("bounded", "fair"):
        assert seen[level, "proved"] >= 3, seen


@pytest.mark.parametrize("name", ["SMEA", "CAF"])
def test_bounds_by_variance_hold(name: str) -> None:
    """These rules came after the committed report: its cases stay what they were."""
    seen: Counter[tuple[str, str]] = Counter()
    for seed in range(40):
        seen.update(challenge(draw_case(seed, rules=(name,)), budget=40).items())
    assert seen["bounded", "proved"] >= 3, seen


def attack(cases: Iterable[Case], budget: int) -> None:
    """Challenge case after case until one breaks."""
    for case in cases:
        challenge(case, budget)


def smaller(rule: Rule, times: float) -> Rule:
    """The rule with its bound multiplied."""
    declared = rule.contraction
    assert declared is not None
    return replace(rule, contraction=contraction.Contraction(lambda near: times * declared.bound(near), "mutant"))


@pytest.mark.parametrize("name", ["IOS", "LazyIOS", "FABA", "GTS", "CS+", "NNA"])
def test_smaller_bounds_are_caught(name: str) -> None:
    """The bounds are attained, so three quarters of them are too little."""
    cases = (draw_case(seed, rules=(name,)) for seed in range(200))
    mutants = (replace(case, rule=smaller(case.rule, 0.75), limit=20.0) for case in cases)
    with pytest.raises(Broken):
        attack(mutants, budget=300)


@pytest.mark.parametrize(("name", "times"), [("SMEA", 0.5), ("CAF", 0.25)])
def test_much_smaller_bounds_by_variance_are_caught(name: str, times: float) -> None:
    """Search reaches about two thirds of SMEA's bound and a third of CAF's."""
    cases = (draw_case(seed, rules=(name,)) for seed in range(200))
    with pytest.raises(Broken):
        attack((replace(case, rule=smaller(case.rule, times), limit=20.0) for case in cases), budget=300)


def no_bound_on_liars(patch: pytest.MonkeyPatch) -> None:
    """A worker that expects fewer liars than it has is called safe."""

    def by_weight(of_h: Callable[[Floats], Floats], reason: str, **options: Any) -> contraction.Contraction:
        return contraction.Contraction(lambda near: of_h(near.cut_weight()), reason)

    patch.setattr("byzmesh.rules.ios.by_weight", by_weight)


def lightest(patch: pytest.MonkeyPatch) -> None:
    """h of the lightest neighbours."""

    def cut_weight(near: contraction.Neighbourhoods, equal: bool = False, within_b: bool = False) -> Floats:
        rising = np.sort(np.where(near.weight > 0.0, near.weight, np.inf), axis=1)
        total = np.concatenate([np.zeros((len(rising), 1)), np.cumsum(rising, axis=1)], axis=1)
        return np.asarray(total[np.arange(len(total)), np.minimum(near.f, near.neighbours)])

    patch.setattr(contraction.Neighbourhoods, "cut_weight", cut_weight)


def one_liar_fewer(patch: pytest.MonkeyPatch) -> None:
    """Liars anywhere, but one fewer than was asked for."""
    proved = question.Question.proved

    def fewer(asked: question.Question, rule: Rule) -> Proof:
        return proved(replace(asked, f=np.maximum(0, asked.f - 1)), rule)

    patch.setattr(question.Question, "proved", fewer)


def whole_neighbours(patch: pytest.MonkeyPatch) -> None:
    """The published 4 b for GTS on uneven weights."""
    patch.setattr(gts, "most_dropped", lambda near, times=1.0: times * near.cut_weight())


def without_the_largest_eigenvalue(patch: pytest.MonkeyPatch) -> None:
    """2 e < mu_2 alone."""
    patch.setattr(consensus, "gossip_factor", lambda seen, error: 1.0 - (seen.mu_2 - 2.0 * error))


def lies_keep_the_spectrum(patch: pytest.MonkeyPatch) -> None:
    """mu_2 of the whole graph, as if no node could be lost, and nothing lost by lies either."""
    patch.setattr(certify, "_spectrum", lambda asked, virtual: Spectrum(0.999, 1.0))


def no_deviation(patch: pytest.MonkeyPatch) -> None:
    """lambda > 0 is called consensus."""
    patch.setattr(consensus, "deviation", lambda asked, matrix, bound: 0.0)


def no_lies_in_common(patch: pytest.MonkeyPatch) -> None:
    """Two rows overlap as if nobody lied, and lies moved nobody."""
    patch.setattr(consensus, "least_overlap", lambda asked, form: 3.0)


def nobody_is_moved(patch: pytest.MonkeyPatch) -> None:
    """The overlap of W alone."""
    overlap = consensus._overlap
    patch.setattr(consensus, "_overlap", lambda matrix, moved: overlap(matrix, 0.0))


def always_connected(patch: pytest.MonkeyPatch) -> None:
    """No cut is looked for."""
    patch.setattr(certify, "connectivity", lambda asked, seconds: Connectivity(Verdict("proved", "mutant")))


def smaller_cuts_only(patch: pytest.MonkeyPatch) -> None:
    """Only cuts of fewer nodes are looked for, and no programme is solved."""
    found = connectivity.smallest_cut
    patch.setattr(connectivity, "_cut_off", lambda asked: None)
    patch.setattr(connectivity, "smallest_cut", lambda links, most: found(links, most - 1) if most > 0 else None)
    patch.setattr(connectivity, "_by_programme", lambda asked, seconds: Connectivity(Verdict("proved", "mutant")))


def everybody_counts(patch: pytest.MonkeyPatch) -> None:
    """W is taken to be doubly stochastic."""
    patch.setattr(verdicts, "doubly_stochastic", lambda facts: Verdict("proved", "mutant"))


FIRST: dict[Patch, int] = {whole_neighbours: 40, without_the_largest_eigenvalue: 460}
"""Seeds to begin with where the first hundred cases would take long to catch a mutant."""
MUTANTS: dict[Patch, tuple[str, ...]] = {
    no_bound_on_liars: ("IOS",),
    lightest: ("IOS",),
    one_liar_fewer: ("IOS",),
    whole_neighbours: ("GTS",),
    without_the_largest_eigenvalue: ("GTS", "CS+"),
    lies_keep_the_spectrum: ("GTS", "CS+"),
    no_deviation: ("LazyIOS", "IOS"),
    no_lies_in_common: ("IOS", "FABA"),
    nobody_is_moved: ("IOS", "FABA"),
    always_connected: ("LazyIOS",),
    smaller_cuts_only: ("LazyIOS",),
    everybody_counts: ("LazyIOS",),
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_mutant_of_each_condition_is_caught(mutant: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    with pytest.raises(Broken):
        attack((draw_case(seed, rules=MUTANTS[mutant]) for seed in range(FIRST.get(mutant, 0), 500)), budget=100)


def test_the_study_counts_and_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that are there are not computed again, those of another revision are; together they are the whole."""
    monkeypatch.setattr(report, "PART", 4)
    monkeypatch.setattr(report, "BUDGET", 40)
    arguments = ["6", str(tmp_path), "abc"]
    monkeypatch.setattr("shutil.rmtree", lambda folder: None)
    assert report.main(arguments) == 0
    whole = (tmp_path / "counts.json").read_text()
    told = json.loads(whole)
    assert (told["cases"], told["broken"], told["revision"]) == (6, [], "abc")
    assert sum(sum(levels["bounded"].values()) for levels in told["counts"].values()) == 6
    assert {name: told[name] for name in ("counts", "broken")} == {
        name: value for name, value in report.study(6, budget=40).items() if name in ("counts", "broken")
    }
    assert "**0 were wrong.**" in (tmp_path / "README.md").read_text()
    (tmp_path / "parts" / "000004.json").unlink()
    computed: list[int] = []
    study = report.study

    def watched(count: int, budget: int, first: int = 0) -> dict[str, Any]:
        computed.append(first)
        return study(count, budget, first)

    monkeypatch.setattr(report, "study", watched)
    report.main(arguments)
    assert ((tmp_path / "counts.json").read_text(), computed) == (whole, [4])
    report.main([*arguments[:2], "def"])
    assert computed == [4, 0, 4]
