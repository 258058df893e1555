"""A small data set and small runs for tests of the engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def write_data(folder: Path) -> Path:
    """Four noisy classes in eight dimensions: 400 training and 80 test samples."""
    random = np.random.default_rng(5)
    centres = random.normal(size=(4, 8)) * 2.0
    labels = np.arange(480) % 4
    features = (centres[labels] + random.normal(size=(480, 8))).astype(np.float32)
    path = folder / "small.npz"
    np.savez(path, train_x=features[:400], train_y=labels[:400], test_x=features[400:], test_y=labels[400:])
    return path


def config(data: Path, **more: Any) -> dict[str, Any]:
    """A short run on the small data over the two-castle graph."""
    base: dict[str, Any] = {
        "problem": {"name": "softmax", "dataset": str(data), "partition": "iid", "batch": 8},
        "network": "paper/two-castle",
        "rule": "ios",
        "attack": "sign-flipping",
        "rounds": 12,
        "evaluate_every": 4,
        "dtype": "float64",
        "step": 0.1,
    }
    return {**base, **more}
