"""The runs that this process owns in a store; a thread extends their leases while it computes them."""

from __future__ import annotations

import threading
from types import TracebackType

from byzmesh.errors import StoreError
from byzmesh.store import Store, this_process

LEASE_SECONDS = 60.0
BEATS = 4
"""Extensions per lease time: several may fail (a busy disk, say) before the lease runs out."""


class Leases:
    """Runs owned by this process; a context manager that extends their leases until it exits."""

    def __init__(self, store: Store, seconds: float = LEASE_SECONDS) -> None:
        self.store = store
        self.seconds = seconds
        self.owner = this_process()
        self.owned: set[str] = set()
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
        """Claim a run and keep extending its lease; False if it is not free."""
        if not self.store.claim(key, self.owner, self.seconds):
            return False
        with self._lock:
            self.lost.discard(key)
            self.owned.add(key)
        return True

    def drop(self, key: str) -> None:
        """Stop extending this run's lease."""
        with self._lock:
            self.owned.discard(key)

    def _beat(self) -> None:
        while not self._over.wait(self.seconds / BEATS):
            with self._lock:
                owned = list(self.owned)
            for key in owned:
                try:
                    kept = self.store.heartbeat(key, self.owner, self.seconds)
                except StoreError:
                    continue  # the next beat tries again; if that keeps failing, storing the result says why
                if not kept:
                    with self._lock:
                        if key in self.owned:
                            self.lost.add(key)
