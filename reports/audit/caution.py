"""The partition of caution.yaml: three workers have a digit of their own each, the others share the rest."""

from __future__ import annotations

from typing import Any

import numpy as np

import byzmesh as bm


@bm.register_partition("three-apart")
def three_apart() -> Any:
    """Workers 0, 1 and 2 have the digits 7, 8 and 9, the others equal parts of the rest, shuffled."""

    def split(labels: Any, workers: int, generator: np.random.Generator) -> Any:
        common = np.array_split(generator.permutation(np.flatnonzero(labels < 7)), workers - 3)
        return [*(np.flatnonzero(labels == digit) for digit in (7, 8, 9)), *common]

    return split
