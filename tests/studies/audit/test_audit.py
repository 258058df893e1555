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
from byzmesh.studies.audit import halving, lies
from byzmesh.studies.audit.audit import FRESH, SHORT, Audit, _verdict
from byzmesh.studies.audit.fault_bound import ASKED
from byzmesh.studies.audit.lies import Family, every_lie
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
    assert worst.trial.lie.strength == 5.6, "a strength beyond those listed, found by refining"
    assert [trial.seed for trial in found["WeiMean"].trials if trial.stage == 4 and trial.lie is not halving.QUIET] == [
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
    assert "WeiMean: loss " in page and "under planted 5.6 from the start zero; " in page
    assert "planted 5.6" in page and "NeurIPS 2023" in page and "Damage against strength" in page


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

    def over(search: halving.Search, count: int) -> Any:
        chosen = halving.finalists(search, count)
        now[0] = 3600.0
        return chosen

    monkeypatch.setattr(halving, "time", SimpleNamespace(monotonic=clock))
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
    assert "no time for the last stage" in written["audit.html"].read_text()
    assert json.loads(written["audit.json"].read_text())["rules"][0]["cases"][0]["final"] is False


def test_what_f_costs_is_measured_with_and_without_the_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the five numbers is that of a run of its own; rules that take no f have none."""
    monkeypatch.setattr(lies, "FAMILIES", {"sign-flipping": lies.FAMILIES["sign-flipping"]})
    config = {**CONFIG, "rule": "IOS", "rounds": 40, "b": 0.2}
    found = bm.audit(config, rules=["IOS", "WeiMean"], runs=3, seeds=1, finals=1, store=tmp_path / "runs.db", workers=0)
    worst = found["IOS"].worst
    assert worst is not None and found["WeiMean"].bounds == {}
    same = {name: value for name, value in worst.trial.config.items() if name != "labels"}
    for (lying, f), value in found["IOS"].bounds.items():
        attack = same["attack"] if lying else "none"
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
    assert [line["liars"] for line in found.to_dict()["rules"][0]["trust"]] == [{}] * 5


def test_every_family_before_any_twice() -> None:
    names = [lie.family for lie in every_lie()]
    first = len(lies.FAMILIES)
    assert len(set(names[:first])) == first and len(names) > 2 * first
    for lie in every_lie():
        assert attacks.canonical(dict(lie.attack))["name"] == attacks.build(dict(lie.attack)).name


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
    asked: list[list[halving.Trial]] = []

    def note(search: halving.Search, trials: list[halving.Trial], until: float) -> list[halving.Trial]:
        asked.append(trials)
        return []

    monkeypatch.setattr(halving.Search, "run", note)
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
    def trial(value: float, status: str = "finished", metric: str = "loss") -> halving.Trial:
        known: dict[str, Any] = {"rule": "IOS", "start": "zero", "seed": 0, "rounds": 9, "key": "", "config": {}}
        return halving.Trial(lie=halving.LOUD, stage=1, value=value, status=status, metric=metric, **known)

    endless, failed = trial(np.inf, "diverged"), trial(np.nan, "failed")
    assert halving._judged(endless, endless).lost > halving._judged(trial(3.0), endless).lost
    assert halving._judged(trial(3.0), failed).lost > halving._judged(trial(2.0), failed).lost
    assert halving._judged(trial(20.0, metric="accuracy"), failed).lost == 0.8
    assert np.isnan(halving._judged(trial(3.0), failed).damage) and np.isnan(halving._judged(trial(3.0), None).lost)


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

    def trial(name: str, stage: int, lost: float) -> halving.Trial:
        lie = lies.Lie(family=name, strength=None, attack={"name": "zero"})
        known: dict[str, Any] = {"rule": "IOS", "start": "zero", "seed": 0, "rounds": 9, "key": "", "config": {}}
        return halving.Trial(lie=lie, stage=stage, lost=lost, **known)

    tried = [trial("strong", 1, 0.9), trial("weak", 1, 0.1), trial("strong", 2, 0.8), trial("new", 2, 0.2)]
    assert [one.lie.name for one in halving.ranked(tried, "IOS")] == ["strong", "new", "weak"]
    quiet = [replace(trial("", stage, 0.0), lie=halving.QUIET, value=10.0 * stage) for stage in (1, 2, 3)]
    found = _verdict("IOS", [], cast(halving.Search, SimpleNamespace(trials=[*tried, *quiet], failures={})))
    assert found.quiet == {"zero": 20.0}, "without liars after as many rounds as the lie that is told"


def test_compiling_does_not_count_as_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A virtual clock that compiling moves by an hour: an audit of a minute still tries what it is asked to."""
    now = [0.0]

    def slow(config: Any) -> Any:
        now[0] += 3600.0
        return build(config)

    monkeypatch.setattr(halving, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(halving, "build", slow)
    found = bm.audit(
        {**CONFIG, "rounds": 20}, runs=2, seeds=1, finals=1, minutes=1.0, store=tmp_path / "runs.db", workers=0
    )
    assert now[0] >= 3600.0
    assert found["WeiMean"].worst is not None
