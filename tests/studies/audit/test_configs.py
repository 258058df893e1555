"""Configs of all kinds can be audited: modules, parts as objects, data by site, rules that share a name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import byzmesh as bm
from byzmesh.errors import ConfigError
from byzmesh.rules.base import rules
from byzmesh.studies.audit import lies
from byzmesh.studies.audit.lies import starts_of
from byzmesh.studies.audit.trials import QUIET
from byzmesh.studies.audit.verdicts import Audit, Verdict

CONFIG: dict[str, Any] = {
    "problem": {"name": "noisy-quadratic", "dimension": 2},
    "network": {"name": "complete", "n": 6, "byzantine": [5]},
    "rule": "IOS",
    "rounds": 20,
}


ALL = lies.FAMILIES


@pytest.fixture(autouse=True)
def one_family(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lies, "FAMILIES", {"sign-flipping": ALL["sign-flipping"]})


@pytest.fixture
def data(tmp_path: Path) -> str:
    """Three classes of points, 120 in all."""
    labels = np.arange(120) % 3
    np.savez(tmp_path / "tiny.npz", features=np.eye(3)[labels] + 0.1, labels=labels)
    return str(tmp_path / "tiny.npz")


def audit(tmp_path: Path, config: dict[str, Any], **more: Any) -> Audit:
    known = {"runs": 5, "seeds": 1, "finals": 1, "workers": 0, **more}
    return bm.audit({**CONFIG, **config}, store=tmp_path / "runs.db", **known)


def begun(verdict: Verdict) -> set[str]:
    return {trial.start for trial in verdict.trials if trial.lie is not QUIET}


def check_repeated(found: Audit, folder: Path, metric: str) -> None:
    """The files of the worst cases, one per rule, give what was found."""
    written = [path for path in found.write(folder) if path.name.startswith("worst-")]
    assert len(set(written)) == len(found.verdicts)
    for path, verdict in zip(written, found.verdicts, strict=True):
        assert verdict.worst is not None
        unit = 100.0 if metric == "accuracy" else 1.0
        again = bm.simulate(**yaml.safe_load(path.read_text())).final(metric)
        assert unit * again == pytest.approx(verdict.worst.values[0], rel=1e-6)


def test_a_module_is_audited_from_its_own_kinds_of_start(data: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    problem = {"name": "torch", "module": "linear", "dataset": data, "batch": 4}
    found = audit(tmp_path, {"problem": problem}, runs=10)
    assert begun(found["IOS"]) == {"common", "own"} and found.complete
    assert found.limit.classifies and found.limit.zeta > 0.0 and found.limit.initial > 0.0
    check_repeated(found, tmp_path / "out", "accuracy")
    with pytest.raises(ConfigError, match="a start of an audit must be common or own, got 'zero'"):
        audit(tmp_path, {"problem": problem}, starts=["zero"])


def test_a_start_that_only_this_problem_has_is_tried_and_is_that_of_the_config_s_attack(tmp_path: Path) -> None:
    problem = {"name": "quadratic", "targets": "normal", "init": "targets"}
    assert starts_of(problem) == ("zero", "common", "normal", "targets")
    found = audit(tmp_path, {"problem": problem, "attack": {"name": "gaussian", "std": 1e-3}})
    assert ("the config's gaussian 0.001", "targets") in {
        (case.trial.lie.name, case.trial.start) for case in found["IOS"].cases
    }


def test_a_problem_that_cannot_be_built_is_told_as_such() -> None:
    with pytest.raises(ConfigError, match="init must be"):
        starts_of({"name": "quadratic", "init": "nowhere"})
    with pytest.raises(ConfigError, match="init must be"):
        bm.audit({**CONFIG, "problem": {"name": "quadratic", "init": "nowhere"}}, starts=["zero"])


def test_parts_may_be_objects_and_keys_null(tmp_path: Path) -> None:
    named = {"problem": CONFIG["problem"], "rule": {"name": "CC", "tau": 0.5}, "attack": {"name": "ALIE", "z": 2.0}}
    made: dict[str, Any] = {
        "problem": bm.problem("noisy-quadratic", dimension=2),
        "rule": bm.rule("CC", tau=0.5),
        "attack": bm.attack("ALIE", z=2.0),
    }
    assert audit(tmp_path, made).to_dict() == audit(tmp_path, named).to_dict()
    assert audit(tmp_path, {"rule": None, "attack": None})["IOS"].worst is not None


def test_data_that_are_divided_among_all_sites(data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for the lies that train a model on flipped labels."""
    monkeypatch.setattr(lies, "FAMILIES", {"target": ALL["target"]})
    problem = {"name": "softmax", "dataset": data, "batch": 4, "init": "zero"}
    sized = {**problem, "partition": {"name": "sizes", "shares": [1, 2, 3, 4, 5, 6]}}
    config = {"problem": sized, "network": {"name": "complete", "n": 6, "byzantine": [0]}}
    found = audit(tmp_path, config, runs=1, starts=["zero"])
    assert not found.failures and found.complete
    by_samples = audit(tmp_path, {**config, "objective": "samples"}, runs=1, starts=["zero"])
    assert found.limit.b == pytest.approx(1 / 6) and by_samples.limit.b < 0.1, "the liar has 1 of 21 parts of the data"
    assert np.isnan(by_samples.limit.zeta), "proved where workers count the same"


