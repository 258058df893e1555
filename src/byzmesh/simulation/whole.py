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
from byzmesh.rules.gram.block_kernels import row_peaks
from byzmesh.rules.gram.prepared_kernels import blocks, lifted, mixture, usual, weights_alone
from byzmesh.simulation.edges import add_counts


@cache
def rounds_kernel(half_steps: Any, choose: Any, remembers: bool) -> Any:
    """rounds(...) -> how many rounds were computed, of as many as there are step sizes.

    data, rows      of the `StepKernel`
    first, start    number of the first round, and where it is in `arriving`; step (T,) step sizes; decay of the weights
    models          (R, D) before the first round; resting (R,) who does nothing in these rounds
    sent, peak      (S, R, D), (S R,) a ring of rounds, in which the half steps of each take their turn, and their peaks
    slots, lies     of the `PreparedGram` (`known`)
    arriving        (T, R, K) the pool row in each slot of each round, or the same (1, R, K) of all; (Q,) rows of the
                    ring, the old messages of all rounds; where those of each round begin
    memory          (R, D) what each receiver returned before the first round if the rule `remembers`, else (0, D)
    settings        of the `Choosing`
    sums            column, trust, cut and came as in `add_counts`
    chosen          (R, K) become the coefficients of the last round
    out, spare      (R, D) become the models after each round in turns: `spare` may be `out` unless the rule remembers,
                    and `out` may be `models`
    """
    chooses = choose is not weights_alone

    @exact
    def rounds(
        data: Any,
        rows: Any,
        first: Any,
        start: Any,
        step: Any,
        decay: Any,
        models: Any,
        resting: Any,
        sent: Any,
        peak: Any,
        slots: Any,
        lies: Any,
        arriving: Any,
        memory: Any,
        settings: Any,
        sums: Any,
        chosen: Any,
        out: Any,
        spare: Any,
    ) -> Any:
        weight, present, f, kept, room, tie = slots
        combined, coefficient, largest = lies
        filled, numbers, begin = arriving
        column, trust, cut, came = sums
        count, width = weight.shape
        inner = np.empty((count, width, width) if chooses else (0, 0, 0))
        flat, older = sent.reshape(-1, sent.shape[2]), np.empty((np.diff(begin).max(), sent.shape[2]), sent.dtype)
        current, anchors, others = models, memory.copy() if resting.any() else memory, np.empty(memory.shape[0])
        lift, centre_row = lifted(combined, coefficient, count, count + combined.shape[0] + others.size)
        for k in range(step.size):
            at, turn = min(start + k, filled.shape[0] - 1), (first + k) % sent.shape[0]
            index, half, high = filled[at], sent[turn], peak[turn * count : (turn + 1) * count]
            half_steps(data, rows, first + k, 1.0 - decay * step[k], step[k], current, resting, half, high)
            old = numbers[begin[at] : begin[at + 1]]
            messages, size = older[: old.size], count + combined.shape[0] + old.size + others.size
            for row in range(old.size):
                messages[row] = flat[old[row]]
            if combined.shape[0] > 0 and lift.shape[0] != size:
                lift, centre_row = lifted(combined, coefficient, count, size)
            height = max(lift.shape[1], size if lift.size == 0 else 0)
            row_peaks(anchors, others)
            peaks = np.concatenate((peak[old], others)) if remembers else peak[old]
            if chooses:
                if not blocks(
                    half, messages, anchors, high, combined, coefficient, peaks, largest, FAR, centre_row,
                    lift, height, index, present, inner,
                ):  # fmt: skip
                    return k
            elif not usual(high, combined, coefficient, peaks, largest, FAR):
                return k
            choose(inner, weight, present, f, room, tie, settings, chosen)
            for receiver in range(count):
                if kept[receiver]:
                    chosen[receiver] = 0.0
                    chosen[receiver, 0] = 1.0
            current = spare if k % 2 else out
            if not mixture(half, messages, anchors, index, chosen, lift, centre_row, height, current):
                return k
            for receiver in range(count):
                if kept[receiver] or resting[receiver]:
                    current[receiver] = half[index[receiver, 0]]
            add_counts(chosen, present[:, : column.shape[1]], column, trust, cut, came)
            if remembers and resting.any():
                for receiver in range(count):
                    if not resting[receiver]:
                        anchors[receiver] = current[receiver]
            elif remembers:
                anchors = current
        return step.size

    return rounds
