"""Makes a new token known at once: an unknown secret has the server read the revision before it is refused (decision 0018).

Another server or a command may have made the token a moment ago, and an SDK that gets a 401 stops for ever.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

from flagsvc.core.clock import Clock
from flagsvc.core.errors import DatabaseError
from flagsvc.server.store.store import Store

PAUSE_S = 0.02
"""Seconds before each read, in which callers gather. Made-up secrets cause no more reads."""
MOST_S = 1.0
"""The most seconds that a caller waits, so that each gets an answer while the database is away."""
NOT_READING = float("inf")
DONE: Future[None] = Future()
DONE.set_result(None)


class KeyRenewal:
    """Reads the revision for callers with an unknown secret, in a thread of its own. Safe to call from any thread."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="flagsvc keys")
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._next: Future[None] | None = None
        self._began = NOT_READING

    def renew(self) -> Future[None]:
        """Return a future that is done when the tokens are as new as the database is now, or cannot be read.

        Callers share a read that has not begun. No caller waits for a read that hangs: a future keeps something for each caller.
        """
        with self._lock:
            if self._clock.monotonic() - self._began > MOST_S:
                return DONE
            if self._next is None:
                self._next = self._pool.submit(self._read)
            return self._next

    def close(self) -> None:
        """End the thread after a running read."""
        self._closing.set()
        self._pool.shutdown()

    def _read(self) -> None:
        self._closing.wait(PAUSE_S)
        with self._lock:
            self._next, self._began = None, self._clock.monotonic()
        try:
            with suppress(DatabaseError):  # the listener logs an outage, and the tokens in memory stay valid
                self._store.notify_watchers(self._store.revision())
        finally:
            with self._lock:
                self._began = NOT_READING
