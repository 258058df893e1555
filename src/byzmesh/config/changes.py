"""How the code of two runs of one config differs, in words. Light: listing runs must not load the simulator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

UNSEEN = " unseen "
"""Separates, in the identity of a part, its hash from what cannot be inspected and the id of a process."""


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """How the code of a run changed, in words.

    >>> changes({"rule mine": "5f"}, {"rule mine": "7a", "data file flowers.csv": "01"})
    ('rule mine changed', 'data file flowers.csv was not recorded')
    >>> changes({}, {"rule RTC": "revision 2"})
    ('rule RTC: revision 1 -> 2',)
    """
    return tuple(_change(part, before.get(part), after.get(part)) for part in _all(before, after))


def _all(before: Mapping[str, str], after: Mapping[str, str]) -> Iterable[str]:
    return [part for part in {**before, **after} if before.get(part) != after.get(part)]


def _change(part: str, old: str | None, new: str | None) -> str:
    if new is not None and UNSEEN in new:
        what = new.partition(UNSEEN)[2].rpartition(" ")[0]
        return f"what {what} does in {part} cannot be seen; register it with revision=1, and 2 when it changes"
    numbers = [_revision(text) for text in (old, new)]
    if numbers[0] != numbers[1] and all(number is not None for number in numbers):
        return f"{part}: revision {numbers[0]} -> {numbers[1]}"
    if old is None:
        return f"{part} was not recorded"
    return f"{part} is built in now" if new is None else f"{part} changed"


def _revision(text: str | None) -> str | None:
    """The revision of a part of byzmesh; None for other code."""
    if text is None:
        return "1"
    return text.removeprefix("revision ") if text.startswith("revision ") else None
