"""A network as a process: in every round, who is active and who hears whom.

A *process* takes the links of a round and returns others. Several are applied in the order in which they are written;
the first one starts from the network's own links. Every draw is a function of (seed, position in the list, worker,
round), so a resumed run, a peer and the simulator see the same rounds, in any order.

    network ring, process [{name: link-loss, p: 0.1}, {name: sleep, p: 0.05}]

A process that `replaces` the links (mobile, schedule) comes first, `late` last. A new one needs one file in this
package, or a decorator (`bm.register_process`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from byzmesh import rng
from byzmesh.compiled import exact
from byzmesh.entries import as_call
from byzmesh.errors import ConfigError
from byzmesh.networks.links import Links
from byzmesh.networks.processes.inbox_counts import InboxCounts
from byzmesh.records import made
from byzmesh.registry import Registry
from byzmesh.sparse import frozen
from byzmesh.types import Booleans, Floats, Integers


@dataclass(frozen=True)
class Meeting:
    """One round of a network.

    links   who hears whom in this round
    active  (n,) whether each worker takes part: computes a gradient, sends, aggregates
    age     (E,) how many rounds ago the message on each link was sent; None: all are of this round
    """

    links: Links
    active: Booleans
    age: Integers | None = None


@dataclass(frozen=True, kw_only=True)
class Ground:
    """What a process may know before the first round: the network's links, who lies, and the key of its draws."""

    links: Links
    lies: Booleans
    key: Any

    @property
    def n(self) -> int:
        """Number of workers."""
        return self.links.n


Step = Callable[[Meeting, int], Meeting]
"""(the round so far, its number) -> the round."""


@dataclass(frozen=True, repr=False)
class Process:
    """What happens to a network from round to round.

    >>> import byzmesh as bm
    >>> bm.process({"name": "link-loss", "p": 0.2})
    [process('link-loss', p=0.2)]
    """

    name: str
    bind: Callable[[Ground], Step]
    """Called once for a network."""
    _: KW_ONLY
    options: Mapping[str, Any] = field(default_factory=dict)
    replaces: bool = False
    """Whether the links do not come from the network: such a process is the first of its list."""
    oldest: int = 0
    """Age of the oldest message, in rounds; a process with one is the last of its list."""
    degree: Callable[[Integers], Integers | None] | None = None
    """(n,) neighbours -> (n,) largest number of messages in a round, None if unknown; None: the process adds none."""
    counts: Callable[[InboxCounts], InboxCounts] | None = None
    """What it does to the number of liars in an inbox, for `f: quantile`; None: nothing is known in closed form."""
    shared: bool = False
    """Whether one draw decides about several receivers or rounds at once: their inboxes are then not independent."""
    remembers: bool = False
    """Whether a round depends on earlier ones."""
    recurs: bool = False
    """Whether a small network meets the same graphs again and again."""
    period: Callable[[int], int] | None = None
    """Number of workers -> after how many rounds the links repeat; None: they are random, or never repeat."""
    among: Callable[[Integers, int], Process] | None = None
    """(ids kept, of how many) -> the process of those workers, renumbered in order; None: it does not name workers."""
    places: Callable[[Ground], Callable[[int], Floats]] | None = None
    """The network -> round -> (n, 2) where the workers are in the unit square, for pictures; None: they do not move."""
    knows_liars: bool = False
    """Whether it treats liars differently: for the simulator only, peers do not know who lies."""

    def __repr__(self) -> str:
        return as_call("process", self.name, self.options)


processes: Registry[Process] = Registry("process", "byzmesh.processes", ("byzmesh.networks.processes",), Process)


