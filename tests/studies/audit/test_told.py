"""What a report says is what was run: how long nobody lied, which f was wrong, and why nothing was found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import byzmesh as bm
from byzmesh.errors import ConfigError
from byzmesh.studies.audit import lies
from byzmesh.studies.audit.fault_bound import _told
from byzmesh.studies.audit.tables import verdict_grid, verdict_text, without_case
from byzmesh.studies.audit.trials import QUIET

CONFIG: dict[str, Any] = {
    "problem": {"name": "noisy-quadratic", "dimension": 2},
    "network": {"name": "complete", "n": 6, "byzantine": [5]},
    "rule": "IOS",
    "rounds": 160,
}
BUDGET: dict[str, Any] = {"runs": 3, "seeds": 1, "finals": 1, "workers": 0}


@pytest.fixture(autouse=True)
def one_family(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lies, "FAMILIES", {"sign-flipping": lies.FAMILIES["sign-flipping"]})


def test_a_run_without_liars_that_is_shorter_than_the_worst_case_says_so(tmp_path: Path) -> None:
    """If the time is over before the last run in which nobody lies, that of the third stage stands in for it."""
    found = bm.audit(CONFIG, store=tmp_path / "runs.db", starts="zero", **BUDGET)
    (verdict,) = found.verdicts
    assert verdict.worst is not None and verdict.worst.trial.rounds == 160
    assert "seed" not in verdict_text(verdict) and "(80 rounds" not in str(verdict_grid(found))
    cut = replace(verdict, quiet={t.start: t for t in verdict.trials if t.lie is QUIET and t.stage < 4})
    assert "if nobody lies (80 rounds, seed 0)" in verdict_text(cut)
    assert "(80 rounds, seed 0)" in str(replace(found, verdicts=(cut,)))


def test_an_f_that_is_not_wrong_is_not_called_wrong(tmp_path: Path) -> None:
    """With five neighbours IOS takes f up to 4: where four lie, nobody can be told five."""
    many = {"name": "complete", "n": 6, "byzantine": [1, 2, 3, 4]}
    assert _told("one too few", "ios", many) == (3, 3)
    assert _told("one too many", "ios", many) is None
    crowded = {"name": "complete", "n": 4, "byzantine": [1, 2, 3]}
    assert _told("one too many", "ios", crowded) is None and _told("one too few", "ios", crowded) == (2,)
    spared = {"edges": [[0, 1], [1, 2], [2, 0], [3, 4]], "byzantine": [3, 4]}
    assert _told("one too few", "ios", spared) is None and _told("one too many", "ios", spared) == (1, 1, 1)
    found = bm.audit({**CONFIG, "network": spared, "rounds": 20}, store=tmp_path / "runs.db", **BUDGET)
    assert (True, "one too many") in found["IOS"].bounds and (True, "one too few") not in found["IOS"].bounds
    assert "nan" not in str(found)


def test_that_nobody_lying_failed_is_no_reason_if_nobody_lied(tmp_path: Path) -> None:
    """f = 2 may be too much for the graph without liars: what was missing is time."""
    verdict = bm.audit(CONFIG, store=tmp_path / "runs.db", total_rounds=1, **BUDGET)["IOS"]
    failed = replace(verdict, failures=(f"{QUIET.name}: f = 2 is infeasible",))
    assert without_case(failed) == without_case(verdict) and "give it more" in without_case(verdict)
    assert without_case(replace(verdict, failures=("ALIE 3: out of order",))).startswith("all 1 runs failed: ALIE 3")


def test_one_rule_and_one_start_may_be_given_as_they_are(tmp_path: Path) -> None:
    for rule in ("TriMean", {"name": "TriMean"}, bm.rule("TriMean")):
        found = bm.audit({**CONFIG, "rounds": 20}, rules=rule, starts="zero", store=tmp_path / "runs.db", **BUDGET)
        assert [verdict.rule for verdict in found.verdicts] == ["TriMean"]
        assert {trial.start for trial in found["TriMean"].trials} == {"zero"}


@pytest.mark.parametrize("where", ["config", "argument"])
def test_more_rounds_than_can_be_counted_are_a_mistake(where: str, tmp_path: Path) -> None:
    many = {"rounds": 10**20}
    given, more = ({**CONFIG, **many}, BUDGET) if where == "config" else (CONFIG, {**BUDGET, **many})
    with pytest.raises(ConfigError, match="rounds must be a whole number from 1 to 9007199254740992"):
        bm.audit(given, store=tmp_path / "runs.db", total_rounds=1, **more)
