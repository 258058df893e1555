"""What is recorded at an evaluation.

With var_d the population variance of coordinate d over the honest models (N, D):

    consensus_error  CE = sqrt(sum_d var_d^2)                        the published column
    disagreement     H  = sum_d var_d = (1/N) sum_n ||x_n - mean||^2  the text's definition;  CE <= H <= sqrt(D) CE

Both come from one pass over the models that centres before it squares, in float64: near consensus the differences are
1e-4 of the norms and their squares 1e-8.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from byzmesh.compiled import fast

_BLOCK = 512  # coordinates at a time: their accumulators stay in the first-level cache


def spread(models: npt.NDArray[Any]) -> tuple[float, float]:
    """(CE, H) of the honest models (N, D).

    >>> spread(np.array([[0.0, 1.0], [2.0, 1.0]]))
    (1.0, 1.0)
    """
    squares, total = _spread(models)
    return float(np.sqrt(squares)), float(total)


def consensus_error(models: npt.NDArray[Any]) -> float:
    """CE: Euclidean norm of the vector of per-coordinate variances of the honest models (N, D)."""
    return spread(models)[0]


def disagreement(models: npt.NDArray[Any]) -> float:
    """H: mean squared distance of the honest models (N, D) to their mean."""
    return spread(models)[1]


def summarise(measures: Mapping[str, npt.NDArray[np.float64]], models: npt.NDArray[Any]) -> dict[str, float]:
    """The numbers of one evaluation from a task's measures of the honest models (N, D).

    >>> task_measures = {"accuracy": np.array([0.5, 0.9]), "loss": np.array([1.0, 2.0])}
    >>> summary = summarise(task_measures, np.zeros((2, 3)))
    >>> summary["accuracy"], summary["worst_accuracy"], summary["loss"], summary["consensus_error"]
    (0.7, 0.5, 1.5, 0.0)
    """
    error, gap = spread(models)
    summary = {name: float(np.mean(values)) for name, values in measures.items()}
    if "accuracy" in measures:
        summary["worst_accuracy"] = float(np.min(measures["accuracy"]))
    return summary | {"consensus_error": error, "disagreement": gap}


@fast
def _spread(models: Any) -> Any:
    """(sum of squared variances, sum of variances)."""
    workers, dimension = models.shape
    mean, variance = np.empty(_BLOCK), np.empty(_BLOCK)
    squares, total = 0.0, 0.0
    for first in range(0, dimension, _BLOCK):
        count = min(_BLOCK, dimension - first)
        mean[:] = 0.0
        variance[:] = 0.0
        for n in range(workers):
            row = models[n, first : first + count]
            for d in range(count):
                mean[d] += row[d]
        for d in range(count):
            mean[d] /= workers
        for n in range(workers):
            row = models[n, first : first + count]
            for d in range(count):
                gap = row[d] - mean[d]
                variance[d] += gap * gap
        for d in range(count):
            value = variance[d] / workers
            squares += value * value
            total += value
    return squares, total
