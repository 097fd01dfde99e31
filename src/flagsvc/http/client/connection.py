"""One HTTP/1.1 connection as a client: one request and its answer at a time, with httptools' parser.

No message repeats what was sent, so that the token cannot reach a log.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from typing import cast

import httptools

from flagsvc.core.errors import UpstreamError
from flagsvc.http.client.answers import Answer, Sink

MAX_HEAD = 65_536
"""The most bytes of an answer's head, and of chunk extensions and trailers, which the parser would collect."""
TOO_LONG_A_HEAD = ("the head of the answer is too long", "network")
TOO_MUCH_BESIDE = ("the answer has too much beside its body", "document")
DRAIN_BYTES = 65_536
DRAIN_S = 1.0
PIECE_BYTES = 16_384
"""
Received bytes are parsed in pieces of this size, and requests are answered in between: decompressing a large document takes
milliseconds.
"""


Keep = Callable[[int, Mapping[str, str]], Sink | None]
"""Makes what takes a body from the status and the headers; None if the body is not needed."""


def ignore(size: int) -> None:
    """Do nothing."""


class BrokenError(Exception):
    """A connection failed or ended. The message says why, and `kind` is that of the UpstreamError.

    `unanswered` tells that nothing of an answer had arrived, `unsent` that nothing of a request was sent.
    """

    def __init__(self, words: str, kind: str = "network", *, unanswered: bool = False, unsent: bool = False) -> None:
        self.kind = kind
        self.unanswered = unanswered
        self.unsent = unsent
        super().__init__(words)


