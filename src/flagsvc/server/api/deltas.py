"""The changes of documents for server-side SDKs, on request and as event streams (dialects: Delta and streaming).

A commit has the documents read at once that callers with streams have. All other documents are read at the next request. A caller
that hears of a change has it, which the pages show.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from flagsvc.core.clock import Clock
from flagsvc.core.errors import DatabaseError
from flagsvc.core.log import Logger, locate_error
from flagsvc.http.delta import Changes, DeltaChannel, DeltaChannels, make_id, split_content
from flagsvc.http.streams import MayStay, Streams, Subscriber
from flagsvc.server.api.pollers import Pollers, Who
from flagsvc.server.store.documents import RETRY_S, ClientDocument, DocumentQuery

if TYPE_CHECKING:
    from flagsvc.server.store.documents import Documents


class DocumentChannel(DeltaChannel):
    """The callers of one document. `document` is the last one taken, and `announced` the last one that callers with streams hear
    of."""

    def __init__(self, deltas: Deltas, query: DocumentQuery) -> None:
        super().__init__(deltas.streams)
        self.query = query
        self.document: ClientDocument | None = None
        self.announced: ClientDocument | None = None
        self._deltas = deltas
        self._lock = threading.Lock()

    def take(self, document: ClientDocument) -> Changes:
        """Take a document, and return the changes until it. Any thread may call it; an older document changes nothing."""
        with self._lock:
            before = self.document
            if document is not before and (before is None or document.revision >= before.revision):
                self.changes.take(make_id(document.digest), *split_content(document.body))
                self.document = document
        return self.changes

    def publish(self, committed: float = 0.0) -> None:
        """Tell the callers with streams of the document. `committed` is when its change was committed; 0 if that is not known."""
        with self._lock:
            self.announced, identity = self.document, self.changes.identity
        self.announce(identity, committed)

    def join(self) -> None:
        """Tell of the newest document. If that has to be read first, the callers hear of it soon."""
        self._deltas.follow(self)
        self.publish()


class Sdk(Subscriber):
    """One SDK with a stream. `who` has its own names."""

    def __init__(self, channel: DocumentChannel, network: bytes, known: str, may_stay: MayStay, deltas: Deltas, who: Who) -> None:
        super().__init__(channel, network, known, may_stay)
        self._document_channel = channel
        self._deltas = deltas
        self._who = who

    def on_open(self) -> None:
        """Join the others, and have the document from now on."""
        super().on_open()
        self._note()

    def update(self) -> bool:
        """Tell the newest version. The caller has the document then."""
        is_told = super().update()
        if is_told:
            self._note()
        return is_told

    def beat(self, now: float) -> None:
        """Show that the stream lives. Its caller is still there, with the same document."""
        before = self.told
        super().beat(now)
        if self.told == before:
            self._note()

    def _note(self) -> None:
        """Note what the caller has. A caller that does not read has not got all of it yet."""
        channel, outlet = self._document_channel, self.outlet
        if outlet is not None and not outlet.is_full() and self.told == channel.version and channel.announced is not None:
            self._deltas.pollers.note(channel.query, self._who, channel.announced, self._deltas.clock.now())


class Deltas:
    """The changes of all documents that SDKs ask for."""

    def __init__(self, documents: Documents, pollers: Pollers, streams: Streams, clock: Clock, log: Logger) -> None:
        self.documents = documents
        self.pollers = pollers
        self.streams = streams
        self.clock = clock
        self.log = log
        self.channels: DeltaChannels[DocumentQuery, DocumentChannel] = DeltaChannels(
            lambda query: DocumentChannel(self, query), clock
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._committed = 0.0
        self._is_behind = False
        self._renewing: asyncio.Task[None] | None = None
        self._retry: asyncio.TimerHandle | None = None

    def follow(self, channel: DocumentChannel) -> None:
        """From now on, let a channel follow the commits."""
        self._loop = asyncio.get_running_loop()
        self.channels.note_stream(channel)
        found = self.documents.get_cached(channel.query)
        if found is None:
            self._renew_soon()
        else:
            channel.take(found)

    def note_commit(self) -> None:
        """Tell the callers with streams of a commit. Any thread may call it; without a stream nothing happens."""
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(self._renew_soon, time.monotonic())

    def _renew_soon(self, committed: float = 0.0) -> None:
        self._committed, self._is_behind = committed or self._committed, True
        if self._retry is not None:
            self._retry.cancel()
        if self._renewing is None:
            self._renewing = asyncio.ensure_future(self._renew())

    async def _renew(self) -> None:
        """Read the documents of callers with streams, until no commit came meanwhile. What cannot be read is read again later."""
        is_complete = False
        try:
            while self._is_behind:
                self._is_behind = False
                self.channels.forget_unused()
                is_complete = all([await self._read(each) for each in self.channels.list_streamed()])
        finally:
            self._renewing = None
        if is_complete:
            self._committed = 0.0
        else:
            self._retry = asyncio.get_running_loop().call_later(RETRY_S, self._renew_soon)

    async def _read(self, channel: DocumentChannel) -> bool:
        """Read a document and tell of it. Return whether it is the newest."""
        try:
            channel.take(await asyncio.to_thread(self.documents.get, channel.query))
            channel.publish(self._committed)
        except DatabaseError:
            return False
        except Exception as error:  # the callers of other documents are told all the same
            self.log.error("an unexpected error", error=locate_error(error))
        return self.documents.get_cached(channel.query) is not None
