"""The proxies and server-side SDKs that poll this server, with their revisions. In memory, for the page of the proxies.

An instance that has got a document, or 304 for it, has that document. So the server knows whether a change has arrived, without
any further message of the instances.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from flagsvc.server.store.documents import ClientDocument, DocumentQuery

Who: TypeAlias = tuple[bytes | None, bytes | None, bytes | None]
MAX_POLLERS = 10_000
"""The most instances that are remembered. The instance with the longest silence is forgotten first."""
MAX_QUERY = 1000
"""The most characters of the filters of a query that is remembered."""
MAX_NAME = 100
"""The most characters of a name that an instance gives itself."""
SILENT_S = 60.0
"""An instance counts as gone after so many seconds, or after three of its intervals if that is longer."""


class Poller(NamedTuple):
    """An instance: its query, its own names, and its document with the time.

    `polled` is the moment of its last poll, `interval` the seconds between the last two; None after the first.
    """

    query: DocumentQuery
    app_name: str
    instance_id: str
    sdk: str
    revision: int
    digest: str
    since: float
    polled: float
    interval: float | None

    def is_gone(self, now: float) -> bool:
        """Return whether the instance has been silent for too long."""
        return now - self.polled > max(SILENT_S, 3 * (self.interval or 0.0))


class Pollers:
    """Every instance that polls. Safe to use from any thread. `on_news` is called when an instance gets another document."""

    def __init__(self) -> None:
        self.on_news: Callable[[], object] = lambda: None
        self._lock = threading.Lock()
        self._found: OrderedDict[tuple[object, ...], Poller] = OrderedDict()

    def note(self, query: DocumentQuery, who: Who, document: ClientDocument, now: float) -> None:
        """Note that an instance gets a document now, or has it already.

        An instance without any name is not noted, and neither is one with a very long query.
        """
        if not any(who) or size_of(query) > MAX_QUERY:
            return
        app_name, instance_id, sdk = ((each or b"").decode("latin-1")[:MAX_NAME] for each in who)
        with self._lock:
            key = query, app_name, instance_id
            before = self._found.pop(key, None)
            kept = before is not None and before.digest == document.digest
            since = before.since if before is not None and kept else now
            interval = None if before is None else now - before.polled
            revision = before.revision if before is not None and kept else document.revision
            self._found[key] = Poller(
                query, app_name, instance_id, sdk, revision, document.digest, since, now, interval
            )
            while len(self._found) > MAX_POLLERS:
                self._found.popitem(last=False)
        if not kept:
            self.on_news()

    def list_all(self) -> list[Poller]:
        """Return every instance, the one that polled last first."""
        with self._lock:
            return list(self._found.values())[::-1]


def size_of(query: DocumentQuery) -> int:
    """Return the characters of the filters of a query."""
    tags = sum(len(kind) + len(value) for kind, value in query.tags or ())
    return len(query.prefix or "") + sum(map(len, query.projects or ())) + tags


def count_arrived(pollers: Iterable[Poller], digests: dict[DocumentQuery, str], now: float) -> tuple[int, int]:
    """Return how many instances have their newest document, and how many instances there are. Instances that are gone do not count.

    `digests` has the digest of the newest document of each query; an instance with another query is left out.
    """
    there = [each for each in pollers if each.query in digests and not each.is_gone(now)]
    return sum(digests.get(each.query) == each.digest for each in there), len(there)
