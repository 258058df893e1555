"""What an attack knows from one round to the next: what it planned from the graph, and what it remembers.

A plan (any object) is rebuilt by `init`: after a checkpoint, and in every round of a network that changes. A memory is
kept: an array, a number, or the states of other attacks.

    array, number    memory
    Split            a plan and a memory
    States           the states of several attacks
    Memories         memories by path, before there is a plan to put them into
    anything else    a plan
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from byzmesh.checks import is_number


@dataclass(frozen=True)
class Split:
    """A state with a part that follows from the graph and one that does not."""

    plan: Any
    memory: Any


class States(tuple[Any, ...]):
    """The states of several attacks."""

    __slots__ = ()


class Memories(dict[str, Any]):
    """The memories of a state by path, as a checkpoint has them."""


def renewed(state: Any, init: Callable[[], Any]) -> Any:
    """The state for a graph that has changed: `init` plans anew, memories are kept.

    >>> renewed(Split("plan", 7), lambda: Split("new plan", 0)), renewed("plan", lambda: "new plan"), renewed(3, dict)
    (Split(plan='new plan', memory=7), 'new plan', 3)
    """
    if isinstance(state, (Split, States, Memories)):
        return with_memories(init(), dict(memories(state, "")), "")
    return state if remembers(state) else init()


def remembers(state: Any) -> bool:
    """Whether the state is memory and nothing else."""
    return is_number(state) or isinstance(state, np.ndarray) or hasattr(state, "new_empty")


def memories(state: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every array and number that a state remembers, by path.

    >>> dict(memories(Split("a plan", States((3, "another"))), "state"))
    {'state/0': 3}
    >>> dict(memories({0: "a plan, too"}, "state"))
    {}
    """
    if remembers(state):
        yield path, state
    elif isinstance(state, Split):
        yield from memories(state.memory, path)
    elif isinstance(state, Memories):
        yield from ((path + place, kept) for place, kept in state.items())
    elif isinstance(state, States):
        for number, part in enumerate(state):
            yield from memories(part, f"{path}/{number}")


def memories_below(kept: Mapping[str, Any], path: str) -> Memories | None:
    """A state before there is a plan: the memories below a path, None if there are none.

    >>> memories_below({"state/0": 7, "state/1": 8, "other": 9}, "state")
    {'/0': 7, '/1': 8}
    """
    below = {place.removeprefix(path): value for place, value in kept.items() if place.startswith(path)}
    return Memories(below) or None


def with_memories(fresh: Any, kept: Mapping[str, Any], path: str) -> Any:
    """A state made by `init`, with the memories of another: what `memories` gave.

    >>> with_memories(Split("new plan", 0), {"state": 7}, "state")
    Split(plan='new plan', memory=7)
    """
    if isinstance(fresh, Split):
        return Split(fresh.plan, with_memories(fresh.memory, kept, path))
    if isinstance(fresh, States):
        return States(with_memories(part, kept, f"{path}/{number}") for number, part in enumerate(fresh))
    return kept.get(path, fresh)
