"""How far apart the honest models are: two norms of the same variances.

With var_d the population variance of coordinate d over the honest models (N, D):

    consensus_error  CE = sqrt(sum_d var_d^2)                        the published column
    disagreement     H  = sum_d var_d = (1/N) sum_n ||x_n - mean||^2  the text's definition;  CE <= H <= sqrt(D) CE

Both come from one pass over the models, in float64, that centres before it squares: near consensus the differences are
1e-4 of the norms and their squares 1e-8.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from byzmesh.compiled import fast

_BLOCK = 512  # coordinates at a time: their accumulators stay in the L1 cache


def spread(models: npt.NDArray[Any]) -> tuple[float, float]:
    """(CE, H) of the honest models (N, D).

    >>> spread(np.array([[0.0, 1.0], [2.0, 1.0]]))
    (1.0, 1.0)
    """
    squares, total = _spread(models)
    return float(np.sqrt(squares)), float(total)


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
