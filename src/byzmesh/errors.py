"""Errors that byzmesh raises on a user's mistake.

    ByzmeshError                     base of all below; the CLI prints it in one line and exits with 2
    ├── ConfigError (ValueError)     an argument, option or file is not what it must be
    │   ├── UnknownName              no rule, attack, topology, ... of that name
    │   ├── UnknownOption            the part exists, the option does not
    │   ├── NoLiars                  an attack where nobody lies
    │   └── InfeasibleBound          f is too large for the rule on this neighbourhood
    ├── MissingExtra                 an optional dependency is not installed
    ├── DataError                    a data set is missing, damaged or of the wrong form
    ├── ChangedCode                  the code or data are not those that a run was planned with
    ├── StoreError                   the store cannot be read or written
    └── PeerError                    a peer cannot start or continue
        ├── Isolated                 it heard nobody, or too few, for too long (exit code 4)
        └── NotWritten               its state cannot be written to disk (exit code 5)

Every message is one line: which argument, which bound, what was given, what to do. `WeakBound` and `Advice` are
warnings.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

BRIEF = 60
"""Most characters of a user's value in a message."""


class ByzmeshError(Exception):
    """Base of every error that byzmesh raises on purpose. Its message is one line, even if a user's value is not."""

    exit_code = 2

    def __init__(self, message: str = "") -> None:
        super().__init__(" ".join(message.split()) if "\n" in message else message)


class ConfigError(ByzmeshError, ValueError):
    """An argument, option or file is not what it must be."""


class UnknownName(ConfigError):
    """No entry of that name in a registry."""


class UnknownOption(ConfigError):
    """The named part exists but does not take that option."""


class NoLiars(ConfigError):
    """An attack is chosen, or without one an audit, where nobody lies.

    >>> str(NoLiars("ALIE"))
    'attack ALIE: nobody lies here; say who does (byzantine: how many, or their ids), or take attack none'
    >>> str(NoLiars())
    'audit: nobody lies here; say who does (byzantine: how many, or their ids)'
    """

    def __init__(self, attack: str = "") -> None:
        what, way_out = (f"attack {attack}", ", or take attack none") if attack else ("audit", "")
        super().__init__(f"{what}: nobody lies here; say who does (byzantine: how many, or their ids){way_out}")


class InfeasibleBound(ConfigError):
    """The bound f on lying neighbours is too large for the rule at this worker.

    >>> str(InfeasibleBound(rule="TriMean", worker=3, f=2, largest=1, neighbours=4))
    'f = 2 is infeasible for rule TriMean at worker 3 with 4 neighbours: the largest feasible f is 1'
    """

    def __init__(self, *, rule: str, worker: int, f: int, largest: int, neighbours: int) -> None:
        self.rule, self.worker, self.f, self.largest, self.neighbours = rule, worker, f, largest, neighbours
        if largest >= 0:
            way_out = f"the largest feasible f is {largest}"
        else:
            way_out = "the rule needs more neighbours even for f = 0; add edges or choose another rule"
        super().__init__(
            f"f = {f} is infeasible for rule {rule} at worker {worker} with {neighbours} neighbours: {way_out}"
        )


class MissingExtra(ByzmeshError, ImportError):
    """An optional dependency is needed.

    >>> str(MissingExtra("torch", "problem 'torch'"))
    "problem 'torch' needs an extra that is not installed: pip install 'byzmesh[torch]'"
    """

    def __init__(self, extra: str, what: str) -> None:
        super().__init__(f"{what} needs an extra that is not installed: pip install 'byzmesh[{extra}]'")
        self.extra = extra


class DataError(ByzmeshError):
    """A data set is missing, damaged or of the wrong form."""


class ChangedCode(ByzmeshError):
    """The code or data are not those that a run was planned with."""


class StoreError(ByzmeshError):
    """The store cannot be read or written."""


class PeerError(ByzmeshError):
    """A peer cannot start or continue."""


class Isolated(PeerError):
    """A peer heard none of its neighbours for too long, or only as many as may lie."""

    exit_code = 4


class NotWritten(PeerError):
    """A peer's state cannot be written to disk."""

    exit_code = 5


class WeakBound(UserWarning):
    """The rule can run with this bound on the lying neighbours, but does not resist that many lies."""


class Advice(UserWarning):
    """A run may say less than it seems to."""


def brief(value: Any) -> str:
    """A value as a message shows it: one line, cut where it gets long.

    >>> brief("ring"), brief(list(range(100)))
    ("'ring'", '[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, ...')
    """
    shown = " ".join(repr(value).split())
    return shown if len(shown) <= BRIEF else f"{shown[:BRIEF].rpartition(' ')[0]} ..."


def nearest(word: str, known: Iterable[str]) -> str:
    """The end of an error message: the closest valid name, or the list of them.

    >>> nearest("ois", ["ios", "krum"])
    "did you mean 'ios'?"
    >>> nearest("zzz", ["ios", "krum"])
    'known: ios, krum'
    """
    names = sorted(known)
    folded = {name.lower(): name for name in names}
    close = difflib.get_close_matches(word.lower(), list(folded), n=1, cutoff=0.6)
    if close:
        return f"did you mean {folded[close[0]]!r}?"
    return "known: " + ", ".join(names)
