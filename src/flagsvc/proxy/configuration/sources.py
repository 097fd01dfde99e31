"""The sources of configuration documents: the upstream, a file, a bootstrap address. Each is a `Source` of the poller.

(behaviour: Fetching the configuration; specification: Experimental options)
"""

from __future__ import annotations

import asyncio
import math
import os
import re
from pathlib import Path

from flagsvc.core.clock import Clock, SystemClock
from flagsvc.core.errors import ConfigurationError, UpstreamError
from flagsvc.core.files import LARGEST_DOCUMENT, read_bounded
from flagsvc.proxy.configuration.stores import file_path, is_file_url
from flagsvc.proxy.upstream import Fetched, Outbound, Trust, Upstream, download


class BootstrapSource:
    """A client-features document at an http, https or `file:` URL, fetched once."""

    pace: float | None = None

    def __init__(
        self,
        url: str,
        *,
        authorization: str | None = None,
        trust: Trust | None = None,
        outbound: Outbound | None = None,
        clock: Clock,
    ) -> None:
        """Take the URL, and the value of the Authorization header or None."""
        self._url = url
        self._authorization = authorization
        self._trust = trust or Trust()
        self._outbound = outbound or Outbound()
        self._clock = clock

    async def fetch(self, etag: str | None) -> Fetched:
        """Return the document. Each call reads it again and ignores `etag`. Raises UpstreamError."""
        try:
            if is_file_url(self._url):
                return await FileSource(file_path(self._url), clock=self._clock, refresh_ms=0).fetch(None)
            body = await download(
                self._url,
                authorization=self._authorization,
                trust=self._trust,
                outbound=self._outbound,
                clock=self._clock,
            )
        except ConfigurationError as error:
            raise UpstreamError("unexpected", str(error)) from None
        return Fetched(body)


WATCH_S = 0.5
"""Seconds between two checks of the file's date, size and identity."""
SETTLED_S = 2.0
"""A date younger than this is not reliable: a second change within the same tick of the file system's clock has the same date."""


class FileSource:
    """A client-features document in a file. It is read again when the file has changed, and at every refresh interval.

    The ETag consists of date, size and identity of the file. A file that is only half written is not JSON. So it is rejected, and
    read again a moment later.
    """

    def __init__(self, path: Path, *, clock: Clock, refresh_ms: int) -> None:
        """Take the path. With `refresh_ms` 0 the file is read again only when it has changed."""
        self.pace: float | None = WATCH_S
        self._path = path
        self._clock = clock
        self._refresh_s = refresh_ms / 1000 or math.inf
        self._read_at = -math.inf

    async def fetch(self, etag: str | None) -> Fetched:
        """Return the document, or that the one with `etag` is still current. Raises UpstreamError."""
        return await asyncio.to_thread(self._fetch, etag)

    def _fetch(self, etag: str | None) -> Fetched:
        try:
            is_due = self._clock.monotonic() - self._read_at >= self._refresh_s
            if etag is not None and not is_due and etag == signature(self._path.stat()):
                return Fetched(None, etag)
            self._read_at = self._clock.monotonic()
            return self._read()
        except FileNotFoundError:
            raise UpstreamError("not-found", f"there is no file `{self._path}`") from None
        except OSError as error:
            raise UpstreamError("unexpected", f"`{self._path}` cannot be read: {error.strerror}") from None

    def _read(self) -> Fetched:
        with self._path.open("rb") as file:
            before = os.fstat(file.fileno())
            body = read_bounded(file, LARGEST_DOCUMENT)
            after = os.fstat(file.fileno())
        if signature(before) != signature(after):
            raise UpstreamError("document", f"`{self._path}` changed while it was read")
        is_settled = abs(self._clock.now() - after.st_mtime) >= SETTLED_S
        return Fetched(body, signature(after) if is_settled else None)


def signature(stat: os.stat_result) -> str:
    """Return a text that differs when a file has changed, without reading it."""
    return f"{stat.st_mtime_ns:x}-{stat.st_size:x}-{stat.st_ino:x}"


LEAST_PAUSE_S = 0.1
"""The fewest seconds between two polls that a stream causes. Events in between are one."""
AGAIN_S = (0.25, 0.5, 1.0, 2.0)
"""Seconds before each further poll for a document that a stream has told of. A replica of the upstream may get it later."""
MOST_UNTOLD = 2
"""Changes in a row that polls find beside a stream, after which the stream is behind. One may be faster than its event."""
MARK = re.compile(r'(?:W/)?"([0-9a-f]{13})[0-9a-f]{3}:\d+:v1"')
"""The ETag of a document of our flag server, with the digits of its event id."""


