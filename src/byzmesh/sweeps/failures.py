"""Why a run failed: the kind that the store keeps, and the text beside it."""

from __future__ import annotations

import traceback

from byzmesh.errors import ByzmeshError, ChangedCode, ConfigError, DataError, InfeasibleBound, MissingExtra

_KINDS = (
    (InfeasibleBound, "infeasible"),
    (ChangedCode, "changed"),
    (MissingExtra, "missing"),
    (DataError, "data"),
    (ConfigError, "config"),
    (MemoryError, "memory"),
)


def failure_kind(error: BaseException) -> str:
    """Of `byzmesh.store.records.FAILURE_KINDS`, the kind of an error.

    >>> failure_kind(DataError("no data file flowers.csv")), failure_kind(KeyError("step"))
    ('data', 'bug')
    """
    for known, kind in _KINDS:
        if isinstance(error, known):
            return kind
    # PyTorch's own, known by name: asking for the class would import PyTorch
    return "memory" if type(error).__name__ == "OutOfMemoryError" else "bug"


def failure_text(error: BaseException) -> str:
    """What the store keeps of a failure: one line where it is the user's to mend, the whole trace otherwise."""
    if isinstance(error, ByzmeshError):
        return str(error)
    return "".join(traceback.format_exception(error)).rstrip()
