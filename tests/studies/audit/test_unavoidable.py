"""The lower bound, by the two worlds of its proof."""

from __future__ import annotations

import numpy as np
import pytest

from byzmesh.config.schema import resolve
from byzmesh.studies.audit.unavoidable import lower_bound, unavoidable


@pytest.mark.parametrize(("honest", "liars"), [(10, 2), (7, 1), (5, 4)])
def test_no_point_is_good_in_both_worlds(honest: int, liars: int) -> None:
    """Whatever x an algorithm returns, in one of the worlds its squared gradient is at least the bound."""
    first = np.array([1.0] * liars + [0.0] * (honest - liars))
    second = np.zeros(honest)
    zeta = float(np.sqrt(np.mean((first - first.mean()) ** 2)))
    bound = lower_bound(honest, liars, zeta)
    worst = min(max((x - first.mean()) ** 2, (x - second.mean()) ** 2) for x in np.linspace(-1.0, 1.0, 4001))
    assert worst >= bound * (1.0 - 1e-9) and worst == pytest.approx(bound, rel=1e-2), "and the bound is reached"


def test_of_a_config() -> None:
    config = resolve({"problem": {"name": "quadratic", "targets": "normal"}, "network": "paper/two-castle"})
    told = unavoidable(config)
    assert (told.honest, told.liars, round(told.b, 3), round(told.mu_2, 3)) == (10, 2, 0.182, 0.727)
    assert 0.0 < told.zeta <= told.delta_out and told.gradient == pytest.approx(told.zeta**2 / 16)
    assert "NeurIPS 2023" in str(told) and "below mu_2 / 2" in str(told)
