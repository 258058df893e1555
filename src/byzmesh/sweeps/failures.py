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
    """The kind of an error, one of `byzmesh.store.records.FAILURE_KINDS`.

    >>> failure_kind(DataError("no data file flowers.csv")), failure_kind(KeyError("step"))
    ('data', 'bug')
    """
    for known, kind in _KINDS:
        if isinstance(error, known):
            return kind
    # PyTorch's own error is recognised by name: using its class would import PyTorch
    return "memory" if type(error).__name__ == "OutOfMemoryError" else "bug"


def failure_text(error: BaseException) -> str:
    """The text that the store keeps of a failure: one line if the user can fix it, otherwise the whole traceback."""
    if isinstance(error, ByzmeshError):
        return str(error)
    return "".join(traceback.format_exception(error)).rstrip()
