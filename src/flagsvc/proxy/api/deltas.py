"""The changes of the configuration for server-side SDKs (dialects: Delta and streaming).

A scope is what the callers of a service with the same filter get. What has changed in it is found out at the next request, or at
once while callers have streams.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from flagsvc.core.clock import Clock
from flagsvc.http.delta import Changes, DeltaChannel, DeltaChannels, digest_content, make_id
from flagsvc.http.http_errors import not_ready
from flagsvc.http.messages import HttpError
from flagsvc.http.streams import Streams
from flagsvc.proxy.api.client_documents import DocumentFilter, select_content
from flagsvc.proxy.configuration.holder import ConfigurationDocument, ConfigurationHolder


class DeltaScope(DeltaChannel):
    """The part of the configuration that passes a filter."""

    def __init__(self, streams: Streams, holder: ConfigurationHolder, wanted: DocumentFilter, scopes: DeltaScopes) -> None:
        super().__init__(streams)
        self._scopes = scopes
        self._holder: Final = holder
        self._wanted: Final = wanted
        self._document: ConfigurationDocument | None = None

    def renew(self) -> Changes:
        """Return the changes until the configuration that is served. Raises HttpError (500, 503)."""
        served = self._holder.document
        if served is None:
            raise not_ready()
        if served is not self._document:
            features, segments = select_content(served.body, self._wanted)
            digest = (served.digest if self._wanted.takes_all() else "") or digest_content(features, segments)
            self.changes.take(make_id(digest), features, segments)
            self._document = served
        return self.changes

    def join(self) -> None:
        """Tell the callers of the configuration that is served. If that is impossible, their streams end."""
        self._scopes.note_stream(self)
        try:
            self.announce(self.renew().identity)
        except HttpError:
            self.end_all()


class DeltaScopes(DeltaChannels[DocumentFilter, DeltaScope]):
    """The scopes of a service, which share `streams`. They follow the configuration in turn, between requests."""

    def __init__(self, streams: Streams, holder: ConfigurationHolder, clock: Clock) -> None:
        super().__init__(lambda wanted: DeltaScope(streams, holder, wanted, self), clock)
        self._behind: deque[DeltaScope] = deque()
        self._is_working = False
        holder.whole.parts.add(self)

    def follow(self) -> None:
        """Tell the callers with streams of the configuration that is served now, and forget what was not used lately."""
        self.forget_unused()
        self._behind = deque(self.list_streamed())
        if self._behind and not self._is_working:
            self._is_working = True
            asyncio.get_running_loop().call_soon(self._work)

    def _work(self) -> None:
        """Let the next scope follow, and the others after the requests that wait."""
        if self._behind:
            asyncio.get_running_loop().call_soon(self._work)
            self._behind.popleft().join()
        else:
            self._is_working = False
