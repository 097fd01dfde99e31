"""Event streams of a proxy for browsers: a caller with an open stream, and the numbers in the proxy's metrics."""

from __future__ import annotations

import contextlib
import http.client
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from support.processes import KEY, Proxy
from support.worker_pools import samples

SECONDS = 20.0


class Listener:
    """A caller that reads a stream, or was refused: then `status` is not 200."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self._response = response

    def next(self, start: str) -> str | None:
        """Return the rest of the next line that begins so; None if the stream ends before. Raises OSError after silence."""
        with contextlib.suppress(http.client.IncompleteRead):
            while line := self._response.readline().decode():
                if line.startswith(start):
                    return line.removeprefix(start).rstrip("\n")
        return None

    def version(self) -> str | None:
        """Return the next version that is told; None at the end."""
        return self.next("id: ")

    def beats(self) -> bool:
        """Wait for the next heartbeat. Returns whether there is one before the end."""
        return self.next(":") is not None


@contextmanager
def listening(url: str, key: str = KEY, *, tls: ssl.SSLContext | None = None, seconds: float = SECONDS) -> Iterator[Listener]:
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port
    connection = (
        http.client.HTTPConnection(host, port, timeout=seconds)
        if tls is None
        else http.client.HTTPSConnection(host, port, timeout=seconds, context=tls)
    )
    try:
        connection.request("GET", url.partition(parts.netloc)[2], headers={"Authorization": key} if key else {})
        yield Listener(connection.getresponse())
    finally:
        connection.close()


def count(proxy: Proxy, name: str = "open") -> int:
    """Return a number of event streams in the proxy's metrics."""
    return int(samples(proxy)[f"flagsvc_streams_{name}"])


def wait_streams(proxy: Proxy, number: int, name: str = "open") -> None:
    """Wait until so many streams are open at the proxy, or have been opened."""
    proxy.program.wait(lambda: count(proxy, name) == number, f"one with {number} streams {name}", SECONDS)
