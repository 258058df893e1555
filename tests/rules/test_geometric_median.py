"""GeoMed is the argmin: checked against the dual of its convex programme, which bounds the distance to the optimum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import byzmesh as bm
from byzmesh.config.schema import resolve
from byzmesh.studies.paper.cells import cells


def excess(point: np.ndarray, vectors: np.ndarray, rounding: float = 1e-9) -> float:
    """An upper bound on the relative excess of the sum of distances over the optimum.

    min_z sum_i ||z - y_i|| = max { -sum_i <u_i, y_i> : sum_i u_i = 0, ||u_i|| <= 1 }: any such u bounds the least from
    below. Here the unit vectors from the y_i to the point, shifted and shrunk to meet the conditions.
    """
    away = point - vectors
    length = np.sqrt((away**2).sum(axis=1))
    there = length <= rounding * length.max()
    units = np.where(there[:, None], 0.0, away / np.where(there, 1.0, length)[:, None])
    if there.any():
        pull = -units.sum(axis=0) / there.sum()
        units[there] = pull / max(1.0, float(np.linalg.norm(pull)))
    units -= units.mean(axis=0)
    units /= max(1.0, float(np.sqrt((units**2).sum(axis=1)).max()))
    total = length.sum()
    return 0.0 if total == 0.0 else float((total - (units * away).sum()) / total)


def points(shape: str, seed: int, count: int, dimension: int) -> np.ndarray:
    """Points in general position, and points on which iterations stopped too early."""
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(count, dimension))
    if shape == "outlier":
        vectors[-1] *= 1e3
    elif shape == "many at one":
        vectors[: count // 2] = vectors[0]
    elif shape == "grid":
        vectors = np.round(vectors)
    elif shape == "mean on a point":
        vectors[0] = vectors[1:].mean(axis=0)
    elif shape == "close pair":
        vectors[1] = vectors[0] + 1e-4 * random.normal(size=dimension)
    elif shape == "line":
        vectors = random.normal(size=(count, 1)) * vectors[0]
    return vectors


@pytest.mark.parametrize(
    "shape", ["general", "outlier", "many at one", "grid", "mean on a point", "close pair", "line"]
)
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(2, 14),
    dimension=st.sampled_from([1, 2, 3, 10, 60]),
    exponent=st.integers(-6, 6),
)
def test_no_point_is_better(shape: str, seed: int, count: int, dimension: int, exponent: int) -> None:
    vectors = points(shape, seed, count, dimension) * 10.0**exponent
    assert excess(bm.aggregate("geomed", vectors[0], vectors[1:]), vectors) <= 2e-5
    single: np.ndarray = vectors.astype(np.float32)
    assert excess(bm.aggregate("geomed", single[0], single[1:]).astype(float), single.astype(float), 1e-5) <= 2e-3


def test_the_mean_on_a_data_point_is_left() -> None:
    """Weiszfeld's iteration stays there: 80.5 where 64.5 is possible."""
    received = np.array([[30.0, 1.0], [-10.0, 1.0], [-10.0, -1.0], [-10.0, -1.0]])
    published = bm.aggregate("geomed", np.zeros(2), received, steps=80)
    vectors = np.vstack([np.zeros((1, 2)), received])
    assert excess(published, vectors) > 0.1
    assert excess(bm.aggregate("geomed", np.zeros(2), received), vectors) < 1e-6


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0, 1e3, 1e6])
def test_the_scale_of_the_models_does_not_matter(scale: float) -> None:
    vectors = np.random.default_rng(3).normal(size=(7, 4)) + 2.0
    want = bm.aggregate("geomed", vectors[0], vectors[1:])
    got = bm.aggregate("geomed", scale * vectors[0], scale * vectors[1:]) / scale
    np.testing.assert_allclose(got, want, rtol=1e-9)


def test_a_worker_with_one_neighbour_meets_it_in_the_middle() -> None:
    np.testing.assert_allclose(bm.aggregate("geomed", np.array([0.0, 2.0]), [[4.0, 0.0]]), [2.0, 1.0])


def test_published_runs_keep_their_config() -> None:
    """The key of a run is the hash of its config: the paper's cells are known by this one."""
    published = {"name": "GeoMed", "steps": 80, "tolerance": 1e-05}
    assert resolve({"network": "paper/two-castle", "rule": "geomed", "profile": "paper"})["rule"] == published
    assert resolve({"network": "paper/two-castle", "rule": "geomed"})["rule"]["steps"] is None
    named = [
        cell.config["rule"]
        for target in ("table-3", "examples")
        for cell in cells(target)
        if cell.labels["rule"] == "GeoMed"
    ]
    assert named == [published] * 7