def test_rules_that_share_a_name_are_told_apart_and_each_has_its_files(tmp_path: Path) -> None:
    """Both minus and point are no part of a file's name."""
    with rules.temporary():

        @bm.register_rule("pull")
        def pull(a: float = 0.0) -> bm.Rule:
            """A step of length a towards the mean of all others."""

            def apply(inbox: bm.Inbox, state: Any) -> Any:
                own = inbox.pool.own
                models = own + own.dtype.type(a) * (own.mean(axis=0) - own)
                return bm.Outcome(models=models, kept=np.ones(len(inbox.index), bool)), state

            return bm.Rule("pull", apply, options={"a": a})

        specs = [{"name": "pull", "a": 0.1}, {"name": "pull", "a": -0.1}, "pull", "ios", "IOS"]
        found = audit(tmp_path, {}, rules=specs, runs=1, starts=["zero"])
        assert [one.rule for one in found.verdicts] == ["pull(a=0.1)", "pull(a=-0.1)", "pull", "IOS"]
        check_repeated(found, tmp_path / "out", "loss")
        page = (tmp_path / "out" / "audit.html").read_text()
        assert all(
            f"byzmesh run worst-{name}.yaml" in page for name in ("pull-a-0-1--1", "pull-a-0-1--2", "pull", "ios")
        )


def test_a_config_without_rounds_or_whose_attack_cannot_be_told_is_a_mistake(tmp_path: Path) -> None:
    """Not a search that finds nothing."""
    with pytest.raises(ConfigError, match="rounds must be a whole number from 1 to 9007199254740992, got 0"):
        audit(tmp_path, {"rounds": 0})
    with pytest.raises(ConfigError, match="attack backdoor needs images, problem noisy-quadratic has none"):
        audit(tmp_path, {"attack": "backdoor"})


def test_a_damage_that_is_not_known_is_an_empty_cell(tmp_path: Path) -> None:
    """Without the liar every worker has two neighbours, too few for f = 1."""
    config = {"network": {"name": "complete", "n": 4, "byzantine": [3]}, "rule": "TriMean", "f": 1}
    found = audit(tmp_path, config, starts=["zero"])
    assert found["TriMean"].worst is not None and found["TriMean"].quiet == {}
    written = {path.name: path.read_text() for path in found.write(tmp_path / "out") if path.suffix != ".png"}
    assert ">nan<" not in written["audit.html"]
    assert json.loads(written["audit.json"])["rules"][0]["trials"][0]["damage"] is None
