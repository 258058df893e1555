"""ALIE's factor and its edges: too many liars, too few honest neighbours, models near consensus."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from byzmesh.attacks import attack
from byzmesh.attacks.parts import BLOCK
from byzmesh.attacks.spread import largest_hidden_shift
from byzmesh.errors import ConfigError
from tests.attacks.scenes import frozen_models, make_world, two_castle
from tests.attacks.test_oracles import forge


def factor(honest: int, lying: int) -> float:
    return float(largest_hidden_shift(np.array([honest]), np.array([lying]))[0])


def test_factor_of_the_formula() -> None:
    assert factor(8, 2) == pytest.approx(norm.ppf(7 / 10))  # s = 5 - 2
    assert factor(9, 1) == pytest.approx(norm.ppf(6 / 10))  # s = 5 - 1
    assert factor(5, 2) == pytest.approx(norm.ppf(5 / 7))  # s = 4 - 2


def test_factor_without_needed_support_is_the_largest_of_the_formula() -> None:
    for honest, lying in [(4, 4), (3, 4), (2, 9)]:
        d = honest + lying
        assert (d + 1) // 2 - lying <= 0
        assert factor(honest, lying) == pytest.approx(norm.ppf((d - 1) / d))


@given(honest=st.integers(0, 40), lying=st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_factor_is_finite_and_positive_where_there_is_spread(honest: int, lying: int) -> None:
    z = factor(honest, lying)
    assert np.isfinite(z)
    assert z > 0 if honest >= 2 else z == 0


@pytest.mark.parametrize("z", [None, 5.0])
def test_one_honest_neighbour_is_copied(z: float | None) -> None:
    world = make_world(~np.eye(4, dtype=bool), [0, 1])
    models = frozen_models(world, 7)
    forged = forge(attack("ALIE", z=z), world, models)
    np.testing.assert_array_equal(forged[0, 2], models[1])
    np.testing.assert_array_equal(forged[1, 3], models[0])


def test_zero_factor_is_the_mean_and_identical_models_have_no_spread() -> None:
    world = two_castle()
    models = np.broadcast_to(np.arange(5, dtype=np.float32), (10, 5))
    np.testing.assert_allclose(forge(attack("ALIE"), world, models).dense(), models, rtol=1e-6)
    other = frozen_models(world, 5)
    plain = forge(attack("gaussian", std=0.0, mean="plain"), world, other)
    still = forge(attack("ALIE", z=0.0), world, other)
    for b, n in world.pairs():
        np.testing.assert_allclose(still[b, n], plain[b, n])


def test_victims_liars_share_one_row() -> None:
    world = two_castle()
    forged = forge(attack("ALIE"), world, frozen_models(world, 4))
    assert len(forged.rows) == len(world.honest) < len(forged)


@pytest.mark.parametrize("dimension", [BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5])
def test_near_consensus_in_float32(dimension: int) -> None:
    """Spread of 1e-5 of the size: the shift, not only the message, is as in float64 on the same numbers."""
    world = two_castle()
    generator = np.random.default_rng(dimension)
    point = 100 * generator.normal(size=dimension)
    models = (point + 1e-5 * np.abs(point) * generator.normal(size=(10, dimension))).astype(np.float32)
    wanted = forge(attack("ALIE", z=1000.0), world, models.astype(np.float64)).dense() - point
    got = forge(attack("ALIE", z=1000.0), world, models).dense().astype(np.float64) - point
    np.testing.assert_allclose(got, wanted, rtol=2e-2, atol=1e-4)
    assert np.linalg.norm(got - wanted) < 5e-3 * np.linalg.norm(wanted)


def test_strided_models_are_read_right() -> None:
    world = two_castle()
    wide = frozen_models(world, 40)
    sparse = wide[:, ::2]
    np.testing.assert_array_equal(
        forge(attack("ALIE"), world, sparse).dense(), forge(attack("ALIE"), world, sparse.copy()).dense()
    )


@pytest.mark.parametrize("z", [float("inf"), float("nan"), "large", True])
def test_bad_factor(z: object) -> None:
    with pytest.raises(ConfigError, match="attack ALIE: z must be a finite number"):
        attack("ALIE", z=z)
