"""The candidates of reports/audit/candidates.py are what their names say."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byzmesh as bm

SCRIPT = Path(__file__).parents[3] / "reports/audit/candidates.py"


@pytest.fixture(scope="module")
def candidates() -> Any:
    spec = importlib.util.spec_from_file_location("audit_candidates", SCRIPT)
    assert spec and spec.loader
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def quadratics(**more: Any) -> Any:
    problem = {"name": "quadratic", "dimension": 3, "targets": "normal", "init": "zero"}
    told: dict[str, Any] = {"rule": "WeiMean", "attack": "none", "rounds": 300, "step": 0.1, "dtype": "float64"}
    told |= {"network": "paper/two-castle", "problem": problem, "local": {"decay": 0.0}}
    return bm.prepare(**told | more)


def test_tracking_with_the_plain_mean_ends_at_the_optimum_where_plain_steps_do_not(candidates: Any) -> None:
    plain = quadratics()
    best = plain.task.targets.mean(axis=0)
    assert np.abs(candidates.tracked(plain).models - best).max() < 1e-12
    plain.run()
    assert np.abs(plain.models - best).max() > 1e-3


def test_trackers_of_the_plain_mean_add_up_to_the_gradients(candidates: Any) -> None:
    """What gradient tracking lives on, and what lies about trackers take away: their mean is that of the gradients."""

    def gap(attack: Any) -> float:
        models = candidates.tracked(quadratics(attack=attack, rounds=30))
        sent, task = models.task.trackers.half, models.task
        return float(np.abs(sent.mean(axis=0) - task.trackers.task.former.mean(axis=0)).max())

    assert gap("none") < 1e-12
    assert gap("sign-flipping") > 0.1


@pytest.mark.parametrize(("r", "same"), [(1e9, True), (1e-3, False)])
def test_steps_shrink_only_while_the_rule_moves_workers_farther_than_r(candidates: Any, r: float, same: bool) -> None:
    plain = quadratics(rounds=20)
    shrunk = candidates.shrunk(plain, r=r)
    plain.run()
    assert np.allclose(shrunk.models, plain.models, atol=1e-12) == same


def test_reprieve_by_quantile_is_the_mean_at_one_and_takes_nobody_back_beyond_its_quantile(candidates: Any) -> None:
    square = [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-9.0, -9.0]]
    own = [0.0, 0.0]

    def out(q: float) -> Any:
        return bm.aggregate(candidates.reprieve_by_quantile(q), own, square, f=1)

    assert np.allclose(out(1.0), bm.aggregate("mean", own, square))
    assert np.allclose(out(0.75), bm.aggregate("IOS", own, square, f=1))
    square[3] = [-1.0, -1.0]  # no farther than others
    assert np.allclose(out(1.0), 0.0)
