"""The runs that this process holds in a store, their leases extended by a thread for as long as it computes them."""

from __future__ import annotations

import threading
from types import TracebackType

from byzmesh.errors import StoreError
from byzmesh.store import Store, this_process

LEASE_SECONDS = 60.0
BEATS = 4
"""Extensions within the time of a lease: several may fail (a busy disk, say) before the lease runs out."""


class Leases:
    """Runs held by this process; a context manager, at whose end nothing is extended any more."""

    def __init__(self, store: Store, seconds: float = LEASE_SECONDS) -> None:
        self.store = store
        self.seconds = seconds
        self.owner = this_process()
        self.held: set[str] = set()
        self.lost: set[str] = set()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="byzmesh-leases", daemon=True)

    def __enter__(self) -> Leases:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def take(self, key: str) -> bool:
        """Claim a run and hold it; False if it is not free."""
        if not self.store.claim(key, self.owner, self.seconds):
            return False
        with self._lock:
            self.lost.discard(key)
            self.held.add(key)
        return True

    def drop(self, key: str) -> None:
        """Extend this run's lease no more."""
        with self._lock:
            self.held.discard(key)

    def _beat(self) -> None:
        while not self._over.wait(self.seconds / BEATS):
            with self._lock:
                held = list(self.held)
            for key in held:
                try:
                    kept = self.store.heartbeat(key, self.owner, self.seconds)
                except StoreError:
                    continue  # tried again with the next beat; if it goes on, storing the result says why
                if not kept:
                    with self._lock:
                        if key in self.held:
                            self.lost.add(key)
