"""The client-features documents as bytes: read once per change, served from memory (ARCHITECTURE: clients).

The features of an environment are read (client_features.py) when somebody asks for the first time after a change, by one thread for
all that wait. A change that leaves a document as it was leaves its bytes and its entity tag as they were, too. While the database
is away, the last documents are served.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from isal import isal_zlib

from flagsvc.core.clock import Clock
from flagsvc.core.errors import DatabaseError
from flagsvc.core.log import Logger
from flagsvc.server.store.client_features import Environment, FeatureEntry, encode, joined, read_environment
from flagsvc.server.store.store import Store

VERSION = 2
ALL = "*"
MOST_BYTES = 128 * 1024 * 1024
"""Bytes of documents kept, their gzip forms included; the one that was longest not asked for goes first."""
OVERHEAD = 1024
"""Bytes that a document takes beside its own: the query, the tag, the place in the table. Small ones count, too."""
MOST_ENVIRONMENTS = 64
AGAIN_S = 1.0
"""Seconds after the database failed before it is asked again."""
PATIENCE_S = 10.0
"""Seconds that a request waits for another one's reading before it takes the last document."""
DIGEST_BYTES = 8
SMALLEST_PACKED = 1024
GZIP_LEVEL = 1
GZIP_FORMAT = 31


@dataclass(frozen=True)
class DocumentQuery:
    """What a document is of; None where a filter is not set. `inline`: for SDKs that know no segments."""

    environment: str
    projects: tuple[str, ...] | None = None
    prefix: str | None = None
    tags: tuple[tuple[str, str], ...] | None = None
    inline: bool = False

    def takes(self, entry: FeatureEntry) -> bool:
        """Return whether a feature passes the filters."""
        return (
            (self.projects is None or entry.project in self.projects or ALL in self.projects)
            and (self.prefix is None or entry.name.startswith(self.prefix))
            and (self.tags is None or not entry.tags.isdisjoint(self.tags))
        )

    def shown(self) -> dict[str, Any]:
        """Return the document's member `query`."""
        filters = {"tag": self.tags, "project": self.projects, "namePrefix": self.prefix}
        known = {name: value for name, value in filters.items() if value is not None}
        return known | {"environment": self.environment, "inlineSegmentConstraints": self.inline}


@dataclass(frozen=True)
class ClientDocument:
    """A document: its bytes, their gzip form where that pays, and its entity tag, `"<digest>:<revision>:v1"`.

    Two documents with one digest hold the same, be they of one server or of several.
    """

    body: bytes
    packed: bytes | None
    digest: str
    tag: bytes

    @property
    def size(self) -> int:
        """Bytes it takes to keep."""
        return len(self.body) + len(self.packed or b"") + OVERHEAD


