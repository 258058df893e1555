"""Aggregators with ByzFL's names: against ByzFL itself, and its benchmark's parts with ours in their place."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch

import byzmesh.integrations.byzfl as ours
from byzmesh.errors import ConfigError

THEIRS = ("byzfl.aggregators.aggregators", "byzfl.aggregators.preaggregators")


@pytest.fixture(scope="module")
def byzfl() -> Iterator[Any]:
    """ByzFL itself. Its benchmark imports torchvision and seaborn, of which the aggregators need nothing."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("torchvision", "seaborn"):
            patch.setitem(sys.modules, name, MagicMock())
        import byzfl as theirs

        kept = {module: dict(vars(module)) for module in map(import_module, THEIRS)}
        yield theirs
        for module, names in kept.items():
            vars(module).update(names)
        for name in [name for name in sys.modules if name.split(".")[0] == "byzfl"]:
            del sys.modules[name]


SAME: list[tuple[str, dict[str, Any]]] = [
    ("Average", {}),
    ("Median", {}),
    ("TrMean", {"f": 0}),
    ("TrMean", {"f": 2}),
    ("GeometricMedian", {}),
    ("GeometricMedian", {"nu": 0.5, "T": 7}),
    ("GeometricMedian", {"T": 0}),
    ("Krum", {"f": 0}),
    ("Krum", {"f": 3}),
    ("MultiKrum", {"f": 2}),
    ("CenteredClipping", {"tau": 0.7, "L": 3}),
    ("CenteredClipping", {}),
    ("MDA", {"f": 2}),
    ("MoNNA", {"f": 2, "idx": 3}),
    ("Meamed", {"f": 2}),
    ("NNM", {"f": 2}),
    ("Clipping", {"c": 1.5}),
    ("ARC", {"f": 2}),
]


def given_as(kind: str, rows: np.ndarray) -> Any:
    """A copy of the rows in a form that ByzFL takes."""
    tensor = torch.tensor(rows, dtype=torch.float32)
    return {"array": rows.copy(), "list": list(rows.copy()), "tensor": tensor, "tensors": list(tensor)}[kind]


@pytest.mark.parametrize("kind", ["array", "list", "tensor", "tensors"])
@pytest.mark.parametrize(("name", "settings"), SAME, ids=lambda part: str(part))
def test_the_results_are_byzfls(byzfl: Any, name: str, settings: dict[str, Any], kind: str) -> None:
    mine, theirs = getattr(ours, name)(**settings), getattr(byzfl, name)(**settings)
    for seed in range(3):  # several calls of one object: centred clipping remembers
        for count in (7, 8):
            rows = np.random.default_rng(seed).normal(size=(count, 5))
            found, wanted = mine(given_as(kind, rows)), theirs(given_as(kind, rows))
            assert type(found) is type(wanted) and found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=1e-5 if "tensor" in kind else 1e-9, atol=1e-6)


@pytest.mark.parametrize("name", ["CAF", "SMEA"])
def test_exact_eigenvectors_reject_what_byzfls_do(byzfl: Any, name: str) -> None:
    """ByzFL's direction is random, so only where one direction dominates are the two the same."""
    rows = np.random.default_rng(0).normal(size=(7, 4)) * 1e-3
    rows[2, 1] += 50.0
    found = getattr(ours, name)(1)(rows)
    np.testing.assert_allclose(found, getattr(byzfl, name)(1)(rows), atol=2e-3)
    np.testing.assert_allclose(found, 0.0, atol=2e-3)


def test_bucketing_draws_as_byzfl_does(byzfl: Any) -> None:
    rows = np.random.default_rng(0).normal(size=(7, 3))
    for size in (1, 2, 3, 7, 9):
        np.random.seed(size)
        found = ours.Bucketing(size)(rows)
        np.random.seed(size)
        np.testing.assert_allclose(found, byzfl.Bucketing(size)(rows))
        torch.manual_seed(size)
        tensor = ours.Bucketing(size)(torch.tensor(rows))
        torch.manual_seed(size)
        np.testing.assert_allclose(tensor, byzfl.Bucketing(size)(torch.tensor(rows)), rtol=1e-6)


@pytest.mark.parametrize("name", ["IOS", "LazyIOS", "Reprieve", "Tether", "Bulyan", "Phocas", *dict(SAME[10:15])])
def test_lies_that_are_far_or_not_finite_change_little(name: str) -> None:
    settings = {} if name == "CenteredClipping" else {"f": 2}
    rows = np.random.default_rng(5).normal(size=(13, 4))
    before = rows.copy()
    honest = getattr(ours, name)(**settings)(rows)
    for lie in (1e30, np.nan, np.inf):
        bad = rows.copy()
        bad[4], bad[7] = lie, -lie
        found = getattr(ours, name)(**settings)(bad)
        limit = 31.0 if name == "CenteredClipping" else 1.5  # its radius is 100: two lies of thirteen
        assert np.linalg.norm(found - honest) < limit, (name, lie)
    assert np.array_equal(rows, before)


def test_what_is_not_finite_is_one_of_the_f() -> None:
    assert ours.TrMean(1)(np.array([[np.nan], [1.0], [2.0], [6.0]])) == pytest.approx(3.0)
    assert ours.MoNNA(1, idx=1)(np.array([[np.inf], [1.0], [2.0], [6.0]])) == pytest.approx(3.0)


def test_byzfls_pipeline_builds_ours_from_its_config(byzfl: Any) -> None:
    """One import changed: ByzFL's own pipeline, and what else it has, with our classes."""
    before = [{"name": name, "parameters": {"f": 1}} for name in ("NNM", "ARC")]
    pipeline = ours.RobustAggregator({"name": "IOS", "parameters": {"f": 1}}, before)
    assert type(pipeline.aggregator) is ours.IOS
    assert [type(step) for step in pipeline.pre_agg_list] == [ours.NNM, ours.ARC]
    rows = [torch.tensor(row) for row in np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)]
    assert pipeline.aggregate_vectors(rows).shape == (3,)
    assert ours.SignFlipping is byzfl.SignFlipping
    with pytest.raises(AttributeError, match=r"neither byzmesh\.integrations\.byzfl nor byzfl has 'nothing'"):
        _ = ours.nothing


def test_mistakes_are_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="Krum: f must be less than half of the 3 vectors, got 2"):
        ours.Krum(2)(np.eye(3))
    with pytest.raises(ConfigError, match="TrMean: f must be a whole number of at least 0, got -1"):
        ours.TrMean(-1)
    with pytest.raises(ConfigError, match=r"\(n, D\)"):
        ours.Median()(np.zeros((2, 2, 2)))
    with pytest.raises(ConfigError, match="none of the 2 vectors is finite"):
        ours.Average()(np.full((2, 2), np.nan))
    monkeypatch.setitem(sys.modules, "byzfl", None)
    with pytest.raises(AttributeError, match=r"pip install 'byzmesh\[byzfl\]'"):
        _ = ours.run_benchmark