def event_id_of(etag: str | None) -> str:
    """Return the id of the event that announces the document with this ETag; empty if the ETag does not tell."""
    found = None if etag is None else MARK.fullmatch(etag)
    return "" if found is None else str(int(found[1], 16))


class HttpSource:
    """The features endpoint of an upstream, polled at the refresh interval, and immediately when it is told to.

    `event_id` is the id of the event that would announce the document that was fetched last; empty if that is not known. While
    a stream is open, `calm_s` is the fewest seconds between two polls that nothing has asked for. While the source `is_patient`, a
    stream does not cause a poll. `has_failed` tells whether the last fetch has. `polled` is set after each fetch, and `behind` when
    polls have found changes beside a stream that told of none.
    """

    pace: float | None = None

    def __init__(self, upstream: Upstream, clock: Clock | None = None) -> None:
        """Take the session. The caller closes it."""
        self.event_id = ""
        self.calm_s = 0.0
        self.is_patient = False
        self.has_failed = False
        self.polled = asyncio.Event()
        self.behind = asyncio.Event()
        self._upstream = upstream
        self._clock = clock or SystemClock()
        self._due = asyncio.Event()
        self._is_asked = False
        self._polled_at = -math.inf
        self._expected: str | None = None
        self._told = self._told_before = 0
        self._untold = 0
        self._etag: str | None = None
        self._again: list[float] = []
        self._renewals = 0
        self._known = 0

    @property
    def is_renewing(self) -> bool:
        """Whether nothing was fetched with the present token yet."""
        return self._renewals != self._known

    def renew(self) -> None:
        """Poll now without an ETag, because the token has changed: documents of the old token may differ."""
        self._renewals += 1
        self._etag = None
        self.poll_now()

    def poll_now(self) -> None:
        """Poll now, also within a pause that the upstream has asked for."""
        self._is_asked = True
        self._due.set()

    def tell(self, event_id: str) -> None:
        """Poll soon, because a stream tells of the document with this event id, unless that document is here already.

        If the upstream does not have it yet, it is asked a few times more.
        """
        self._untold = 0
        if not event_id or self.is_renewing or event_id != self.event_id:
            self._expected, self._again = event_id, list(AGAIN_S)
            self.poll_soon()

    def poll_soon(self) -> None:
        """Poll soon, but not within a pause that the upstream has asked for."""
        self._told += 1
        self._due.set()

    async def news(self) -> None:
        """Wait until a poll is requested."""
        await self._due.wait()
        while self.is_patient and not self._is_asked:
            self._due.clear()
            await self._due.wait()
        rest = self._polled_at + LEAST_PAUSE_S - self._clock.monotonic()
        if rest > 0 and not self._is_asked:
            await self._clock.sleep(rest)

    def pause_after(self, interval: float) -> float:
        """Return the seconds until the next poll, after one that went well. `interval` is the refresh interval."""
        if self.is_patient:
            return interval
        if self._expected is not None and self._again:
            return min(interval, self._again.pop(0))
        self._expected = None
        return max(interval, self.calm_s)

    async def fetch(self, etag: str | None) -> Fetched:
        """Return the document, or that the one with `etag` is still current. Raises UpstreamError."""
        self._due.clear()
        self._is_asked = False
        self._polled_at = self._clock.monotonic()
        renewals, told = self._renewals, self._told
        try:
            fetched = await self._upstream.get_features(etag if renewals == self._known else None)
        except UpstreamError:
            self.has_failed = True
            raise
        finally:
            self.polled.set()
        self.has_failed = False
        self._known = renewals
        self._settle(fetched, told)
        self._compare(fetched, told)
        return fetched

    def _compare(self, fetched: Fetched, told: int) -> None:
        """Count a change that a poll has found beside a stream, and that the stream has not told of."""
        before, self._etag = self._etag, fetched.etag
        told_before, self._told_before = self._told_before, told
        if self.calm_s and told == told_before and before is not None and fetched.etag not in (None, before):
            self._untold += 1
        if self._untold >= MOST_UNTOLD:
            self._untold = 0
            self.behind.set()

    def _settle(self, fetched: Fetched, told: int) -> None:
        """Expect nothing more if this is what a stream has told of. An upstream whose ETags do not tell has it if it is new.

        `told` is what had been told before the request.
        """
        self.event_id = event_id_of(fetched.etag)
        if self._expected is None:
            return
        if self.event_id and self._expected:
            if self._expected == self.event_id:
                self._expected = None
                if not self._is_asked:
                    self._due.clear()
        elif fetched.body is not None and told == self._told:
            self._expected = None
