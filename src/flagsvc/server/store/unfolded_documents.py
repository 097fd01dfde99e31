"""Documents that are unfolded for explanations. Compiling one takes time, so that a few are kept, by environment and content."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from flagsvc.engine.options import CompileOptions
from flagsvc.reasons.unfolded import Unfolded
from flagsvc.server.store.documents import DocumentQuery, Documents

MOST: Final = 4
"""Documents that are kept. The least recently used one is dropped first."""


class UnfoldedDocument:
    """The document of an environment at a revision. `lock` is for one user at a time, because each use unfolds more of it."""

    def __init__(self, body: bytes) -> None:
        self.lock = threading.Lock()
        self.revision = 0
        self._body: bytes | None = body
        self._unfolded: Unfolded | None = None

    @property
    def unfolded(self) -> Unfolded:
        """The unfolded document; the first use makes it."""
        if self._unfolded is None:
            assert self._body is not None
            document = msgspec.json.decode(self._body)
            self.revision = document["meta"]["revisionId"]
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
            kept = self._kept.setdefault((environment, found.digest), UnfoldedDocument(found.body))
            self._kept.move_to_end((environment, found.digest))
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)
        with kept.lock:
            yield kept

    def __len__(self) -> int:
        """Return how many documents are kept."""
        return len(self._kept)
