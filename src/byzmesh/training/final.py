"""The value of a run: one definition of the mean over its last evaluations, for tables, studies and `Run.final`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from byzmesh.checks import whole

MOST = 10
"""The most evaluations that a run's value averages."""


def last_evaluations(rounds: npt.ArrayLike, last: int | None = None) -> npt.NDArray[np.int64]:
    """Positions of the evaluations that a run's value averages, given their rounds (E,).

    By default those in the last tenth of the rounds, at most 10 and at least one; `last` asks for that many instead.
    The start (round 0) is not among them unless there is nothing else.

    >>> last_evaluations(range(21)), last_evaluations([0, 50, 100]), last_evaluations([0, 50, 100], last=10)
    (array([19, 20]), array([2]), array([1, 2]))
    """
    if last is not None:
        whole("last", last, 1)
    at = np.asarray(rounds, np.float64)
    trained = np.flatnonzero(at > 0)
    if not len(trained):
        return np.arange(len(at))[-1:]
    if last is None:
        trained, last = trained[10 * at[trained] > 9 * at[-1]], MOST
    return trained[-last:]


def mean_of_last(values: npt.ArrayLike, rounds: npt.ArrayLike, last: int | None = None) -> float:
    """The value of a run: the mean of a metric (E,) over its `last_evaluations`, NaN (not measured) left out.

    >>> mean_of_last([0.1, 0.5, 1.0], [0, 50, 100]), mean_of_last([0.1, 0.5, 1.0], [0, 50, 100], last=10)
    (1.0, 0.75)
    """
    series, at = np.asarray(values, np.float64), np.asarray(rounds, np.float64)
    measured = ~np.isnan(series)
    if not measured.any():
        return float("nan")
    series, at = series[measured], at[measured]
    return float(np.mean(series[last_evaluations(at, last)]))


def words_of_last(last: int | None) -> str:
    """How a table describes its values.

    >>> words_of_last(None), words_of_last(2)
    ('the evaluations in the last tenth of the rounds, at most 10', 'the last 2 evaluations')
    """
    if last is None:
        return f"the evaluations in the last tenth of the rounds, at most {MOST}"
    return f"the last {last} evaluations" if last > 1 else "the last evaluation"
