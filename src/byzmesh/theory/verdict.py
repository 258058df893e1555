"""A verdict: proved, refuted or unknown, with its reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

ANSWERS = {"proved": "holds", "refuted": "does not hold", "unknown": "unknown"}


@dataclass(frozen=True)
class Verdict:
    """ "proved", "refuted" or "unknown", and why; true only if proved."""

    status: str
    reason: str

    def __bool__(self) -> bool:
        return self.status == "proved"

    def __str__(self) -> str:
        return f"{ANSWERS[self.status]}: {self.reason}"


def all_of(verdicts: Iterable[Verdict], reason: str) -> Verdict:
    """The first refuted verdict, else the first unknown one, else proved for this reason.

    >>> all_of([Verdict("proved", "a"), Verdict("unknown", "b"), Verdict("refuted", "c")], "all")
    Verdict(status='refuted', reason='c')
    """
    told = list(verdicts)
    for status in ("refuted", "unknown"):
        for verdict in told:
            if verdict.status == status:
                return verdict
    return Verdict("proved", reason)
