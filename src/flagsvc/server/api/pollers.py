"""Who polls this server, and which revision each has: proxies and server-side SDKs. In memory, for the page of the proxies.

An instance that has got a document, or 304 for it, has that document. So the server knows whether a change has arrived, without
any further message of the instances.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from flagsvc.server.store.documents import ClientDocument, DocumentQuery

Who: TypeAlias = tuple[bytes | None, bytes | None, bytes | None]
MAX_POLLERS = 10_000
"""The most instances that are remembered. The one that has been silent longest is forgotten first."""
MAX_NAME = 100
"""The most characters of a name that an instance gives itself."""
SILENT_S = 60.0
"""An instance counts as gone after so many seconds, or after three of its intervals if that is longer."""


class Poller(NamedTuple):
    """One instance: what it asks for, the names that it gives itself, and what it has, since when.

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
    """Every instance that polls. Handlers call `note` in any thread: each step on the dictionary is atomic."""

    def __init__(self) -> None:
        self._found: OrderedDict[tuple[object, ...], Poller] = OrderedDict()

    def note(self, query: DocumentQuery, who: Who, document: ClientDocument, now: float) -> None:
        """Note that an instance gets a document now, or has it already. An instance without any name is not noted."""
        if not any(who):
            return
        app_name, instance_id, sdk = ((each or b"").decode("latin-1")[:MAX_NAME] for each in who)
        key = query, app_name, instance_id
        before = self._found.pop(key, None)
        kept = before is not None and before.digest == document.digest
        since = before.since if before is not None and kept else now
        interval = None if before is None else now - before.polled
        revision = before.revision if before is not None and kept else document.revision
        self._found[key] = Poller(query, app_name, instance_id, sdk, revision, document.digest, since, now, interval)
        while len(self._found) > MAX_POLLERS:
            self._found.popitem(last=False)

    def list_all(self) -> list[Poller]:
        """Return every instance, the one that polled last first."""
        return list(self._found.values())[::-1]


def count_arrived(pollers: Iterable[Poller], digests: dict[DocumentQuery, str], now: float) -> tuple[int, int]:
    """Return how many instances have the newest document that they ask for, and how many there are, without those that are gone.

    `digests` has the digest of the newest document of each query.
    """
    there = [each for each in pollers if not each.is_gone(now)]
    return sum(digests.get(each.query) == each.digest for each in there), len(there)
