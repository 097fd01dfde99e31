"""One request in, one limited answer out. Every failure is an UpstreamError.

`dialling` opens connections, and `connection` speaks over one. This module keeps, reuses and counts them. No message repeats a
header, so that the token cannot reach a log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit

from flagsvc.core.errors import ConfigurationError, UnreachableError, UpstreamError
from flagsvc.http.client.addresses import host_header, target_of
from flagsvc.http.client.answers import Answer, Body, Limits, Sink, coding_of
from flagsvc.http.client.connection import BrokenError, ClientConnection, Keep, ignore, nothing_kept
from flagsvc.http.client.dialling import DialRoute, Refusal, basic, in_words, no_refusal, route_to
from flagsvc.http.client.trust import Trust

MOST_CONNECTIONS = 4
MOST_KEPT = 2
KEPT_S = 60.0
Header = tuple[str, bytes]


class Transport:
    """A few kept-alive connections to one origin, direct or through one outbound proxy. Does not read the environment."""

    def __init__(
        self,
        shown: str,
        *,
        proxy: str | None,
        trust: Trust,
        limits: Limits,
        refusal: Refusal = no_refusal,
        receive: Callable[[int], object] = ignore,
    ) -> None:
        """Take an address at the origin for messages, the outbound proxy's URL, the trust settings and the limits.

        `refusal` says to which IP addresses no connection may go. `receive` is told the number of bytes that arrive.

        Raises UnreachableError for an invalid host, and for certificates that cannot be used.
        """
        self._shown = shown
        self._receive = receive
        self._limits = limits
        self._kept: list[ClientConnection] = []
        self._streams: set[ClientConnection] = set()
        self._closed = False
        self._places = asyncio.Semaphore(MOST_CONNECTIONS)
        try:
            self._route: DialRoute = route_to(shown, proxy, trust, refusal)
        except ValueError:
            message = f"`{shown}`: that, or the outbound proxy, is no host that can be asked for"
            raise UnreachableError("network", message) from None
        except ConfigurationError as error:
            raise UnreachableError("network", str(error)) from None

    async def send(
        self,
        method: str,
        url: str,
        headers: Sequence[Header],
        content: bytes | None = None,
        *,
        reads: bool = False,
        whole: bool = False,
    ) -> Answer:
        """Send one request and return its answer. Redirects are not followed.

        A request that `reads`, and every GET, changes nothing on the server: the body of a successful answer is kept, and the
        request may be sent again. With `whole` the body of every answer is kept.

        Raises UpstreamError of kind `network`, UnreachableError if nothing was sent, or UpstreamError of kind `document` if the
        body is cut off, wrongly compressed or too large.
        """
        reads = reads or method == "GET"
        keep = self._collector if whole else self._collector_of_success if reads else nothing_kept
        with self._errors():
            request = self._written(method, url, headers, content)
            async with asyncio.timeout(self._limits.total_s), self._places:
                return await self._exchange(reads, keep, request)

    async def stream(self, url: str, headers: Sequence[Header], keep: Keep, silence_s: float) -> Answer:
        """Send a GET, and return its answer when its body has ended. What `keep` makes takes the body as it arrives.

        The answer has a connection of its own, and no time limit but one: at most `silence_s` seconds between two pieces. Redirects
        are not followed. Raises what `send` does, and UpstreamError of kind `silent` if nothing comes for so long.
        """
        with self._errors():
            request = self._written("GET", url, headers, None)
            connection = await self._dialled()
            self._streams.add(connection)
            try:
                if self._closed:
                    raise BrokenError("the session has ended", unsent=True)
                return await connection.ask(request, keep, silence_s)
            except TimeoutError:
                raise BrokenError(f"nothing has come for {silence_s:g} s", "silent") from None
            finally:
                self._streams.discard(connection)
                connection.abort()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn every failure of an exchange into an UpstreamError."""
        try:
            yield
        except BrokenError as error:
            kind = UnreachableError if error.unsent else UpstreamError
            raise kind(error.kind, f"`{self._shown}`: {error}") from None
        except TimeoutError:
            message = f"`{self._shown}`: no whole answer within {self._limits.total_s:g} s"
            raise UpstreamError("network", message) from None
        except OSError as error:
            raise UpstreamError("network", f"`{self._shown}`: {in_words(error)}") from None
        except UnicodeError:
            raise UnreachableError("network", f"`{self._shown}`: the request cannot be written as HTTP") from None

    async def aclose(self) -> None:
        """Close all connections. One with a pending answer is closed when the answer has arrived, but a stream now.

        On a kept connection nothing is under way, so TLS does not wait for a farewell: the event loop may end now.
        """
        self._closed = True
        for connection in (*self._kept, *self._streams):
            connection.abort()
        self._kept.clear()

    def _written(self, method: str, url: str, headers: Sequence[Header], content: bytes | None) -> bytes:
        """Return the encoded request. User and password of a URL become its Authorization."""
        parts = urlsplit(url)
        host, target, own = host_header(parts), target_of(parts), basic(parts)
        pairs = [pair for pair in headers if not (own and pair[0] == "authorization")]
        pairs += [("authorization", own)] if own else []
        pairs += [] if content is None else [("content-length", b"%d" % len(content))]
        if self._route.forwarded:
            target = f"{parts.scheme}://{host}{target}"
            pairs += [("proxy-authorization", self._route.credentials)] if self._route.credentials else []
        lines = [f"{method} {target} HTTP/1.1".encode("ascii"), b"host: " + host.encode("ascii")]
        lines += [name.encode("ascii") + b": " + value for name, value in pairs]
        return b"\r\n".join([*lines, b"", content or b""])

    async def _exchange(self, reads: bool, keep: Keep, request: bytes) -> Answer:
        """Send a request. A request that reads is sent again if the server closed a kept connection just then."""
        kept = self._taken()
        try:
            return await self._ask(kept or await self._dialled(), keep, request)
        except BrokenError as error:
            if kept is None or not error.unanswered or not reads:
                raise
        return await self._ask(await self._dialled(), keep, request)

    async def _ask(self, connection: ClientConnection, keep: Keep, request: bytes) -> Answer:
        try:
            answer = await connection.ask(request, keep, self._limits.step_s)
        except TimeoutError:
            raise BrokenError("no answer within the time limit") from None
        if connection.usable and not self._closed and len(self._kept) < MOST_KEPT:
            self._kept.append(connection)
        else:
            connection.close()
        return answer

    def _collector(self, status: int, headers: Mapping[str, str]) -> Sink:
        return Body(coding_of(headers), self._limits.max_bytes, self._shown)

    def _collector_of_success(self, status: int, headers: Mapping[str, str]) -> Sink | None:
        """Return the collector for the body of a successful answer."""
        return self._collector(status, headers) if status == 200 else None

    def _taken(self) -> ClientConnection | None:
        """Return the connection that was used last, if one is kept and usable."""
        now = asyncio.get_running_loop().time()
        while self._kept:
            connection = self._kept.pop()
            if connection.usable and now - connection.since < KEPT_S:
                return connection
            connection.close()
        return None

    async def _dialled(self) -> ClientConnection:
        try:
            async with asyncio.timeout(self._limits.step_s):
                connection = await self._route.dial()
        except BrokenError as error:
            raise BrokenError(str(error), error.kind, unsent=True) from None
        except TimeoutError:
            raise BrokenError("no connection within the time limit", unsent=True) from None
        except OSError as error:
            raise BrokenError(in_words(error), unsent=True) from None
        connection.receive = self._receive
        return connection