class DocumentCache:
    """The documents kept, each with the revision it is known to be good for. Used by one thread at a time."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._bytes = 0
        self._kept: OrderedDict[DocumentQuery, tuple[int, ClientDocument]] = OrderedDict()

    def find(self, query: DocumentQuery, revision: int) -> ClientDocument | None:
        """Return a document that is good for a revision; None without one."""
        found = self._kept.get(query)
        if found is None or found[0] < revision:
            return None
        self._kept.move_to_end(query)
        return found[1]

    def last(self, query: DocumentQuery) -> ClientDocument | None:
        """Return a document, however old; None without one."""
        found = self._kept.get(query)
        return None if found is None else found[1]

    def put(self, query: DocumentQuery, revision: int, document: ClientDocument) -> None:
        """Keep a document, unless one of a later revision is there; let go of the ones that are too much."""
        before = self._kept.get(query)
        if before is not None and before[0] > revision:
            return
        self._bytes += document.size - (0 if before is None else before[1].size)
        self._kept[query] = (revision, document)
        self._kept.move_to_end(query)
        while self._bytes > self._most and len(self._kept) > 1:
            self._bytes -= self._kept.popitem(last=False)[1][1].size


class Documents:
    """The documents of a store. Used from any thread; `at_once` never waits for the database, `get` may.

    A change that this server commits is in every document asked for after its commit: the store tells `at_least` of it first.
    """

    def __init__(self, store: Store, clock: Clock, log: Logger) -> None:
        self._store = store
        self._clock = clock
        self._log = log
        self._cell = threading.Lock()
        self._reading = threading.Lock()
        self._wanted = 0
        self._environments: OrderedDict[str, Environment] = OrderedDict()
        self._shelf = DocumentCache()
        self._next_try = float("-inf")
        self._away = False
        store.watch(self.at_least)

    def at_least(self, revision: int) -> None:
        """Serve nothing older than a revision from now on, as long as the database can be read."""
        with self._cell:
            self._wanted = max(self._wanted, revision)

    def at_once(self, query: DocumentQuery) -> ClientDocument | None:
        """Return a document that is up to date and in memory; None where it must be read or put together first."""
        with self._cell:
            return self._shelf.find(query, self._wanted)

    def get(self, query: DocumentQuery) -> ClientDocument:
        """Return a document. Raises `DatabaseError` when there is none and the database cannot be read."""
        return self.at_once(query) or self._made(query, self._environment(query.environment))

    def feature(self, query: DocumentQuery, name: str) -> bytes | None:
        """Return one feature of a document; None where the document does not have it. Raises `DatabaseError`."""
        found = self._environment(query.environment).entries.get(name)
        if found is None or not query.takes(found):
            return None
        return found.inline if query.inline else found.body

    def _made(self, query: DocumentQuery, environment: Environment) -> ClientDocument:
        """Return the document of an environment as it was read, and keep it."""
        with self._cell:
            known = self._shelf.find(query, environment.revision)
            last = self._shelf.last(query)
        if known is not None:
            return known
        made = make_document(query, environment)
        if last is not None and last.digest == made.digest:
            made = last
        with self._cell:
            self._shelf.put(query, environment.revision, made)
        return made

    def _environment(self, name: str) -> Environment:
        """Return an environment that is up to date, or as it was last where it cannot be read now."""
        last, fresh = self._known(name)
        if last is not None and fresh:
            return last
        if not self._reading.acquire(timeout=-1 if last is None else PATIENCE_S) and last is not None:
            return last
        try:
            found, fresh = self._known(name)
            if found is not None and (fresh or self._clock.monotonic() < self._next_try):
                return found
            return self._try(name, found)
        finally:
            self._reading.release()

    def _known(self, name: str) -> tuple[Environment | None, bool]:
        with self._cell:
            found = self._environments.get(name)
            return found, found is not None and found.revision >= self._wanted

    def _try(self, name: str, last: Environment | None) -> Environment:
        """Read an environment; where that fails, return the last one, if there is one."""
        try:
            found = self._read(name)
        except DatabaseError as error:
            self._next_try = self._clock.monotonic() + AGAIN_S
            if last is None:
                raise
            if not self._away:
                self._log.warn("the database cannot be read, the last documents are served", error=str(error))
            self._away = True
            return last
        if self._away:
            self._log.info("the database can be read again")
        self._away = False
        return found

    def _read(self, name: str) -> Environment:
        """Read an environment and keep it."""
        with self._store.reading() as tx:
            found = read_environment(tx, name)
        with self._cell:
            self._environments[name] = found
            self._environments.move_to_end(name)
            while len(self._environments) > MOST_ENVIRONMENTS:
                self._environments.popitem(last=False)
        return found


def make_document(query: DocumentQuery, environment: Environment) -> ClientDocument:
    """Return a document, put together from the pieces of an environment."""
    taken = joined(
        each.inline if query.inline else each.body for each in environment.entries.values() if query.takes(each)
    )
    content = b'{"version":%d,"features":[%b],"query":%b' % (VERSION, taken, encode(query.shown()))
    if not query.inline:
        content += b',"segments":' + environment.segments
    digest = blake2b(content, digest_size=DIGEST_BYTES).hexdigest()
    tag = f'"{digest}:{environment.revision}:v1"'
    meta = {"revisionId": environment.revision, "etag": tag, "queryHash": digest}
    body = content + b',"meta":' + encode(meta) + b"}"
    packed = isal_zlib.compress(body, GZIP_LEVEL, GZIP_FORMAT) if len(body) >= SMALLEST_PACKED else None
    return ClientDocument(body, packed, digest, tag.encode())
