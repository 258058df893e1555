"""A small data set and small runs for tests of the engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import byzmesh as bm


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


def equal_when_resumed(given: dict[str, Any], path: Path, *, evaluated: int, more: int) -> None:
    """A run that stops so many rounds after an evaluation and goes on from its checkpoint equals one that does not."""
    whole = bm.simulate(**given)
    first = bm.prepare(**given)
    for record in first:
        if record["round"] == evaluated:
            break
    for _ in range(more):
        first.step()
    first.save(path)
    second = bm.prepare(**given)
    second.restore(path)
    rest = second.run()
    assert rest.models.tobytes() == whole.models.tobytes()
    for name, values in whole.metrics.items():
        assert rest.metrics[name].tobytes() == values.tobytes()
    if whole.edges is not None:
        assert rest.edges is not None
        np.testing.assert_array_equal(rest.edges.counts, whole.edges.counts)
        assert rest.edges.trust.tobytes() == whole.edges.trust.tobytes()
