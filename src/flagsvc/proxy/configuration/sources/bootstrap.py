"""The document to begin with while the upstream is away (specification: Experimental options)."""

from __future__ import annotations

from flagsvc.core.clock import Clock
from flagsvc.core.errors import ConfigurationError, UpstreamError
from flagsvc.proxy.configuration.locations import file_path, is_file_url
from flagsvc.proxy.configuration.sources.file import FileSource
from flagsvc.proxy.upstream import Fetched, Outbound, Trust, download


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
        """Return the document. It is read each time, and `etag` is ignored. Raises UpstreamError."""
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
