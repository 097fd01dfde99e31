"""Bytes of a connection become requests: the parser, its callbacks, and where bytes are cut. Compiled.

httptools cannot be told to pause, and calls back for every message it finds. So the bytes are cut before they are fed: no piece
holds the ends of two messages. After each piece the connection may stop, and keep the rest as bytes that cost nothing.
"""

from __future__ import annotations

from typing import Final

import httptools
from mypy_extensions import i64

from flagsvc.http.call import Call
from flagsvc.http.messages import Headers, Refused, Request
from flagsvc.http.server.names import CONNECTION, EXPECT, HOST, UPGRADE, Names
from flagsvc.http.server.site import Watched
from flagsvc.http.server.target import is_host, origin_form

HEAD_END: Final = b"\r\n\r\n"
"""What ends a head, and a chunked body."""
CHUNKED: Final = b"chunked"
TLS: Final = b"\x16\x03"
"""What a TLS handshake begins with."""
SLACK: Final = 4096
"""Bytes of a head, beyond its headers and query, that may come in pieces: method and path."""
NO_HEADERS: Final[Headers] = []
"""Headers are put into a Call one by one; its request has no list of them."""
NO_CALL: Final = Call(Request(b"", b"", b"", NO_HEADERS))
"""Stands for the request under way where there is none: a connection that waits keeps nothing of the last one."""


class HeadTooLargeError(Exception):
    """A head goes beyond what is read of one: nothing of it is looked at any more, and the connection ends."""


