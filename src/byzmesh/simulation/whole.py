"""Usual rounds as one compiled call each, or several in a row: nothing but arithmetic between two of them.

A round consists of kernels of its parts: half steps (`problems.base.StepKernel`), what a Gram rule sees, its choice
(`rules.base.Choosing.kernel`), the mixture, and the counts of who was trusted. Here they are made into one kernel, in
the order and with the numbers of `Simulation.step` by parts, so that the results are the same bit for bit. It stops
before a round that is not usual (huge or lost models, a rule without an answer), which is then computed by parts.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from byzmesh.compiled import exact
from byzmesh.rules.gram.basis import FAR
from byzmesh.rules.gram.prepared_kernels import blocks, lifted, mixture, usual, weights_alone
from byzmesh.simulation.edges import add_counts


@cache
def rounds_kernel(half_steps: Any, choose: Any) -> Any:
    """rounds(...) -> how many rounds were computed, of as many as there are step sizes.

    data, rows      of the `StepKernel`
    first           number of the first round; step (T,) their step sizes; decay of the weights
    models          (R, D) before the first round; resting (R,) who does nothing in these rounds
    half, peak      (R, D), (R,) become those of the last round
    slots, lies     of the `PreparedGram` (`known`)
    settings        of the `Choosing`
    sums            column, trust, cut and came as in `add_counts`
    chosen, out     (R, K), (R, D) become the coefficients of the last round and the models after it; `out` may be
                    `models`
    """
    chooses = choose is not weights_alone

    @exact
    def rounds(
        data: Any,
        rows: Any,
        first: Any,
        step: Any,
        decay: Any,
        models: Any,
        resting: Any,
        half: Any,
        peak: Any,
        slots: Any,
        lies: Any,
        settings: Any,
        sums: Any,
        chosen: Any,
        out: Any,
    ) -> Any:
        index, weight, present, f, kept, room, tie = slots
        combined, coefficient, messages, message_peak, largest = lies
        column, trust, cut, came = sums
        count, width = index.shape
        size = count + combined.shape[0] + messages.shape[0]
        lift, centre_row = lifted(combined, coefficient, count, size)
        height, none = max(lift.shape[1], size if lift.size == 0 else 0), half[:0]
        inner = np.empty((count, width, width) if chooses else (0, 0, 0))
        current = models
        for k in range(step.size):
            half_steps(data, rows, first + k, 1.0 - decay * step[k], step[k], current, resting, half, peak)
            if chooses:
                if not blocks(
                    half, messages, none, peak, combined, coefficient, message_peak, largest, FAR, centre_row, False,
                    lift, height, index, present, inner,
                ):  # fmt: skip
                    return k
            elif not usual(peak, combined, coefficient, message_peak, largest, FAR):
                return k
            choose(inner, weight, present, f, room, tie, settings, chosen)
            for receiver in range(count):
                if kept[receiver]:
                    chosen[receiver] = 0.0
                    chosen[receiver, 0] = 1.0
            if not mixture(half, messages, none, index, chosen, lift, centre_row, height, out):
                return k
            for receiver in range(count):
                if kept[receiver] or resting[receiver]:
                    out[receiver] = half[index[receiver, 0]]
            add_counts(chosen, present, column, trust, cut, came)
            current = out
        return step.size

    return rounds
