"""The auditor finds what was planted, by its strength and by its start; an auditor that does not look is caught."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import yaml

import byzmesh as bm
from byzmesh.attacks.base import attacks
from byzmesh.errors import ConfigError, InfeasibleBound, NoLiars
from byzmesh.rules.base import rules
from byzmesh.studies.audit import halving, lies, trials
from byzmesh.studies.audit.audit import FRESH, SHORT, _verdict
from byzmesh.studies.audit.fault_bound import ASKED, _told
from byzmesh.studies.audit.lies import Family, every_lie
from byzmesh.studies.audit.tables import verdict_text
from byzmesh.studies.audit.verdicts import Audit
from byzmesh.sweeps.build import build

CONFIG = {
    "problem": {"name": "noisy-quadratic", "dimension": 2, "init": "normal", "scale": 3.0},
    "network": {"name": "complete", "n": 6, "byzantine": [5]},
    "rule": "weimean",
    "rounds": 160,
    "step": 0.02,
}
PLANTED = {"planted": Family(attack={"name": "planted"}, option="strength", values=(0.0, 1.0, 4.0, 2.0))}


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An attack that is harmless unless it is strong, and the models are all small: the zero start."""
    with attacks.temporary():

        @bm.register_attack("planted")
        def planted(strength: float = 0.0) -> bm.Attack:
            """Honest means, or a push in the first rounds that is never taken back."""

            def forge(view: bm.View, pushed: Any) -> Any:
                scene = view.scene
                if view.round.number == 0:
                    pushed = float(np.abs(view.models).max() < 1.0)
                rows = view.models.mean(axis=0, keepdims=True) + 10.0 * max(strength - 1.0, 0.0) * pushed
                row = np.zeros(len(scene.liar), np.int64)
                return bm.Forged(
                    scene.liar, scene.victim, row, view.models, rows=rows.astype(view.models.dtype)
                ), pushed

            return bm.Attack("planted", forge, init=lambda scene: 0.0, options={"strength": strength})

        monkeypatch.setattr(lies, "FAMILIES", PLANTED)
        yield


def search(store: Path, **more: Any) -> Audit:
    return bm.audit(CONFIG, runs=20, seeds=2, store=store, workers=0, **more)


def check(found: Audit) -> None:
    """What a right auditor says about the planted attack."""
    worst = found["WeiMean"].worst
    assert worst is not None
    assert worst.trial.start == "zero", "the start was not searched"
    strength = worst.trial.config["attack"].get(
        "strength", worst.trial.config["attack"].get("inner", {}).get("strength")
    )
    assert strength >= 4.0, "the strength was not searched"


