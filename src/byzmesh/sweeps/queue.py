"""The runs that a sweep still has to compute, and its progress."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

from byzmesh.store import ENDED, RunRecord, Store

LOOK_SECONDS = 0.5
"""How often a sweep checks runs that another sweep is computing."""

Show = Callable[["Backlog", RunRecord | None], None]
"""Called often with the state of a sweep, and with each run that ended."""


@dataclass
class Backlog:
    """The runs of a sweep: waiting, computed here, computed by another sweep, ended.

    rounds     key -> rounds that the run needs
    reached    key -> round at which it was first and last seen in this sweep
    latest     key -> metrics of its last evaluation, of runs computed on this machine
    notes      text for the user -> whether it was shown
    computed   number of runs that ended here
    """

    store: Store
    keys: Sequence[str]
    show: Show = lambda backlog, record: None
    _: KW_ONLY
    waiting: deque[str] = field(default_factory=deque)
    running: set[str] = field(default_factory=set)
    elsewhere: set[str] = field(default_factory=set)
    ended: dict[str, str] = field(default_factory=dict)
    notes: dict[str, bool] = field(default_factory=dict)
    computed: int = 0
    rounds: dict[str, int] = field(default_factory=dict)
    reached: dict[str, tuple[int, int]] = field(default_factory=dict)
    latest: dict[str, Mapping[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key in self.keys:
            record = self.store.get(key)
            if record.settled:
                self.ended[key] = record.status
            else:
                self.waiting.append(key)
                self.rounds[key] = record.config["rounds"]
        self._looked = time.monotonic()
        self._began: float | None = None

    @property
    def open(self) -> bool:
        """Whether there is anything left to compute or to wait for."""
        return bool(self.waiting or self.running or self.elsewhere)

    def next(self) -> str | None:
        """The next run to compute here; None if there is none now."""
        if not self.waiting:
            return None
        key = self.waiting.popleft()
        self.running.add(key)
        return key

    def at(self, key: str, round: int, latest: Mapping[str, float] | None = None) -> None:
        """Note how far a run is, and the metrics of its last evaluation."""
        if self._began is None:
            self._began = time.monotonic()
        self.reached[key] = (self.reached.get(key, (round, round))[0], round)
        if latest:
            self.latest[key] = latest

    def note(self, text: str) -> None:
        """Add a note for the user."""
        self.notes.setdefault(text, False)

    def hear(self, word: str, key: str, status: str = "") -> None:
        """Handle a worker's message about a run: see `byzmesh.sweeps.worker`."""
        if word == "taken":
            self.taken(key)
        elif status == "interrupted":
            self.again(key)
        else:
            self.end(key, status)

    def taken(self, key: str) -> None:
        """The run was not free: another process has computed it or is computing it."""
        self.running.discard(key)
        self.elsewhere.add(key)
        self._settle(key)

    def again(self, key: str) -> None:
        """The run must be computed again."""
        self.running.discard(key)
        self.waiting.appendleft(key)

    def end(self, key: str, status: str, *, here: bool = True) -> None:
        """The run ended, here or elsewhere."""
        self.computed += here
        self.running.discard(key)
        self.elsewhere.discard(key)
        self.ended[key] = status
        if status in ENDED:
            self.at(key, self.rounds[key])
        record = self.store.get(key)
        if status == "failed" and record.status in ENDED:
            reason = (record.failure or "").strip().split("\n")[-1]
            self.note(f"run {key[:12]} failed when computed again and keeps its former result: {reason}")
        self.show(self, record)

    def look(self) -> None:
        """Check now and then on the runs that others are computing."""
        self.show(self, None)
        if time.monotonic() - self._looked > LOOK_SECONDS:
            self._looked = time.monotonic()
            for key in list(self.elsewhere):
                self._settle(key)

    def _settle(self, key: str) -> None:
        record = self.store.get(key)
        if record.settled:
            self.end(key, record.status, here=False)
        elif not record.leased:
            self.elsewhere.discard(key)
            self.waiting.append(key)

    def count(self, status: str) -> int:
        """How many runs ended with this status."""
        return sum(ended == status for ended in self.ended.values())

    @property
    def share(self) -> float:
        """Fraction of the sweep's rounds that are done; runs that had ended before do not count."""
        done = sum(
            rounds if key in self.ended else self.reached.get(key, (0, 0))[1] for key, rounds in self.rounds.items()
        )
        return done / max(sum(self.rounds.values()), 1)

    @property
    def rounds_per_second(self) -> float:
        """Rounds per second of all workers since the first of them said how far it is: compiling does not count."""
        if self._began is None:
            return 0.0
        done = sum(last - first for first, last in self.reached.values())
        return done / max(time.monotonic() - self._began, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """Seconds left at that rate; None while the rate is unknown."""
        left = sum(
            rounds - self.reached.get(key, (0, 0))[1] for key, rounds in self.rounds.items() if key not in self.ended
        )
        rate = self.rounds_per_second
        return left / rate if rate > 0 else None
