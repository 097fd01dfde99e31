"""The client-features documents as bytes: read once per change, served from memory.

The first request after a change reads the features of the environment (client_features.py); one thread reads for all that wait.
A change that does not affect a document keeps its bytes and its entity tag. While the database cannot be read, the last
documents are served.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

import msgspec
from isal import isal_zlib

from flagsvc.core.clock import Clock
from flagsvc.core.errors import DatabaseError
from flagsvc.core.log import Logger
from flagsvc.engine.options import CompileOptions
from flagsvc.reasons.unfolded import Unfolded
from flagsvc.server.store.client_features import (
    EnvironmentFeatures,
    FeatureEntry,
    encode,
    read_environment_features,
)
from flagsvc.server.store.store import Store

VERSION = 2
ALL = "*"
MAX_CACHE_BYTES = 128 * 1024 * 1024
"""The most bytes of cached documents, with their gzip forms. The least recently used one is dropped first."""
DOCUMENT_OVERHEAD = 1024
"""Bytes that the cache counts for a document besides its content: its query, its tag and its entry."""
MAX_ENVIRONMENTS = 64
RETRY_S = 1.0
"""Seconds after a failed read before the next one."""
READ_WAIT_S = 10.0
"""Seconds that a request waits for another thread's read before it uses the last document."""
DIGEST_BYTES = 8
MIN_GZIP_BYTES = 1024
GZIP_LEVEL = 1
GZIP_WINDOW_BITS = 31


@dataclass(frozen=True)
class DocumentQuery:
    """What a document contains; None if a filter is not set. `inline`: strategies contain their segments' constraints."""

    environment: str
    projects: tuple[str, ...] | None = None
    prefix: str | None = None
    tags: tuple[tuple[str, str], ...] | None = None
    inline: bool = False

    def matches(self, entry: FeatureEntry) -> bool:
        """Return whether a feature passes the filters."""
        return (
            (self.projects is None or entry.project in self.projects or ALL in self.projects)
            and (self.prefix is None or entry.name.startswith(self.prefix))
            and (self.tags is None or not entry.tags.isdisjoint(self.tags))
        )

    def to_json(self) -> dict[str, Any]:
        """Return the document's member `query`."""
        filters = {"tag": self.tags, "project": self.projects, "namePrefix": self.prefix}
        known = {name: value for name, value in filters.items() if value is not None}
        return known | {"environment": self.environment, "inlineSegmentConstraints": self.inline}


@dataclass(frozen=True)
class ClientDocument:
    """A document: its bytes, their gzip form if the document is large enough, and its entity tag, `"<digest>:<revision>:v1"`.

    Documents with the same digest have the same content, also on different servers.
    """

    body: bytes
    gzipped: bytes | None
    digest: str
    tag: bytes
    revision: int

    @property
    def size(self) -> int:
        """The bytes that the cache counts."""
        return len(self.body) + len(self.gzipped or b"") + DOCUMENT_OVERHEAD


