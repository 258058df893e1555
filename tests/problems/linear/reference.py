"""Linear models one worker at a time, by the formulas, and tasks bound for tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from byzmesh.problems import Dataset, problem
from byzmesh.problems.linear.task import LinearTask


def reference(name: str, x: np.ndarray, labels: np.ndarray, model: np.ndarray) -> tuple[np.ndarray, float]:
    """Gradient and loss of one batch, by the formulas."""
    outputs = len(model) // (x.shape[1] + 1)
    inputs = np.hstack([x, np.ones((len(x), 1))])
    scores = inputs @ model.reshape(-1, outputs)
    if name == "softmax":
        logs = scores - scores.max(axis=1, keepdims=True)
        logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
        delta, loss = np.exp(logs) - np.eye(outputs)[labels], -logs[np.arange(len(x)), labels].mean()
    elif name == "logistic":
        y = labels[:, None]
        delta, loss = 1 / (1 + np.exp(-scores)) - y, np.mean(np.logaddexp(0, scores) - y * scores)
    else:
        delta, loss = scores - labels[:, None], 0.5 * np.mean((scores - labels[:, None]) ** 2)
    return (inputs.T @ delta / len(x)).ravel(), float(loss)


def bound(name: str, options: dict[str, Any], **given: Any) -> LinearTask:
    task = problem(name, **options).bind(**given)
    assert isinstance(task, LinearTask)
    return task


def dense_inputs(data: Dataset, picks: np.ndarray, part: str = "train") -> np.ndarray:
    """The scaled features of samples in float64."""
    x = data.train_x if part == "train" else data.test_x
    return np.asarray(data.scale * x[picks].astype(np.float64) + data.offset)