@pytest.mark.usefixtures("planted")
def test_it_finds_what_was_planted_and_repeats_it(tmp_path: Path) -> None:
    found = search(tmp_path / "runs.db", at_least=5.0)
    check(found)
    worst = found["WeiMean"].worst
    assert worst is not None
    assert worst.trial.lie.strength == 15.68, "a strength beyond those listed, found by refining twice"
    assert [trial.seed for trial in found["WeiMean"].trials if trial.stage == 4 and trial.lie is not trials.QUIET] == [
        FRESH,
        FRESH + 1,
    ] * 2
    assert not found.holds, "the worst loss is above what was asked for"
    again = search(tmp_path / "runs.db")
    assert again.to_dict() == {**found.to_dict(), "at_least": None, "holds": True}
    written = {path.name: path for path in found.write(tmp_path / "out")}
    assert {"audit.json", "audit.md", "audit.html", "worst-weimean.yaml", "strength-weimean.png"} == set(written)
    assert json.loads(written["audit.json"].read_text())["rules"][0]["cases"][0]["mean"] == worst.mean
    config = yaml.safe_load(written["worst-weimean.yaml"].read_text())
    assert bm.simulate(**config).final("loss") == pytest.approx(worst.values[0], rel=1e-6)
    page = written["audit.html"].read_text()
    assert "WeiMean: loss " in page and "under planted 15.68 from the start zero; " in page
    assert "planted 15.68" in page and "NeurIPS 2023" in page and "Damage against strength" in page


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize("mutant", ["strength", "start"])
def test_an_auditor_that_does_not_look_is_caught(mutant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if mutant == "strength":
        monkeypatch.setattr(
            Family, "at", lambda self, name, strength: lies.Lie(family=name, strength=None, attack=self.attack)
        )
        found = search(tmp_path / "runs.db")
    else:
        found = search(tmp_path / "runs.db", starts=["normal"])
    with pytest.raises(AssertionError, match="was not searched"):
        check(found)


@pytest.mark.parametrize("looks", [True, False])
def test_when_to_lie_is_searched(looks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A push that harms most if the first lie is told in round 28; the second stage tries 20."""
    with attacks.temporary():

        @bm.register_attack("patient")
        def patient() -> bm.Attack:
            """Honest means, and a push as large as the first lie is well timed."""

            def forge(view: bm.View, first: Any) -> Any:
                scene, first = view.scene, view.round.number if first is None else first
                push = 10.0 * max(1.0 - abs(first - 28) / 20, 0.0)
                rows = (view.models.mean(axis=0, keepdims=True) + push).astype(view.models.dtype)
                return bm.Forged(
                    scene.liar, scene.victim, np.zeros(len(scene.liar), np.int64), view.models, rows=rows
                ), first

            return bm.Attack("patient", forge, init=lambda scene: None, options={})

        monkeypatch.setattr(lies, "FAMILIES", {"patient": Family(attack={"name": "patient"})})
        if not looks:
            monkeypatch.setattr(lies, "NEAR", ())
        found = bm.audit(CONFIG, runs=40, seeds=2, store=tmp_path / "runs.db", workers=0)
    worst = found["WeiMean"].worst
    assert worst is not None and worst.trial.lie.name == f"patient, late {28 if looks else 20}"


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize("total", [15, 200, 1000, 3000])
def test_a_limit_on_the_rounds_is_kept_and_finds_the_same_again(total: int, tmp_path: Path) -> None:
    rules = ["weimean", "ios"]
    found = search(tmp_path / "runs.db", rules=rules, total_rounds=total, at_least=1e9)
    spent = sum(trial.rounds for verdict in found.verdicts for trial in verdict.trials)
    assert total // 2 < spent <= total or spent == 0, "no more than is allowed for"
    assert [verdict.worst is None for verdict in found.verdicts] == [total == 15] * 2
    assert found.holds == (total >= 1000), "whatever the loss is: a last stage that is not complete says nothing"
    again = search(tmp_path / "again.db", rules=rules, total_rounds=total, at_least=1e9)
    assert {**again.to_dict(), "store": ""} == {**found.to_dict(), "store": ""}


@pytest.mark.usefixtures("planted")
def test_a_limit_below_the_first_run_has_a_report_that_says_so(tmp_path: Path) -> None:
    found = search(tmp_path / "runs.db", total_rounds=10)
    assert "nothing tried" in found.write(tmp_path / "out")[-1].read_text()
    assert not found.complete and not found.holds


@pytest.mark.usefixtures("planted")
def test_a_last_stage_is_complete_if_only_nobody_lying_fails(tmp_path: Path) -> None:
    """Without the liar every worker has two neighbours, too few for f = 1: that says nothing about the lies."""
    config = {**CONFIG, "network": {"name": "complete", "n": 4, "byzantine": [3]}, "rule": "TriMean", "f": 1}
    found = bm.audit(config, runs=3, seeds=2, store=tmp_path / "runs.db", workers=0, at_least=1e9)
    assert any("nobody lies" in why for why in found.failures)
    assert found.complete and found.holds


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize("measure", ["gradient", None])
def test_a_measure_may_be_written_as_a_name_or_as_nothing(measure: str | None, tmp_path: Path) -> None:
    config = {**CONFIG, "measure": measure, "rounds": 20}
    found = bm.audit(config, runs=2, seeds=1, store=tmp_path / "runs.db", workers=0)
    worst = found["WeiMean"].worst
    assert worst is not None and worst.final


@pytest.mark.usefixtures("planted")
def test_no_run_has_more_rounds_than_the_config(tmp_path: Path) -> None:
    found = bm.audit(CONFIG, runs=4, rounds=7, seeds=1, store=tmp_path / "runs.db", workers=0)
    assert found.rounds == 7 and {trial.rounds for trial in found["WeiMean"].trials} == {7}


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize("none", ["None", {"name": "none"}])
def test_an_attack_that_is_none_is_no_lie(none: Any, tmp_path: Path) -> None:
    found = bm.audit({**CONFIG, "attack": none, "rounds": 20}, runs=2, seeds=1, store=tmp_path / "runs.db", workers=0)
    families = {trial.lie.family for trial in found["WeiMean"].trials if trial.lie is not trials.QUIET}
    assert all(family.startswith("planted") for family in families)


def test_the_config_s_attack_and_the_same_lie_of_a_family_are_one_finalist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lies, "FAMILIES", {name: lies.FAMILIES[name] for name in ("huge", "zero")})
    config = {**CONFIG, "attack": {"name": "huge", "fraction": 0.3}, "rounds": 20}
    found = bm.audit(config, runs=5, starts=["zero"], seeds=1, store=tmp_path / "runs.db", workers=0)
    first, second = found["WeiMean"].cases
    assert first.keys != second.keys


@pytest.mark.usefixtures("planted")
def test_the_configs_attack_is_told_at_full_length_from_its_start(tmp_path: Path) -> None:
    """Short runs end before it begins."""
    late = {"name": "late", "after": 100, "inner": {"name": "gaussian", "std": 1e6}}
    config: dict[str, Any] = {**CONFIG, "attack": late}
    found = bm.audit(config, runs=20, seeds=2, store=tmp_path / "runs.db", workers=0)["WeiMean"].cases
    own = [case for case in found if (case.trial.lie.name, case.trial.start) == ("the config's late 100", "normal")]
    config["seed"] = FRESH
    assert [case.values[0] for case in own] == [pytest.approx(bm.simulate(**config).final("loss"), rel=1e-6)]


@pytest.mark.usefixtures("planted")
def test_the_configs_attack_is_tried_at_other_strengths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lies, "FAMILIES", {"zero": Family(attack={"name": "zero"})})
    config = {**CONFIG, "attack": {"name": "planted", "strength": 2}}
    found = bm.audit(config, runs=20, seeds=2, store=tmp_path / "runs.db", workers=0)["WeiMean"].worst
    assert found is not None and found.trial.lie.name == "the config's planted 7.84"


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize(("rounds", "last", "complete"), [(None, 30, True), (160, 80, False)])
def test_with_a_limit_on_the_rounds_runs_are_as_long_as_fits_unless_it_is_said_how_long(
    rounds: int | None, last: int, complete: bool, tmp_path: Path
) -> None:
    found = search(tmp_path / "runs.db", total_rounds=1000, rounds=rounds)
    assert (found.rounds, found.complete) == (last, complete)


def test_an_attack_that_remembers_in_a_closure_can_be_audited(tmp_path: Path) -> None:
    """What it keeps is part of its identity: the key of a run that is planned later is another one."""
    rounds: list[int] = []
    with attacks.temporary():

        @bm.register_attack("remembering")
        def remembering() -> bm.Attack:
            """Zeros."""

            def forge(view: bm.View, state: Any) -> Any:
                rounds.append(view.round.number)
                return attacks.build("zero").forge(view, state)

            return bm.Attack("remembering", forge, init=attacks.build("zero").init, options={})

        found = bm.audit({**CONFIG, "attack": "remembering"}, runs=8, seeds=2, store=tmp_path / "runs.db", workers=0)
    assert found.complete and rounds


@pytest.mark.usefixtures("planted")
def test_out_of_time_is_said_and_nothing_hangs(tmp_path: Path) -> None:
    found = search(tmp_path / "runs.db", minutes=1e-9, at_least=5.0)
    assert found["WeiMean"].worst is None and not found.holds and "nothing tried" in str(found)


@pytest.mark.usefixtures("planted")
def test_what_the_search_found_is_told_if_there_is_no_time_for_the_last_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that stands still until the search is over, and then is an hour late and goes on."""
    now = [0.0]

    def clock() -> float:
        now[0] *= 1.001
        return now[0]

    def over(search: trials.Search, count: int, seeds: int) -> Any:
        chosen = halving.finalists(search, count, seeds)
        now[0] = 3600.0
        return chosen

    monkeypatch.setattr(trials, "time", SimpleNamespace(monotonic=clock))
    monkeypatch.setattr("byzmesh.studies.audit.audit.finalists", over)
    found = search(tmp_path / "runs.db", minutes=1.0, at_least=1e9)
    check(found)
    worst = found["WeiMean"].worst
    assert worst is not None and not worst.final and worst.trial.rounds == 80
    assert worst.mean == max(trial.value for trial in found["WeiMean"].trials if trial.stage == 3)
    assert not found.holds, "one run that chose itself is no evidence that the rule holds"
    assert "search only: one seed, 80 rounds" in str(found)
    written = {path.name: path for path in found.write(tmp_path / "out")}
    config = yaml.safe_load(written["worst-weimean.yaml"].read_text())
    assert bm.simulate(**config).final("loss") == pytest.approx(worst.mean, rel=1e-6)
    assert "its last stage has no result" in written["audit.html"].read_text()
    assert json.loads(written["audit.json"].read_text())["rules"][0]["cases"][0]["final"] is False


@pytest.mark.parametrize("mutant", [False, True])
@pytest.mark.usefixtures("planted")
def test_a_lie_that_is_too_slow_for_the_last_stage_is_not_hidden(
    mutant: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The milder lies that there was time for would be called the worst case, and `at_least` would pass."""
    result = trials._result

    def slow(trial: trials.Trial, opened: Any) -> trials.Trial:
        return replace(result(trial, opened), seconds=1e6 if trial.lie.family == "planted" else 0.0)

    monkeypatch.setattr(trials, "_result", slow)
    monkeypatch.setattr(trials, "time", SimpleNamespace(monotonic=lambda: 0.0))
    monkeypatch.setattr(lies, "FAMILIES", {**PLANTED, "silent": Family(attack={"name": "silent"})})
    if mutant:
        monkeypatch.setattr("byzmesh.studies.audit.audit.unfinished", lambda search, rule: None)
    found = search(tmp_path / "runs.db", minutes=1.0, at_least=5.0)
    first, *others = found["WeiMean"].cases
    assert found.complete and found.holds == mutant
    if not mutant:
        assert first.trial.lie.family == "planted" and not first.final and first.mean > 5.0 > others[0].mean
        assert "search only: one seed" in str(found) and others[0].final
        page = next(path for path in found.write(tmp_path / "out") if path.name == "audit.html").read_text()
        assert "its last stage has no result" in page and "<h3>Last stage" in page


def test_what_f_costs_is_measured_with_and_without_the_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the six numbers is that of a run of its own; rules that take no f have none."""
    monkeypatch.setattr(lies, "FAMILIES", {"sign-flipping": lies.FAMILIES["sign-flipping"]})
    config = {**CONFIG, "rule": "IOS", "rounds": 40, "b": 0.2}
    found = bm.audit(config, rules=["IOS", "WeiMean"], runs=3, seeds=1, finals=1, store=tmp_path / "runs.db", workers=0)
    worst = found["IOS"].worst
    assert worst is not None and found["WeiMean"].bounds == {}
    same = {name: value for name, value in worst.trial.config.items() if name != "labels"}
    wrong = {"one too few": [0] * 5, "one too many": [2] * 5}
    for (lying, told), value in found["IOS"].bounds.items():
        attack, f = same["attack"] if lying else "none", wrong.get(str(told), told)
        assert bm.simulate(**{**same, "attack": attack, "f": f}).final("loss") == pytest.approx(value, rel=1e-6)
    assert list(found["IOS"].bounds) == list(ASKED) and len(set(found["IOS"].bounds.values())) >= 3
    assert "one seed" in str(found) and "nan" not in str(found)
    assert "What f costs" in str(found) and found.to_dict()["rules"][0]["bounds"][1]["f"] == "tolerable"


def test_who_was_trusted_is_said_of_rules_that_cut_nobody_and_of_those_by_coordinate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Silence about the plain mean would look as if it had trusted nobody: it trusted the liar in every round."""
    monkeypatch.setattr(lies, "FAMILIES", {"sign-flipping": lies.FAMILIES["sign-flipping"]})
    config = {**CONFIG, "rounds": 20}
    known: dict[str, Any] = {"runs": 1, "seeds": 1, "finals": 1, "starts": ["zero"], "workers": 0}
    found = bm.audit(config, rules=["WeiMean", "IOS", "TriMean"], store=tmp_path / "runs.db", **known)
    mean, cutting, trimmed = found.to_dict()["rules"]
    everybody = [
        {"worker": worker, "liars": {5: 1.0}, "least_trusted_honest": {worker == 0: 1.0}} for worker in range(5)
    ]
    assert mean["trust"] == everybody and not mean["by_coordinate"]
    assert len(cutting["trust"]) == 5 and all(
        min(line["least_trusted_honest"].values()) < 1.0 for line in cutting["trust"]
    )
    assert trimmed["trust"] == [] and trimmed["by_coordinate"]
    sections = found.write(tmp_path / "out")[-1].read_text().split("<section")
    of_mean, of_trimmed = (next(part for part in sections if f"<h2>{name}<" in part) for name in ("WeiMean", "TriMean"))
    assert "5 in 100%" in of_mean and "each coordinate separately" not in of_mean
    assert "each coordinate separately" in of_trimmed and "in 100%" not in of_trimmed


def test_who_said_nothing_was_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lies, "FAMILIES", {"silent": lies.FAMILIES["silent"]})
    known: dict[str, Any] = {"runs": 1, "seeds": 1, "finals": 1, "starts": ["zero"], "workers": 0}
    found = bm.audit({**CONFIG, "rounds": 20}, store=tmp_path / "runs.db", **known)
    assert [line["liars"] for line in found.to_dict()["rules"][0]["trust"]] == [{5: None}] * 5


def test_every_family_before_any_twice() -> None:
    names = [lie.family for lie in every_lie()]
    first = len(lies.FAMILIES)
    assert len(set(names[:first])) == first and len(names) > 2 * first
    for lie in every_lie():
        assert attacks.canonical(dict(lie.attack))["name"] == attacks.build(dict(lie.attack)).name


def test_every_attack_is_tried_and_every_scale_is_searched() -> None:
    """Named here is what is left out, and why; an attack or a scale that somebody adds is missed by this test first."""
    around = {one.attack["name"] for one in lies.refined(lies.FAMILIES["ALIE"].at("ALIE", 3.0), 100, 2)} - {"ALIE"}
    silence = {"none", "nan", "infinity"}  # as `silent`: what is not finite counts as not sent
    other_goals = {"backdoor", "trigger-phrase"}  # accuracy does not show them
    tried = {attacks.canonical(dict(family.attack))["name"] for family in lies.FAMILIES.values()}
    assert tried | around | silence | other_goals == set(attacks.names())
    searched = {(family.attack["name"], family.option) for family in lies.FAMILIES.values() if len(family.values) > 1}
    fixed = {
        ("adaptive", "horizon"),  # how far it looks, not how loud it is
        ("reflection", "memory"),
        ("box", "rounds"),  # of training a goal that `target` has with other rounds
    }
    scales = {
        (name, option)
        for name in tried
        for option, value in attacks.entry(name).options.items()
        if isinstance(value, float | int | None) and not isinstance(value, bool)
    }
    assert scales - searched == fixed


def test_a_harmful_lie_is_tried_at_strengths_that_its_attack_allows() -> None:
    assert [one.strength for one in lies.refined(lies.FAMILIES["huge"].at("huge", 1e-19), 9, 2)][:4] == pytest.approx(
        [1.4e-19, 0.7e-19, 2.8e-19, 0.35e-19]
    )
    asleep = lies.refined(lies.FAMILIES["feigned sleep"].at("feigned sleep", 0.5), 9, 1)
    near = [one.strength for one in asleep if one.family == "feigned sleep"]
    assert near == [0.7, 0.35, 0.175], "1.4 is no probability"
    assert not any(one.attack["name"] == "mixed" for one in asleep), "one liar alone cannot tell two lies"


def test_what_is_made_of_a_lie_differs_from_it() -> None:
    """Who is asleep in some rounds is not woken by sleeping twice; who alternates stops before a short run is over."""
    asleep = lies.refined(lies.FAMILIES["feigned sleep"].at("feigned sleep", 0.5), 1000, 2)
    assert [one.attack["name"] for one in asleep].count("feigned-sleep") == 3, "its other strengths only"
    (there,) = [one for one in asleep if one.attack["name"] == "alternating"]
    assert there.strength == 100
    (there,) = [
        one
        for one in lies.refined(lies.FAMILIES["zero"].at("zero", None), 40, 2)
        if one.attack["name"] == "alternating"
    ]
    assert there.strength == 40


@pytest.mark.parametrize(("seconds", "slow"), [(np.inf, False), (300.0, True)])
def test_what_is_made_of_the_worst_lies_comes_in_turn_with_them_and_slow_ones_last(
    seconds: float, slow: bool, tmp_path: Path
) -> None:
    """If all that was kept came first, the time would be over before any other strength of the worst was tried."""
    under_way = trials.Search(
        written=CONFIG,
        rules={"IOS": "IOS"},
        starts=("zero", "common", "normal"),
        own_start="zero",
        rounds=3000,
        liars=2,
        store=tmp_path / "runs.db",
        budget=trials.Budget(runs=20, seconds=seconds),
        compute={"workers": 2},
    )
    told = [lies.FAMILIES["adaptive"].at("adaptive", None)]
    told += [lies.FAMILIES["ALIE"].at("ALIE", z) for z in (3.0, 1.0, 6.0)]
    found = [
        trials.Trial(
            rule="IOS",
            lie=lie,
            start=start,
            seed=0,
            rounds=375,
            stage=1,
            key="",
            config={},
            lost=0.9,
            seconds=0.06 if lie.family == "adaptive" else 0.002,
        )
        for start in under_way.starts
        for lie in told
    ]
    names = [(lie.name, start) for lie, start in halving._next(under_way, found, 6, 2)]
    assert {start for _, start in names} == {"zero"} and len(set(names)) == 6
    in_turn = ["adaptive", "ALIE 4.2", "ALIE 3", "ALIE 2.1", "ALIE 1", "ALIE 8.4"]
    slow_last = ["ALIE 3", "ALIE 4.2", "ALIE 1", "ALIE 2.1", "ALIE 8.4", "adaptive"]
    assert [name for name, _ in names] == (slow_last if slow else in_turn)


def test_what_takes_too_long_does_not_reach_the_last_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would leave the audit without a result; if nothing else was found, it goes on."""

    def stage(search: trials.Search, number: int, chosen: Any) -> None:
        search.trials += [
            trials.Trial(
                rule="IOS",
                lie=lie,
                start="zero",
                seed=0,
                rounds=1,
                stage=number,
                key="",
                config={"attack": lie.name},
                lost=lost,
                seconds=seconds,
            )
            for lie, lost, seconds in told
        ]

    monkeypatch.setattr(halving, "run_stage", stage)
    told = [
        (lies.FAMILIES["adaptive"].at("adaptive", None), 0.9, 0.06),
        (lies.FAMILIES["zero"].at("zero", None), 0.8, 0.002),
    ]
    config = {"network": "paper/two-castle", "problem": "softmax", "rounds": 3000}
    asked: list[list[str]] = []

    def note(search: trials.Search, some: list[trials.Trial], part: float = 1.0) -> list[trials.Trial]:
        asked.append(sorted({trial.lie.name for trial in some}))
        return []

    monkeypatch.setattr(trials.Search, "run", note)
    monkeypatch.setattr(trials.Search, "warm_up", lambda search: None)
    for minutes in (5.0, None):
        bm.audit(config, rules=["IOS"], starts=["zero"], minutes=minutes, workers=2, store=tmp_path / "runs.db")
    told = told[:1]
    bm.audit(config, rules=["IOS"], starts=["zero"], minutes=5.0, workers=2, store=tmp_path / "runs.db")
    quiet = "nobody lies"
    assert asked == [[quiet, "zero"], ["adaptive", quiet, "zero"], ["adaptive", quiet]]


def test_every_family_meets_every_start_at_the_default_budget_and_all_families_come_first() -> None:
    lies_told, starts = list(every_lie()), ("zero", "common", "normal")
    order = halving.in_order(lies_told, starts)
    assert len(order) == len({(lie.name, start) for lie, start in order}) == 3 * len(lies_told), "each once"
    count = len(lies.FAMILIES)
    assert {lie.family for lie, _ in order[:count]} == set(lies.FAMILIES), "before any second start"
    assert {start for _, start in order[:count]} == set(starts), "the starts in turn"
    at_default = order[: round(halving.SHARES[0] * SHORT)]
    assert {(lie.family, start) for lie, start in at_default} == {(name, s) for name in lies.FAMILIES for s in starts}
    further = order[3 * count :][: len(lies_told) - count]
    assert len({lie.name for lie, _ in further}) == len(further), "each of the further strengths once, "
    assert len(dict(places := {(lie.family, start) for lie, start in further})) == len(places), "from one start, "
    assert {start for _, start in places} == set(starts), "not the same for all"


def test_the_likeliest_lie_is_tried_first_and_nobody_lying_before_each_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a machine that does next to nothing in the time still says something."""
    asked: list[list[trials.Trial]] = []

    def note(search: trials.Search, some: list[trials.Trial], part: float = 1.0) -> list[trials.Trial]:
        asked.append(some)
        return []

    monkeypatch.setattr(trials.Search, "run", note)
    config = {"problem": "softmax", "network": "paper/two-castle", "attack": "sign-flipping", "rounds": 400}
    bm.audit(config, rules=["IOS", "FABA"], store=tmp_path / "runs.db")
    stage = [(trial.rule, trial.lie.family, trial.start) for trial in asked[0]]
    quiet = "nobody lies"
    assert stage[:2] == [("IOS", quiet, "common"), ("IOS", "target", "common")]
    assert stage[2:4] == [("FABA", quiet, "common"), ("FABA", "target", "common")]
    for rule, family, start in stage:
        assert stage.index((rule, quiet, start)) <= stage.index((rule, family, start))
    assert len(set(stage)) < len(stage) == 2 * (120 + 3), "each once, and nobody lying once from every start"


def test_mistakes() -> None:
    with pytest.raises(NoLiars):
        bm.audit({**CONFIG, "network": {"name": "ring", "n": 5}})
    with pytest.raises(ConfigError, match="runs must be a whole number of at least 1, got 0"):
        bm.audit(CONFIG, runs=0)
    with pytest.raises(ConfigError, match="total_rounds must be a whole number from 1 to 9007199254740992, got 0"):
        bm.audit(CONFIG, total_rounds=0)
    with pytest.raises(ConfigError, match="at_least must be a finite number, got nan"):
        bm.audit(CONFIG, at_least=float("nan"))
    with pytest.raises(ConfigError, match="a start of an audit must be zero, common or normal, got 'nil'"):
        bm.audit(CONFIG, starts=["zero", "nil"])
    ring = {**CONFIG, "network": {"name": "ring", "n": 5, "byzantine": [4]}}
    with pytest.raises(
        InfeasibleBound, match="rule TriMean at worker 0 with 2 neighbours: the largest feasible f is 0"
    ):
        bm.audit({**ring, "f": 1}, rules=["weimean", "trimean"])
    with pytest.raises(ConfigError, match=r"b must be a weight of at least 0 and below 1, .* got 1.5"):
        bm.audit({**CONFIG, "b": 1.5})
    with pytest.raises(ConfigError, match="unknown attack 'sine-flipping': did you mean 'sign-flipping'"):
        bm.audit({**CONFIG, "attack": "sine-flipping"})
    with pytest.raises(ConfigError, match="attack given as a mapping needs the key 'name', got the keys scale"):
        bm.audit({**CONFIG, "attack": {"scale": 2.0}})


@pytest.mark.usefixtures("planted")
def test_a_rule_that_diverges_by_itself_has_a_worst_case(tmp_path: Path) -> None:
    """Infinite without liars and with them: nothing is lost, and no more time would help."""
    found = bm.audit({**CONFIG, "step": 50.0}, runs=3, seeds=2, store=tmp_path / "runs.db", workers=0, at_least=1e9)
    worst = found["WeiMean"].worst
    assert worst is not None and worst.final and worst.mean == np.inf and worst.trial.damage == 0.0
    assert not found.holds and "minutes" not in str(found) and "nan" not in str(found)
    page = found.write(tmp_path / "out")[-1].read_text()
    assert "it diverges if nobody lies, too" in page and "minutes" not in page


def test_a_lie_is_judged_even_if_nobody_lying_fails_or_diverges() -> None:
    def trial(value: float, status: str = "finished", metric: str = "loss") -> trials.Trial:
        known: dict[str, Any] = {"rule": "IOS", "start": "zero", "seed": 0, "rounds": 9, "key": "", "config": {}}
        return trials.Trial(lie=trials.LOUD, stage=1, value=value, status=status, metric=metric, **known)

    endless, failed = trial(np.inf, "diverged"), trial(np.nan, "failed")
    assert trials._judged(endless, endless).lost > trials._judged(trial(3.0), endless).lost
    assert trials._judged(trial(3.0), failed).lost > trials._judged(trial(2.0), failed).lost
    assert trials._judged(trial(20.0, metric="accuracy"), failed).lost == 0.8
    assert np.isnan(trials._judged(trial(3.0), failed).damage) and np.isnan(trials._judged(trial(3.0), None).lost)


@pytest.mark.parametrize("only_liars", [False, True])
def test_that_all_runs_failed_is_said_and_is_no_success(
    only_liars: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rule that raises in its first round, or as soon as somebody lies: no minutes would help."""
    with rules.temporary():

        @bm.register_rule("broken")
        def broken() -> bm.Rule:
            """Raises."""

            def apply(inbox: bm.Inbox, state: Any) -> Any:
                if only_liars and inbox.index.shape[1] < 6:
                    return bm.Outcome(models=inbox.pool.own.copy(), kept=np.ones(len(inbox.index), bool)), state
                raise RuntimeError("out of order")

            return bm.Rule("broken", apply)

        monkeypatch.setattr(lies, "FAMILIES", {"sign-flipping": lies.FAMILIES["sign-flipping"]})
        config = {**CONFIG, "rule": "broken", "rounds": 20}
        found = bm.audit(config, runs=3, starts=["zero"], store=tmp_path / "runs.db", workers=0)
        assert found["broken"].worst is None and not found.holds
        number, which = (2, " with liars") if only_liars else (3, "")
        assert f"all {number} runs{which} failed: " in str(found) and "out of order" in str(found)
        page = found.write(tmp_path / "out")[-1].read_text()
        assert f"broken: all {number} runs{which} failed: " in page and "minutes" not in page


def test_who_goes_on_is_judged_by_the_latest_stage_and_by_what_was_lost() -> None:
    """A lie that was tried twice stands where its last trial puts it, before new ones that did less."""

    def trial(name: str, stage: int, lost: float) -> trials.Trial:
        lie = lies.Lie(family=name, strength=None, attack={"name": "zero"})
        known: dict[str, Any] = {"rule": "IOS", "start": "zero", "seed": 0, "rounds": 9, "key": "", "config": {}}
        return trials.Trial(lie=lie, stage=stage, lost=lost, **known)

    tried = [trial("strong", 1, 0.9), trial("weak", 1, 0.1), trial("strong", 2, 0.8), trial("new", 2, 0.2)]
    assert [one.lie.name for one in halving.ranked(tried, "IOS")] == ["strong", "new", "weak"]
    quiet = [replace(trial("", stage, 0.0), lie=trials.QUIET, value=10.0 * stage) for stage in (1, 2, 3)]
    searched = SimpleNamespace(trials=[*tried, *quiet], failures={}, due={"IOS": tried}, untried=lambda rule: ())
    found = _verdict("IOS", [], cast(trials.Search, searched))
    assert found.worst is not None and found.worst.trial is tried[2]
    assert found.quiet["zero"].value == 20.0, "without liars after as many rounds as the lie that is told"


def test_compiling_does_not_count_as_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A virtual clock that compiling moves by an hour: an audit of a minute still tries what it is asked to."""
    now = [0.0]

    def slow(config: Any) -> Any:
        now[0] += 3600.0
        return build(config)

    monkeypatch.setattr(trials, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(trials, "build", slow)
    found = bm.audit(
        {**CONFIG, "rounds": 20}, runs=2, seeds=1, finals=1, minutes=1.0, store=tmp_path / "runs.db", workers=0
    )
    assert now[0] >= 3600.0
    assert found["WeiMean"].worst is not None


def test_a_wrong_f_is_one_that_the_rule_can_run_with() -> None:
    """On the octopus graph an arm has one neighbour, for which IOS allows f = 0 only."""
    octopus = {"name": "paper/octopus"}
    assert _told("one too many", "ios", octopus) == (2, 2, 1, 1, 1, 1, 0, 0, 0, 0)
    assert _told("one too few", "ios", octopus) == (0,) * 10
    assert _told("tolerable", "ios", octopus) == "tolerable" and _told(0, "ios", octopus) == 0


@pytest.mark.usefixtures("planted")
def test_what_a_worker_reaches_alone_stands_beside_the_worst_case(tmp_path: Path) -> None:
    """It is a run in which nobody hears anybody, from the start of the worst case, with the last stage's first seed."""
    found = search(tmp_path / "runs.db")
    worst = found["WeiMean"].worst
    assert worst is not None
    config = {name: value for name, value in worst.trial.config.items() if name != "labels"}
    alone = bm.simulate(**{**config, "rule": "NoComm", "attack": "none"}).final("loss")
    assert found["WeiMean"].alone[worst.trial.start].value == pytest.approx(alone, rel=1e-6)
    assert f"{alone:.2f}" in str(found) and "if every worker trains alone" in verdict_text(found["WeiMean"])
    assert "zero" in found.to_dict()["rules"][0]["alone"]


def test_what_workers_see_on_their_own_data_stands_beside_the_worst_case(tmp_path: Path) -> None:
    """It is measured in the last stage, and equals that of the run that the report names."""
    from tests.simulation.small import config, write_data

    small = config(write_data(tmp_path), rule="weimean", attack="none", rounds=16, dtype="float32")
    found = bm.audit(small, runs=4, seeds=2, store=tmp_path / "runs.db", workers=0)
    verdict = found["WeiMean"]
    worst = verdict.worst
    assert worst is not None and worst.final
    told = {name: value for name, value in worst.trial.config.items() if name != "labels"}
    again = bm.simulate(**{**told, "measure": "own_accuracy"}).final("own_accuracy")
    assert worst.seen[0] == pytest.approx(100 * again) and len(worst.seen) == 2
    alone = bm.simulate(**{**told, "measure": "own_accuracy", "rule": "NoComm", "attack": "none"}).final("own_accuracy")
    assert verdict.alone[worst.trial.start].seen == pytest.approx(100 * alone)
    assert f"on their own data workers see {np.mean(worst.seen):.1f}%, alone {100 * alone:.1f}%" in verdict_text(
        verdict
    )
    assert "on own data" in str(found) and found.to_dict()["rules"][0]["cases"][0]["seen"] == list(worst.seen)