class DocumentCache:
    """The cached documents, each with the newest revision for which it is valid. Not thread-safe."""

    def __init__(self, max_bytes: int = MAX_CACHE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: OrderedDict[DocumentQuery, tuple[int, ClientDocument]] = OrderedDict()

    def find(self, query: DocumentQuery, revision: int) -> ClientDocument | None:
        """Return a document that is valid for a revision; None without one."""
        found = self._entries.get(query)
        if found is None or found[0] < revision:
            return None
        self._entries.move_to_end(query)
        return found[1]

    def find_stale(self, query: DocumentQuery) -> ClientDocument | None:
        """Return a document of any age; None without one."""
        found = self._entries.get(query)
        return None if found is None else found[1]

    def put(self, query: DocumentQuery, revision: int, document: ClientDocument) -> None:
        """Cache a document, unless there is one of a later revision; drop documents over the limit."""
        before = self._entries.get(query)
        if before is not None and before[0] > revision:
            return
        self._bytes += document.size - (0 if before is None else before[1].size)
        self._entries[query] = (revision, document)
        self._entries.move_to_end(query)
        while self._bytes > self._max_bytes and len(self._entries) > 1:
            self._bytes -= self._entries.popitem(last=False)[1][1].size


class Documents:
    """The documents of a store. Safe to use from any thread; `get_cached` never waits for the database, `get` may.

    A document requested after a commit of this server contains the change: the store calls `require_revision` before
    `writing` returns.
    """

    def __init__(self, store: Store, clock: Clock, log: Logger) -> None:
        self._store = store
        self._clock = clock
        self._log = log
        self._lock = threading.Lock()
        self._read_lock = threading.Lock()
        self._required_revision = 0
        self._environments: OrderedDict[str, EnvironmentFeatures] = OrderedDict()
        self._cache = DocumentCache()
        self._next_try = float("-inf")
        self._database_down = False
        store.watch(self.require_revision)

    def require_revision(self, revision: int) -> None:
        """From now on serve nothing older than a revision, as long as the database can be read."""
        with self._lock:
            self._required_revision = max(self._required_revision, revision)

    def get_cached(self, query: DocumentQuery) -> ClientDocument | None:
        """Return an up-to-date document from memory; None if it must be read or built first."""
        with self._lock:
            return self._cache.find(query, self._required_revision)

    def get(self, query: DocumentQuery) -> ClientDocument:
        """Return a document. Raises `DatabaseError` when there is none and the database cannot be read."""
        return self.get_cached(query) or self._build(query, self._environment(query.environment))

    def feature(self, query: DocumentQuery, name: str) -> bytes | None:
        """Return one feature of a document; None if the document does not have it. Raises `DatabaseError`."""
        found = self._environment(query.environment).entries.get(name)
        if found is None or not query.matches(found):
            return None
        return found.inline if query.inline else found.body

    def _build(self, query: DocumentQuery, environment: EnvironmentFeatures) -> ClientDocument:
        with self._lock:
            known = self._cache.find(query, environment.revision)
            stale = self._cache.find_stale(query)
        if known is not None:
            return known
        document = make_document(query, environment)
        if stale is not None and stale.digest == document.digest:
            document = stale
        with self._lock:
            self._cache.put(query, environment.revision, document)
        return document

    def _environment(self, name: str) -> EnvironmentFeatures:
        """Return the features of an environment, up to date if they can be read, else as last read."""
        stale, fresh = self._find_environment(name)
        if stale is not None and fresh:
            return stale
        if not self._read_lock.acquire(timeout=-1 if stale is None else READ_WAIT_S) and stale is not None:
            return stale
        try:
            found, fresh = self._find_environment(name)
            if found is not None and (fresh or self._clock.monotonic() < self._next_try):
                return found
            return self._read_or_reuse(name, found)
        finally:
            self._read_lock.release()

    def _find_environment(self, name: str) -> tuple[EnvironmentFeatures | None, bool]:
        with self._lock:
            found = self._environments.get(name)
            return found, found is not None and found.revision >= self._required_revision

    def _read_or_reuse(self, name: str, stale: EnvironmentFeatures | None) -> EnvironmentFeatures:
        """Read an environment; where that fails, return `stale`, or raise if that is None."""
        try:
            found = self._read(name)
        except DatabaseError as error:
            self._next_try = self._clock.monotonic() + RETRY_S
            if stale is None:
                raise
            if not self._database_down:
                self._log.warn("the database cannot be read, the last documents are served", error=str(error))
            self._database_down = True
            return stale
        if self._database_down:
            self._log.warn("the database can be read again")
        self._database_down = False
        return found

    def _read(self, name: str) -> EnvironmentFeatures:
        with self._lock:
            before = self._environments.get(name)
        with self._store.reading() as tx:
            found = read_environment_features(tx, name, before, self._store.changed)
        if found.broken:
            self._log.warn("flags are left out, what is stored of them cannot be read", flags=found.broken)
        with self._lock:
            self._environments[name] = found
            self._environments.move_to_end(name)
            while len(self._environments) > MAX_ENVIRONMENTS:
                self._environments.popitem(last=False)
        return found


def make_document(query: DocumentQuery, environment: EnvironmentFeatures) -> ClientDocument:
    matching = filter(query.matches, environment.entries.values())
    taken = b",".join(each.inline if query.inline else each.body for each in matching)
    content = b'{"version":%d,"features":[%b],"query":%b' % (VERSION, taken, encode(query.to_json()))
    if not query.inline:
        content += b',"segments":' + environment.segments
    digest = blake2b(content, digest_size=DIGEST_BYTES).hexdigest()
    tag = f'"{digest}:{environment.revision}:v1"'
    meta = {"revisionId": environment.revision, "etag": tag, "queryHash": digest}
    body = content + b',"meta":' + encode(meta) + b"}"
    gzipped = isal_zlib.compress(body, GZIP_LEVEL, GZIP_WINDOW_BITS) if len(body) >= MIN_GZIP_BYTES else None
    return ClientDocument(body, gzipped, digest, tag.encode(), environment.revision)


MOST_UNFOLDED: Final = 4
"""Documents that are kept. The least recently used one is dropped first."""


class UnfoldedDocument:
    """The document of an environment at a revision. `lock` is for one user at a time, because each use unfolds more of it."""

    def __init__(self, document: ClientDocument) -> None:
        self.lock = threading.Lock()
        self.revision = document.revision
        self.digest = document.digest
        self._body: bytes | None = document.body
        self._unfolded: Unfolded | None = None

    @property
    def unfolded(self) -> Unfolded:
        """The unfolded document; the first use makes it."""
        if self._unfolded is None:
            assert self._body is not None
            document = msgspec.json.decode(self._body)
            self._unfolded, self._body = Unfolded(document, CompileOptions()), None
        return self._unfolded


class UnfoldedDocuments:
    """The documents that clients get, unfolded. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], UnfoldedDocument] = OrderedDict()

    @contextmanager
    def using(self, documents: Documents, environment: str) -> Iterator[UnfoldedDocument]:
        """Give the present document of an environment to one user at a time. Raises DatabaseError if it cannot be read."""
        found = documents.get(DocumentQuery(environment))
        with self._lock:
            kept = self._kept.setdefault((environment, found.digest), UnfoldedDocument(found))
            self._kept.move_to_end((environment, found.digest))
            while len(self._kept) > MOST_UNFOLDED:
                self._kept.popitem(last=False)
        with kept.lock:
            yield kept

    def __len__(self) -> int:
        """Return how many documents are kept."""
        return len(self._kept)
