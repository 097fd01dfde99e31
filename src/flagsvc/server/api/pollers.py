"""The proxies and server-side SDKs that poll this server, with their revisions. In memory, for the pages.

An instance that has got a document, or 304 for it, has that document. So the server knows whether a change has arrived, and when,
without any further message of the instances.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from itertools import islice
from typing import NamedTuple, TypeAlias

from flagsvc.server.store.documents import ClientDocument, DocumentQuery, Documents

Who: TypeAlias = tuple[bytes | None, bytes | None, bytes | None]
MAX_POLLERS = 10_000
"""The most instances that are remembered. The instance with the longest silence is forgotten first."""
MAX_QUERY = 1000
"""The most characters of the filters of a query that is remembered."""
MAX_NAME = 100
"""The most characters of a name that an instance gives itself."""
MAX_QUERIES = 100
"""The most different queries whose newest document is looked at."""
KEPT_DOCUMENTS = 10
"""The last documents of an instance that are remembered."""
KEPT_COMMITS = 1000
"""The last commits that are remembered."""
SILENT_S = 60.0
"""An instance counts as gone after so many seconds, or after three of its intervals if that is longer."""


class Got(NamedTuple):
    """A document that an instance has `since` a moment: the revision of the document when the instance got it."""

    revision: int
    since: float


class Commit(NamedTuple):
    """A commit at a moment, with its revision; None where that is not known."""

    revision: int | None
    moment: float


class Poller(NamedTuple):
    """An instance: its query, its own names, and its last documents, the present one at the end.

    `polled` is the moment of its last poll, `interval` the seconds between the last two; None after the first.
    """

    query: DocumentQuery
    app_name: str
    instance_id: str
    sdk: str
    digest: str
    got: tuple[Got, ...]
    polled: float
    interval: float | None

    @property
    def revision(self) -> int:
        return self.got[-1].revision

    @property
    def since(self) -> float:
        return self.got[-1].since

    def is_gone(self, now: float) -> bool:
        """Return whether the instance has been silent for too long."""
        return now - self.polled > max(SILENT_S, 3 * (self.interval or 0.0))

    def has_since(self, revision: float) -> float | None:
        """Return when the instance got a revision; None if it has not, or if what it had before is not known."""
        if self.got[0].revision >= revision:
            return None
        return next((each.since for each in self.got if each.revision >= revision), None)


class Pollers:
    """Every instance that polls. Safe to use from any thread. `on_news` is called when an instance gets another document."""

    def __init__(self) -> None:
        self.on_news: Callable[[], object] = lambda: None
        self._lock = threading.Lock()
        self._found: OrderedDict[tuple[object, ...], Poller] = OrderedDict()
        self._commits: OrderedDict[str, Commit] = OrderedDict()

    def note_commit(self, action: str, commit: Commit) -> None:
        """Note the commit of an action."""
        with self._lock:
            self._commits[action] = commit
            while len(self._commits) > KEPT_COMMITS:
                self._commits.popitem(last=False)

    def find_commit(self, action: str) -> Commit | None:
        """Return the commit of an action of this server; None if it is not remembered."""
        with self._lock:
            return self._commits.get(action)

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
            got = () if before is None else before.got
            got = got if kept else (*got, Got(document.revision, now))[-KEPT_DOCUMENTS:]
            interval = None if before is None else now - before.polled
            self._found[key] = Poller(query, app_name, instance_id, sdk, document.digest, got, now, interval)
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


def newest_digests(documents: Documents, pollers: Iterable[Poller]) -> dict[DocumentQuery, str]:
    """Return the digest of the newest document of each query that an instance asks for. Raises DatabaseError.

    Of very many queries only the first ones count: each may have to be made for this.
    """
    queries = islice(dict.fromkeys(each.query for each in pollers), MAX_QUERIES)
    return {query: documents.get(query).digest for query in queries}


class Arrival(NamedTuple):
    """Where a change is. `there` counts the instances that need the change, and `arrived` the instances that have polled since.

    `changed` tells that any of them got another document, as far as that is known, and `after` are the seconds from the commit to
    the last of these polls; None if they are not known. `missing` are the other instances.
    """

    there: int
    arrived: int
    changed: bool
    after: float | None
    missing: tuple[Poller, ...]


def find_arrival(pollers: Iterable[Poller], commit: Commit) -> Arrival:
    """Return where the change of a commit is. Instances that were gone at the commit, and did not come back, do not count."""
    there = [each for each in pollers if not each.is_gone(commit.moment)]
    revision = math.inf if commit.revision is None else commit.revision
    changed = [each for each in there if each.revision >= revision]
    missing = tuple(each for each in there if each.revision < revision and each.polled <= commit.moment)
    times = [since - commit.moment for each in changed if (since := each.has_since(revision)) is not None]
    is_changed = commit.revision is None or bool(changed)
    return Arrival(len(there), len(there) - len(missing), is_changed, max(0.0, *times) if times else None, missing)
