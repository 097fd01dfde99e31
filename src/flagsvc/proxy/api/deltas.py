"""The changes of the configuration for server-side SDKs (dialects: Delta and streaming).

A scope is what the callers of a service with the same filter get. What has changed in it is found out at the next request, or at
once while callers have streams.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from typing import Final

from flagsvc.core.clock import Clock
from flagsvc.http.delta import Changes, DeltaChannel, digest_content, make_id
from flagsvc.http.http_errors import not_ready
from flagsvc.http.messages import HttpError
from flagsvc.http.streams import RETRY_AFTER_S, Streams
from flagsvc.proxy.api.client_documents import DocumentFilter, select_content
from flagsvc.proxy.configuration.holder import ConfigurationDocument, ConfigurationHolder

MAX_SCOPES: Final = 64
"""The most filters whose changes are remembered. For one more, the filter ends that was asked for least recently."""
FORGET_S: Final = 600.0
"""Seconds without a request and without a stream after which the changes for a filter are forgotten."""
CROWDED: Final = "callers with too many different filters have event streams; ask for the features instead"


class DeltaScope(DeltaChannel):
    """The part of the configuration that passes a filter. `used` is the moment of the last request."""

    def __init__(self, streams: Streams, holder: ConfigurationHolder, wanted: DocumentFilter) -> None:
        super().__init__(streams)
        self._holder: Final = holder
        self._wanted: Final = wanted
        self._document: ConfigurationDocument | None = None
        self.used = 0.0

    def renew(self) -> Changes:
        """Return the changes until the configuration that is served. Raises HttpError (500, 503)."""
        served = self._holder.document
        if served is None:
            raise not_ready()
        if served is not self._document:
            features, segments = select_content(served.body, self._wanted)
            is_whole = self._wanted.takes_all() and self._holder is self._holder.whole
            digest = (served.digest if is_whole else "") or digest_content(features, segments)
            self.changes.take(make_id(digest), features, segments)
            self._document = served
        return self.changes

    def join(self) -> None:
        """Tell the callers of the configuration that is served. If that is impossible, their streams end."""
        try:
            self.announce(self.renew().identity)
        except HttpError:
            self.end_all()


class DeltaScopes:
    """The scopes of a service, which share `streams`. They follow the configuration one after the other, between requests."""

    def __init__(self, streams: Streams, holder: ConfigurationHolder, clock: Clock) -> None:
        self._streams = streams
        self._holder = holder
        self._clock = clock
        self._found: OrderedDict[DocumentFilter, DeltaScope] = OrderedDict()
        self._behind: deque[DeltaScope] = deque()
        self._is_working = False
        holder.whole.parts.add(self)

    def __len__(self) -> int:
        """Return how many scopes are kept."""
        return len(self._found)

    def find(self, wanted: DocumentFilter) -> DeltaScope:
        """Return the scope of a filter. Raises HttpError (429) if callers with too many other filters have streams."""
        found = self._found.get(wanted)
        if found is None:
            self._make_room()
            found = self._found[wanted] = DeltaScope(self._streams, self._holder, wanted)
        self._found.move_to_end(wanted)
        found.used = self._clock.monotonic()
        return found

    def _make_room(self) -> None:
        if len(self._found) < MAX_SCOPES:
            return
        unused = next((wanted for wanted, scope in self._found.items() if not scope.subscribers), None)
        if unused is None:
            raise HttpError(429, CROWDED, [], "", RETRY_AFTER_S)
        del self._found[unused]

    def follow(self) -> None:
        """Tell the callers with streams of the configuration that is served now, and forget what nobody has used lately."""
        since = self._clock.monotonic() - FORGET_S
        for wanted, scope in list(self._found.items()):
            if not scope.subscribers and scope.used < since:
                del self._found[wanted]
        self._behind = deque(scope for scope in self._found.values() if scope.subscribers)
        if self._behind and not self._is_working:
            self._is_working = True
            asyncio.get_running_loop().call_soon(self._work)

    def _work(self) -> None:
        """Let the next scope follow, and the others after the requests that wait."""
        if self._behind:
            scope = self._behind.popleft()
            if scope.subscribers:
                scope.join()
            asyncio.get_running_loop().call_soon(self._work)
        else:
            self._is_working = False

    def end_all(self) -> None:
        """End every stream."""
        for scope in self._found.values():
            scope.end_all()
