"""A schedule: the edges of every round, written down. After the last round it starts again.

    process: {name: schedule, edges: [[[0, 1], [2, 3]], [[1, 2], [3, 0]]]}     two rounds, in turn
    process: {name: schedule, file: contacts.txt}                              one line "round a b" per edge

An edge goes both ways, or with `directed` from the first worker (who sends) to the second. In Python `edges` may also
be a function of the round; such a schedule is not periodic, and is described by its name only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from byzmesh.checks import flag, is_whole
from byzmesh.errors import ConfigError, brief
from byzmesh.networks.links import Links
from byzmesh.networks.processes.base import Ground, Meeting, Process, Step, processes
from byzmesh.types import Integers


@processes.register("schedule")
def schedule(edges: Any = None, file: str | None = None, directed: bool = False) -> Process:
    """The edges of each round: lists of pairs, a file of lines "round a b", or in Python a function of the round.

    >>> schedule(edges=[])
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: process schedule: edges must list the pairs of at least one round, got []
    """
    flag("process schedule: directed", directed)
    if (edges is None) == (file is None):
        raise ConfigError("process schedule needs either edges or file; give one of them")
    listed = edges if callable(edges) else _rounds(_read(Path(str(file))) if edges is None else edges)
    return _schedule(listed, directed)


def _schedule(edges: Callable[[int], Any] | list[Integers], directed: bool) -> Process:
    def bind(ground: Ground) -> Step:
        n = ground.n
        if callable(edges):
            function = edges
            return lambda meeting, round: Meeting(
                _links(_pairs(function(round), f"round {round}"), n, directed), meeting.active
            )
        links = [_links(pairs, n, directed) for pairs in edges]
        return lambda meeting, round: Meeting(links[round % len(links)], meeting.active)

    def among(kept: Integers, n: int) -> Process:
        row = {int(node): place for place, node in enumerate(kept)}

        def inner(pairs: Integers) -> Integers:
            _check(pairs, n)
            here = [(row[int(a)], row[int(b)]) for a, b in pairs if int(a) in row and int(b) in row]
            return np.array(here, np.int64).reshape(-1, 2)

        if callable(edges):
            function = edges
            return _schedule(lambda round: inner(_pairs(function(round), f"round {round}")), directed)
        return _schedule([inner(pairs) for pairs in edges], directed)

    written: Any = getattr(edges, "__qualname__", "a function") if callable(edges) else [one.tolist() for one in edges]
    return Process(
        "schedule",
        bind,
        options={"edges": written, "directed": directed},
        replaces=True,
        remembers=True,
        recurs=not callable(edges),
        degree=lambda degree: None,
        period=None if callable(edges) else lambda n: len(edges),
        among=among,
    )


def _check(pairs: Integers, n: int) -> None:
    if len(pairs) and pairs.max() >= n:
        raise ConfigError(f"process schedule names worker {pairs.max()}, but workers are numbered 0 to {n - 1}")


def _links(pairs: Integers, n: int, directed: bool) -> Links:
    _check(pairs, n)
    sender, receiver = pairs.T
    if directed:
        return Links.of_pairs(receiver, sender, n)
    return Links.of_pairs(np.concatenate([receiver, sender]), np.concatenate([sender, receiver]), n)


def _rounds(given: Any) -> list[Integers]:
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) == 0:
        raise ConfigError(f"process schedule: edges must list the pairs of at least one round, got {brief(given)}")
    return [_pairs(pairs, f"round {number}") for number, pairs in enumerate(given)]


def _pairs(given: Any, where: str) -> Integers:
    pairs = [tuple(pair) if isinstance(pair, Sequence | np.ndarray) else (pair,) for pair in given]
    for pair in pairs:
        if len(pair) != 2 or not all(is_whole(node) and node >= 0 for node in pair) or pair[0] == pair[1]:
            raise ConfigError(f"process schedule: an edge of {where} must be two different workers, got {brief(pair)}")
    return np.array(pairs, np.int64).reshape(-1, 2)


def _read(path: Path) -> list[list[tuple[int, int]]]:
    try:
        text = path.read_text()
    except OSError as error:
        raise ConfigError(f"process schedule: cannot read {path} ({error.strerror}); correct the name") from None
    rounds: dict[int, list[tuple[int, int]]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#", 1)[0].replace(",", " ").split()
        if words and (len(words) not in (1, 3) or not all(word.isascii() and word.isdigit() for word in words)):
            raise ConfigError(f"{path}: line {number} must be 'round a b', or 'round' alone, got {line.strip()[:60]!r}")
        if words:
            pairs = rounds.setdefault(int(words[0]), [])
            pairs += [(int(words[1]), int(words[2]))] if len(words) == 3 else []
    if not rounds:
        raise ConfigError(f"{path}: no edges; write lines like '0 3 4': in round 0, workers 3 and 4 meet")
    return [rounds.get(number, []) for number in range(max(rounds) + 1)]