def process(spec: Any, /, **options: Any) -> list[Process]:
    """The processes that a spec describes, in order: a name, a mapping, a `Process`, or a list of these.

    >>> process("sleep", p=0.5)
    [process('sleep', p=0.5, liars='asleep')]
    >>> process(["static"])
    []
    >>> process([{"name": "late"}, "link-loss"])
    Traceback (most recent call last):
    byzmesh.errors.ConfigError: process late must be the last of its list; write it after link-loss
    """
    if spec is None:
        return []
    several = isinstance(spec, Sequence) and not isinstance(spec, str)
    if several and options:
        raise ConfigError(f"a list of processes takes no options, got {', '.join(options)}; give each its own")
    built = [processes.build(item, **options) for item in (spec if several else [spec])]
    built = [one for one in built if one.name != STATIC]
    for earlier, later in pairwise(built):
        if later.replaces:
            raise ConfigError(
                f"process {later.name} replaces the links, so it must be the first of its list; write it before "
                f"{earlier.name}"
            )
        if earlier.oldest:
            raise ConfigError(f"process {earlier.name} must be the last of its list; write it after {later.name}")
    return built


STATIC = "static"


@processes.register(STATIC)
def static() -> Process:
    """The network itself, in every round; the same as no process.

    >>> static().options
    {}
    """
    return Process(STATIC, lambda ground: lambda meeting, round: meeting)


class Meetings:
    """The rounds of a network under processes.

    >>> import byzmesh as bm
    >>> rounds = Meetings(process("matching"), bm.network("complete", n=4).links)
    >>> rounds.at(0).links.degree, rounds.at(7) is rounds.at(7)
    (array([1, 1, 1, 1]), True)
    """

    def __init__(self, chosen: Sequence[Process], links: Links, lies: Booleans | None = None, seed: int = 0) -> None:
        self.processes, self.links = tuple(chosen), links
        known = np.zeros(links.n, bool) if lies is None else lies
        keys = (rng.key(seed, rng.PROCESS, place) for place in range(len(chosen)))
        grounds = [Ground(links=links, lies=known, key=key) for key in keys]
        self._steps = [one.bind(ground) for one, ground in zip(chosen, grounds)]
        self._places = [one.places(ground) for one, ground in zip(chosen, grounds) if one.places is not None]
        self.everybody = frozen(np.ones(links.n, bool))
        self._still = Meeting(links, self.everybody)
        self._last: tuple[int, Meeting] | None = None

    def at(self, round: int) -> Meeting:
        """The round of this number; always the same for the same number."""
        if self._last is None or self._last[0] != round:
            meeting = self._still
            for step in self._steps:
                meeting = step(meeting, round)
            self._last = (round, meeting)
        return self._last[1]

    def places(self, round: int) -> Floats | None:
        """(n, 2) where the workers are in a round, in the unit square; None if they do not move."""
        return self._places[0](round) if self._places else None

    @property
    def oldest(self) -> int:
        """Age of the oldest message, in rounds."""
        return max((one.oldest for one in self.processes), default=0)

    @property
    def recurs(self) -> bool:
        """Whether the same graphs come again and again."""
        return all(one.recurs for one in self.processes)

    @property
    def degree(self) -> Integers | None:
        """(n,) how many messages each worker gets when none is lost; None if that is not known."""
        degree: Integers | None = self.links.degree
        for one in self.processes:
            if one.degree is not None and degree is not None:
                degree = one.degree(degree)
        return degree


def met(links: Links, active: Booleans) -> Meeting:
    """A round in which nothing is late."""
    return made(Meeting, links=links, active=active, age=None)


def listed(start: Integers, sender: Integers, count: int) -> Links:
    """Links from arrays of which the first `count` senders are filled; read-only, so that kernels are compiled once."""
    return made(Links, start=frozen(start), sender=frozen(sender[:count]))


def awake(meeting: Meeting, active: Booleans) -> Meeting:
    """The round without the workers that are not active, and without their messages."""
    links = meeting.links
    start, sender = np.empty_like(links.start), np.empty_like(links.sender)
    count = _among_active(links.start, links.sender, active, start, sender)
    return met(listed(start, sender, count), meeting.active & active)


@exact
def _among_active(start: Any, sender: Any, active: Any, new_start: Any, new_sender: Any) -> Any:
    count = 0
    new_start[0] = 0
    for receiver in range(len(start) - 1):
        if active[receiver]:
            for entry in range(start[receiver], start[receiver + 1]):
                if active[sender[entry]]:
                    new_sender[count] = sender[entry]
                    count += 1
        new_start[receiver + 1] = count
    return count
