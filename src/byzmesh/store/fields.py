"""How users name the fields of a config, and how tables show their values.

    seed, rule.tau    a field by its path
    rule              short for `rule.name`, as for every part with a name
    network           the topology's name; for a user's own graph its label, or else its edges
    case              short for `labels.case`: the name that a grid gives a run

Filters, rows and columns use the same words. Case, dashes and underscores in names do not matter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from byzmesh.entries import fold
from byzmesh.errors import UnknownName, nearest
from byzmesh.store.keys import LONGEST_INDEXED, dump

LABELS = "labels."
_ENDINGS = (".name", ".label", ".edges")


def paths_of(word: str, known: Collection[str]) -> tuple[str, ...]:
    """The paths that a word can mean, among those that runs have; for a run, the first one it has counts.

    >>> paths_of("rule", ["rule.name", "rule.tau"]), paths_of("case", ["labels.case"])
    (('rule.name',), ('labels.case',))
    >>> paths_of("ruel", ["rule.name", "rule.tau"])
    Traceback (most recent call last):
    byzmesh.errors.UnknownName: no run has the field 'ruel': did you mean 'rule'?
    """
    paths = tuple(path for path in possible_paths(word) if path in known)
    if not paths:
        raise UnknownName(f"no run has the field {word!r}: {nearest(word, {*known, *map(short, known)})}")
    return paths


def possible_paths(word: str) -> tuple[str, ...]:
    """All paths that a word may mean, the preferred one first.

    >>> possible_paths("network")
    ('network', 'network.name', 'network.label', 'network.edges', 'labels.network')
    """
    return (word, *(word + ending for ending in _ENDINGS), LABELS + word)


def short(path: str) -> str:
    """The short word for a path.

    >>> short("rule.name"), short("network.edges"), short("labels.case"), short("rule.tau")
    ('rule', 'network', 'case', 'rule.tau')
    """
    for ending in _ENDINGS:
        path = path.removesuffix(ending)
    return path.removeprefix(LABELS)


def words_of(text: str) -> list[str]:
    """Split words at commas.

    >>> words_of("rule, rule.tau")
    ['rule', 'rule.tau']
    """
    return [word.strip() for word in text.split(",") if word.strip()]


def path_in(fields: Mapping[str, Any], paths: Sequence[str]) -> str | None:
    """The first of the paths that a run has."""
    return next((path for path in paths if path in fields), None)


def label(fields: Mapping[str, Any], sides: Iterable[Sequence[str]]) -> str:
    """The label of a run by several fields; `-` for a field it does not have.

    >>> label({"rule.name": "CC", "network.byzantine": [7, 9]}, [["rule.name"], ["network.byzantine"], ["seed"]])
    'CC, [7,9], -'
    """
    chosen = (path_in(fields, paths) for paths in sides)
    return ", ".join("-" if path is None else text(fields[path]) for path in chosen)


def text(value: Any) -> str:
    """A value as a heading shows it; a long one, such as the edges of a graph, as the beginning of its hash.

    >>> text("IOS"), text([7, 9]), text([[0, node] for node in range(1, 40)])
    ('IOS', '[7,9]', '#16579ea8')
    """
    shown = value if isinstance(value, str) else dump(value)
    return shown if len(shown) <= LONGEST_INDEXED else f"#{hashlib.sha256(shown.encode()).hexdigest()[:8]}"


def same(one: Any, other: Any) -> bool:
    """Whether two values of a field mean the same to a reader.

    >>> same("Sign_Flipping", "sign-flipping"), same(1, 1.0), same("1", 1)
    (True, True, False)
    """
    if isinstance(one, str) and isinstance(other, str):
        return fold(one) == fold(other)
    return bool(one == other)
