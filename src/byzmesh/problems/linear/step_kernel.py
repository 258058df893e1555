"""The plain half steps of softmax regression from a round's number alone, as a kernel: draw the batches, descend."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from byzmesh.compiled import exact
from byzmesh.problems.data.split import fill_batches


@cache
def softmax_steps(descend: Any) -> Any:
    """The kernel of a `StepKernel`, made of one that descends on given batches (`sparse.lane_kernel`)."""

    @exact
    def half_steps(
        data: Any, rows: Any, round: Any, keep: Any, step: Any, models: Any, resting: Any, out: Any, peak: Any
    ) -> None:
        drawn, stored, batch, classes = data
        key, order, start, honest, mirror, target, way = drawn
        first, column, value, table, offset = stored
        picks, labels = np.empty((rows.size, batch), np.int64), np.empty((rows.size, batch), target.dtype)
        fill_batches(key, rows, round, order, start, honest, mirror, target, way, picks, labels)
        scores, kind = np.empty((rows.size, batch, classes), models.dtype), models.dtype.type
        size, kept = kind(step), kind(keep)
        descend(
            first, column, value, table, offset, picks, labels, models, scores, kept, size, out, peak, resting
        )  # fmt: skip

    return half_steps
