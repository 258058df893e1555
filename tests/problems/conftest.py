"""Fixtures that the tests of problems share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder for this test alone, not created yet."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("BYZMESH_CACHE", str(folder))
    monkeypatch.delenv("BYZMESH_DATA", raising=False)
    return folder


@pytest.fixture
def small_file(tmp_path: Path) -> Path:
    """A user's data file: 60 + 20 samples of 9 float features in 3 classes."""
    generator = np.random.default_rng(5)
    path = tmp_path / "small.npz"
    np.savez(
        path,
        features=generator.normal(size=(60, 9)),
        labels=np.arange(60) % 3,
        test_features=generator.normal(size=(20, 9)),
        test_labels=generator.integers(0, 3, 20),
    )
    return path