class Intake(Watched):
    """The requests in a connection's bytes.

    `names` knows the headers; `bound` is how many bytes may come without the request getting on. `call` is the request under way,
    `inside` tells that its first byte was there and its last one was not, `remaining` how much of a sized body is to come. What
    happens is told by `on_head`, `on_part`, `on_end` and `on_broken`.
    """

    def __init__(self, names: Names, bound: int, peer: str, scheme: str) -> None:
        super().__init__()
        self.names: Final = names
        self.bound: i64 = bound
        self.peer: str = peer
        self.scheme: str = scheme
        self.parser: httptools.HttpRequestParser | None = None
        self.call: Call = NO_CALL
        self.url: bytes = b""
        self.inside: bool = False
        self.in_head: bool = False
        self.size: i64 = 0
        self.idle: i64 = 0
        self.remaining: i64 = 0
        self.tail: bytes = b""
        self.keep: bool = True
        self.old: bool = False
        self.told_connection: bool = False
        self.expects: bool = False
        self.upgrades: bool = False
        self.bodied: bool = False
        self.hosts: i64 = 0

    def cut(self, data: bytes, at: i64) -> i64:
        """Return where the piece of `data` that begins at `at` ends, so that it holds the end of one message at most."""
        size: i64 = len(data)
        if self.inside:
            if self.remaining > 0:
                return min(size, at + self.remaining)
            if at == 0 and self.tail:
                found: i64 = (self.tail + data[:3]).find(HEAD_END)
                if found >= 0:
                    return found + 4 - len(self.tail)
        end: i64 = data.find(HEAD_END, at)
        return size if end < 0 else end + 4

    def feed(self, piece: bytes) -> i64:
        """Parse a piece; return how many bytes of it were taken."""
        parser = self.parser
        size: i64 = len(piece)
        if parser is None:
            return size
        self.idle += size
        try:
            parser.feed_data(piece)
        except httptools.HttpParserUpgrade as upgrade:
            return self.upgraded(upgrade.args[0])
        except httptools.HttpParserError as error:
            if self.idle == size and piece.startswith(TLS):
                self.on_tls()
            else:
                self.on_broken(error)
        return size

    def mark(self, data: bytes) -> None:
        """Remember the last bytes fed, as a message goes on: what ends its head may be cut in two."""
        last = data[-3:]
        self.tail = last if len(last) == 3 else (self.tail + last)[-3:]

    def upgraded(self, offset: int) -> i64:
        """Go on behind a head that asks for another protocol, which nobody here speaks. Return the bytes taken so far.

        The parser believes that nothing of its own follows. A body that the head announced is parsed behind one made up.
        """
        if self.inside:
            framing = b"Transfer-Encoding: chunked"
            if not self.call.chunked:
                framing = b"Content-Length: " + str(self.call.announced()).encode()
            self.upgrades = False
            self.bodied = True
            parser = httptools.HttpRequestParser(Quiet(self))
            parser.feed_data(b"POST / HTTP/1.1\r\n" + framing + HEAD_END)
            self.parser = parser
        return offset

    def on_url(self, url: bytes) -> None:
        """Take the target, or a part of it; the first begins a request."""
        if self.inside:
            self.url += url
            return
        self.url = url
        self.inside = True
        self.in_head = True
        self.size = 0
        self.told_connection = False
        self.expects = False
        self.upgrades = False
        self.old = False
        self.hosts = 0
        self.call = Call(Request(b"", b"", b"", NO_HEADERS, peer=self.peer, scheme=self.scheme))
        self.on_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take one header field; those behind a chunked body say nothing."""
        if not self.in_head:
            return
        self.size += len(name) + len(value) + 4
        if self.size > self.bound:
            raise HeadTooLargeError  # what stands further on could decide where the request ends: it ends the connection instead
        kind = self.names.kind(name)
        if kind == 0:
            return
        if kind < CONNECTION:
            self.call.put(kind, value)
        elif kind == CONNECTION:
            self.told_connection = True
        elif kind == HOST:
            self.meet_host(value)
        elif kind == UPGRADE:
            self.upgrades = True
        elif kind == EXPECT:
            self.expects = value.lower() == b"100-continue"

    def meet_host(self, value: bytes) -> None:
        """Take a Host line; one that is no host counts as two."""
        self.hosts += 1
        if value != self.names.host:
            value = value.strip(b" \t")
            if is_host(value):
                self.names.host = value
            else:
                self.hosts += 1

    def addressed(self) -> bool:
        """Return whether the request has one good Host, or none in a version that knows none (RFC 9112, 3.2)."""
        parser = self.parser
        return self.hosts == 1 or (self.hosts == 0 and parser is not None and parser.get_http_version() != "1.1")

    def on_headers_complete(self) -> None:
        """Complete the head."""
        parser = self.parser
        self.in_head = False
        self.idle = 0
        if parser is None:
            return
        call = self.call
        call.size = self.size
        call.request.method = parser.get_method()
        self.keep = parser.should_keep_alive()
        if self.told_connection or self.expects:
            self.old = parser.get_http_version() == "1.0"
        self.measure(call)
        if self.upgrades:
            self.upgrades = parser.should_upgrade()
        if not self.addressed() or (call.chunked and not self.framed(call)) or not self.locate(call.request):
            self.on_broken(None)
            return
        self.on_head(call)

    def framed(self, call: Call) -> bool:
        """Return whether nobody on the way here can have read the end of a chunked body otherwise (RFC 9112, 6.1 and 11.2).

        HTTP/1.0 knows no transfer coding, and a coding beside `chunked`, or `chunked` twice, is nothing that we undo.
        """
        parser = self.parser
        coding = call.transfer_coding
        if parser is None or coding is None:
            return False
        return coding.strip().lower() == CHUNKED and parser.get_http_version() != "1.0"

    def measure(self, call: Call) -> None:
        """Note whether a body follows, and how long it is."""
        self.remaining = 0
        self.bodied = call.chunked
        if call.content_length is not None and not call.chunked:
            try:
                self.remaining = call.announced()
            except Refused:  # for the Service to tell
                return
            self.bodied = self.remaining > 0

    def locate(self, request: Request) -> bool:
        """Split the target into path and query; return whether it is one."""
        target = self.url
        if not target.startswith(b"/") or b"#" in target:
            found = origin_form(target)
            if found is None:
                return False
            target = found
        mark: i64 = target.find(b"?")
        if mark < 0:
            request.path = target
        else:
            request.path = target[:mark]
            request.query = target[mark + 1 :]
        return True

    def on_body(self, part: bytes) -> None:
        """Take a part of the body."""
        self.idle = 0
        if self.remaining > 0:
            self.remaining -= len(part)
        self.on_part(part)

    def on_message_complete(self) -> None:
        """Complete the request; with an upgrade its body is yet to come, as the parser does not know."""
        if self.upgrades and self.bodied:
            return
        self.idle = 0
        self.remaining = 0
        self.inside = False
        self.tail = b""
        self.on_end()
        self.call = NO_CALL
        self.url = b""

    def on_begin(self) -> None:
        """Tell that a request begins."""

    def on_head(self, call: Call) -> None:
        """Tell that a head is complete."""

    def on_part(self, part: bytes) -> None:
        """Tell of bytes of the body."""

    def on_end(self) -> None:
        """Tell that a request is complete."""

    def on_broken(self, error: Exception | None) -> None:
        """Tell that this is no HTTP, or that something went wrong in what was told."""

    def on_tls(self) -> None:
        """Tell that a TLS handshake begins where plain HTTP is spoken."""


class Quiet:
    """Stands between a parser and an Intake for the body behind an upgrade: the head, made up, is not told."""

    def __init__(self, intake: Intake) -> None:
        self.intake: Final = intake
        self.over = False

    def on_url(self, url: bytes) -> None:
        """Begin: the made-up head at first, then the requests that follow the body."""
        if self.over:
            self.intake.on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header field."""
        if self.over:
            self.intake.on_header(name, value)

    def on_headers_complete(self) -> None:
        """Complete a head."""
        if self.over:
            self.intake.on_headers_complete()

    def on_body(self, part: bytes) -> None:
        """Take a part of a body."""
        self.intake.on_body(part)

    def on_message_complete(self) -> None:
        """Complete a request."""
        self.over = True
        self.intake.on_message_complete()