class Exchange:
    """The answer to one request. `keep` makes what takes a body that is needed; other bodies are discarded.

    The parser calls the `on_` methods. `headed` is done with the head, `finished` with the whole answer; both get the error if
    there is one.
    """

    def __init__(self, keep: Keep) -> None:
        loop = asyncio.get_running_loop()
        self.headed: asyncio.Future[None] = loop.create_future()
        self.finished: asyncio.Future[None] = loop.create_future()
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body: Sink | None = None
        self.reusable = False
        self.touched: Callable[[], None] = idle
        self._keep = keep
        self._size = 0
        self._bare = 0
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)

    # ---- what the connection tells

    def feed(self, data: bytes) -> None:
        """Parse received bytes."""
        if self._parser is None:
            return
        self._size += len(data)
        self._bare += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserUpgrade, httptools.HttpParserError):
            self.reusable = False
            self.fail(BrokenError("what came is no HTTP answer"))
        if self._bare > MAX_HEAD:
            begun = self.headed.done()
            self.fail(BrokenError(*(TOO_MUCH_BESIDE if begun else TOO_LONG_A_HEAD)))
        self.touched()

    def end(self, error: Exception | None) -> None:
        """Handle the end of the connection, in order or with an error. It ends a body without a length."""
        self.reusable = False
        if not self.headed.done():
            self.fail(BrokenError("the connection ended without a whole answer", unanswered=self._size == 0))
        elif error is not None:
            self.fail(BrokenError("the connection broke while reading"))
        elif self.sized:
            self.fail(BrokenError("the answer ended early", "document"))
        else:
            settle(self.finished)

    def fail(self, error: Exception) -> None:
        """Record that nothing more will arrive."""
        for future in (self.headed, self.finished):
            if not future.done():
                future.set_exception(error)
                future.exception()  # it is seen: not both of them are waited for

    def release(self) -> None:
        """Release what refers to this object, so that no document waits in memory for the garbage collector."""
        self._parser = self.body = None
        self.touched = idle
        del self.headed, self.finished  # the traceback of a failure refers to this, and they to the failure

    @property
    def sized(self) -> bool:
        """Whether the head tells where the body ends."""
        return "content-length" in self.headers or "transfer-encoding" in self.headers

    @property
    def too_long(self) -> bool:
        """Whether a body that is not needed is too long to read to its end."""
        return self._size > DRAIN_BYTES

    # ---- what the parser tells

    def on_message_begin(self) -> None:
        """Start an answer. A second, unrequested answer makes the connection unusable."""
        self.reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Record a header. Repeated ones become a list. Fields after a body are ignored."""
        if self.headed.done():
            return
        key, text = name.decode("latin-1").lower(), decoded(value)
        self.headers[key] = f"{self.headers[key]}, {text}" if key in self.headers else text

    def on_headers_complete(self) -> None:
        """Handle the head, and decide whether the body is kept."""
        if self.headed.done() or self._parser is None:
            return
        status = self._parser.get_status_code()
        if status < 200 and status != 101:
            self.headers.clear()
            return
        if self.headers.get("transfer-encoding", "chunked").strip().lower() != "chunked":
            self.fail(BrokenError("the answer comes in a transfer coding that was not asked for"))
            return
        self.status = status
        self.reusable = self._parser.should_keep_alive()
        try:
            self.body = self._keep(status, self.headers)
        except UpstreamError as error:
            self.fail(error)
        settle(self.headed)

    def on_body(self, data: bytes) -> None:
        """Add a piece of the body."""
        self._bare = 0
        if self.body is None or self.finished.done():
            return
        try:
            self.body.feed(data)
        except UpstreamError as error:
            self.fail(error)

    def on_message_complete(self) -> None:
        """Finish, unless this was an interim answer."""
        if self.headed.done():
            settle(self.finished)


class ClientConnection(asyncio.Protocol):
    """A connection to the origin or to an outbound proxy. `since` is when its last exchange ended, in the loop's time.

    `receive` is told the number of bytes that arrive.
    """

    def __init__(self) -> None:
        self.since = 0.0
        self.receive: Callable[[int], object] = ignore
        self._transport: asyncio.Transport | None = None
        self._exchange: Exchange | None = None
        self._waiting = b""
        self._rest = memoryview(b"")
        self._full = False
        self._loop = asyncio.get_running_loop()

    # ---- what the loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Handle received bytes; many are parsed in pieces. Unrequested bytes end the connection."""
        self.receive(len(data))
        if self._waiting:
            self._waiting += data
        elif self._exchange is None:
            self.abort()
        elif len(data) <= PIECE_BYTES:
            self._exchange.feed(data)
        else:
            self._waiting = data
            self._pause(True)
            self._take_piece()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._rest = memoryview(b"")
        rest, self._waiting = self._waiting, b""
        if self._exchange is not None:
            if rest:
                self._exchange.feed(rest)
            self._exchange.end(exc)

    def pause_writing(self) -> None:
        """Write no more until the server has read something."""
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self._write()

    def _write(self) -> None:
        """Write pieces of the request until enough of it waits to be sent. Each restarts the time limit of a step."""
        while self._rest and not self._full and self._transport is not None and not self._transport.is_closing():
            piece, self._rest = self._rest[:PIECE_BYTES], self._rest[PIECE_BYTES:]
            self._transport.write(piece)
            if self._exchange is not None:
                self._exchange.touched()

    def _take_piece(self) -> None:
        """Parse the next piece of the waiting bytes, and let the event loop run before the following one."""
        piece, self._waiting = self._waiting[:PIECE_BYTES], self._waiting[PIECE_BYTES:]
        if self._exchange is not None:
            self._exchange.feed(piece)
        elif piece:
            self.abort()
        if self._waiting:
            self._loop.call_soon(self._take_piece)
        else:
            self._pause(False)

    def _pause(self, now: bool) -> None:
        """Stop reading for now, or continue."""
        if self._transport is not None and not self._transport.is_closing():
            (self._transport.pause_reading if now else self._transport.resume_reading)()

    # ---- what the transport asks

    @property
    def usable(self) -> bool:
        """Whether the connection can send another request."""
        free = self._exchange is None and not self._waiting
        return free and self._transport is not None and not self._transport.is_closing()

    def abort(self) -> None:
        """Close immediately."""
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    async def ask(self, request: bytes, keep: Keep, step_s: float) -> Answer:
        """Send a request and return its answer. `usable` then tells whether the connection can send another one.

        Between two pieces of the request or the answer at most `step_s` seconds may pass. Raises BrokenError, UpstreamError and
        TimeoutError.
        """
        exchange = Exchange(keep)
        try:
            self._send(exchange, request)
            await self._receive(exchange, step_s)
            body = exchange.body.finish() if exchange.body is not None else b""
            return Answer(exchange.status, exchange.headers, body)
        except BaseException:
            exchange.reusable = False
            raise
        finally:
            self._exchange = None
            self.since = self._loop.time()
            if not exchange.reusable or not exchange.finished.done() or self._unsent:
                self.abort()
            exchange.release()

    async def tunnel(self, authority: str, credentials: bytes) -> None:
        """Have an outbound proxy connect to `authority`. Raises BrokenError if it does not."""
        line = b"proxy-authorization: " + credentials + b"\r\n" if credentials else b""
        name = authority.encode("ascii")
        exchange = Exchange(nothing_kept)
        self._send(exchange, b"CONNECT " + name + b" HTTP/1.1\r\nhost: " + name + b"\r\n" + line + b"\r\n")
        try:
            await exchange.headed
        finally:
            self._exchange = None
            exchange.release()
        if not 200 <= exchange.status <= 299:
            raise BrokenError(f"the outbound proxy refused with status {exchange.status}")

    async def start_tls(self, context: ssl.SSLContext, host: str) -> None:
        """Use TLS from now on, through a tunnel if there is one. Raises OSError."""
        if self._transport is None or self._transport.is_closing():
            raise BrokenError("the outbound proxy closed the connection")
        made = await self._loop.start_tls(self._transport, self, context, server_hostname=host)
        self._transport = cast(asyncio.Transport, made)

    @property
    def _unsent(self) -> bool:
        """Return whether a part of the request is not sent: its answer came early, and the rest may never be read."""
        waits = self._transport is not None and self._transport.get_write_buffer_size() > 0
        return bool(self._rest) or waits

    def _send(self, exchange: Exchange, request: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            raise BrokenError("the connection ended without a whole answer", unanswered=True)
        self._exchange = exchange
        self._rest = memoryview(request)
        self._write()

    async def _receive(self, exchange: Exchange, step_s: float) -> None:
        async with asyncio.timeout(step_s) as limit:
            exchange.touched = lambda: self._extend(limit, step_s)
            await exchange.headed
            if exchange.body is not None:
                await exchange.finished
        if exchange.body is None:
            await self._drain(exchange)

    def _extend(self, limit: asyncio.Timeout, step_s: float) -> None:
        """Restart the time limit of a step."""
        if not limit.expired():
            limit.reschedule(self._loop.time() + step_s)

    async def _drain(self, exchange: Exchange) -> None:
        """Read and discard a body that is not needed, so that the connection can be kept. Gives up on a long or slow one."""

        def bounded() -> None:
            if exchange.too_long:
                settle(exchange.finished)
                exchange.reusable = False

        exchange.touched = bounded
        bounded()
        await asyncio.wait([exchange.finished], timeout=DRAIN_S)


def idle() -> None:
    """Do nothing."""


def nothing_kept(status: int, headers: Mapping[str, str]) -> Sink | None:
    return None


def settle(future: asyncio.Future[None]) -> None:
    """Set the result of a future, unless it is done."""
    if not future.done():
        future.set_result(None)


def decoded(value: bytes) -> str:
    """Return a header value as text: UTF-8 if it is valid, otherwise Latin-1."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")
