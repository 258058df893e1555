"""What an audit says of runs that diverged, were shorter or never run, and of liars who say nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byzmesh as bm
from byzmesh.errors import ConfigError
from byzmesh.rules.base import rules
from byzmesh.studies.audit.tables import trust_grid, verdict_text
from byzmesh.studies.audit.verdicts import Audit
from tests.simulation.small import config as small
from tests.simulation.small import write_data

QUADRATIC: dict[str, Any] = {
    "problem": {"name": "noisy-quadratic", "dimension": 2},
    "network": "paper/two-castle",
    "rule": "WeiMean",
    "rounds": 40,
}


def audit(folder: Path, config: dict[str, Any], **more: Any) -> Audit:
    known = {"runs": 1, "seeds": 2, "finals": 1, "starts": ["zero"], "workers": 0, **more}
    return bm.audit(config, store=folder / "runs.db", **known)


@pytest.mark.parametrize("mutant", [False, True])
def test_runs_that_diverged_are_said_to_have(mutant: bool, tmp_path: Path) -> None:
    """Not just called 0%. The mutant: nobody diverges, and nobody is said to."""
    attack = "sign-flipping" if mutant else "huge"
    more = {"attack": attack, "step": 0.01 if mutant else 1e30, "dtype": "float32"}
    found = audit(tmp_path, small(write_data(tmp_path), rule="weimean", rounds=16, **more))
    worst = found["WeiMean"].worst
    assert worst is not None and worst.diverged == (0 if mutant else 2)
    told = found.to_dict()["rules"][0]
    assert told["cases"][0]["diverged"] == worst.diverged and told["quiet"]["zero"]["diverged"] != mutant
    said = [
        "2 diverged",
        "A run that diverged has accuracy 0",
        "(2 of 2 runs diverged); it diverges if nobody lies, too",
    ]
    text = str(found) + verdict_text(found["WeiMean"])
    assert [one in text for one in said] == [not mutant] * 3


@pytest.mark.parametrize("enough", [False, True])
def test_a_search_that_was_cut_short_is_no_gate(enough: bool, tmp_path: Path) -> None:
    """Six families were to be tried, one was: that it did little harm says nothing of the others."""
    limit = {} if enough else {"total_rounds": 100}
    found = audit(tmp_path, QUADRATIC, runs=10, seeds=1, at_least=1e9, **limit)
    worst, untried = found["WeiMean"].worst, found["WeiMean"].untried
    assert worst is not None and worst.final and worst.meets(1e9) and found.complete
    assert (found.holds, found.cut_short, untried == ()) == (enough, not enough, enough)
    assert ("Never tried: riding, ascent" in str(found)) != enough
    assert ("over before the search was" in str(found)) != enough
    assert found.to_dict()["rules"][0]["untried"] == list(untried)


def test_no_gate_is_passed_by_a_rule_that_lies_make_fail(tmp_path: Path) -> None:
    with rules.temporary():

        @bm.register_rule("fragile")
        def fragile(own: Any, received: Any, weights: Any, f: int) -> Any:
            """The mean; raises if a message is far."""
            if np.abs(received).max() > 20.0:
                raise RuntimeError("out of order")
            return np.mean([own, *received], axis=0)

        found = audit(tmp_path, {**QUADRATIC, "rule": "fragile"}, runs=15, seeds=1, at_least=1e9)
        worst = found["fragile"].worst
        assert worst is not None and worst.meets(1e9) and found.failures
        assert found.lacking == "runs with liars failed" and not found.holds


def test_the_run_beside_a_worst_case_is_said_to_have_another_seed(tmp_path: Path) -> None:
    """There was no time for nobody lying with the seeds of the last stage."""
    found = audit(tmp_path, QUADRATIC, runs=6, total_rounds=150)
    (quiet,) = found["WeiMean"].quiet.values()
    worst = found["WeiMean"].worst
    assert worst is not None and worst.final and quiet.seed != worst.trial.seed
    assert f"if nobody lies (seed {quiet.seed})" in verdict_text(found["WeiMean"])


def test_liars_who_send_nothing_are_named(tmp_path: Path) -> None:
    found = audit(tmp_path, {**QUADRATIC, "attack": "silent"}, runs=1, seeds=1)
    grid = trust_grid(found, next(case for case in found["WeiMean"].cases if case.trial.lie.attack["name"] == "silent"))
    assert grid is not None
    assert {row[1][0].text for row in grid.rows} <= {
        "nothing came of 7",
        "nothing came of 9",
        "nothing came of 7, nothing came of 9",
    }


def test_a_function_is_told_to_be_registered(tmp_path: Path) -> None:
    def mine(own: Any, received: Any, weights: Any, f: int) -> Any:
        return own

    with pytest.raises(ConfigError, match="got function mine; register it and give its name"):
        audit(tmp_path, QUADRATIC, rules=[mine])
