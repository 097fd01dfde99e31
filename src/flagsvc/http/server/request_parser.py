"""Bytes of a connection become requests: the parser, its callbacks, and where bytes are cut. Compiled.

Nothing here answers, waits or writes: `feed` takes a piece of bytes and returns what it brought, and the connection goes on from
there. httptools cannot be told to pause, and calls back for every message it finds. So the bytes are cut before they are fed: no
piece holds the ends of two messages. After each piece the connection may stop, and keep the rest as bytes that cost nothing.
"""

from __future__ import annotations

from typing import Final

import httptools
from mypy_extensions import i64, u8

from flagsvc.http.call import Call
from flagsvc.http.messages import Headers, HttpError, Request
from flagsvc.http.server.header_names import CONNECTION, EXPECT, HOST, UPGRADE, HeaderNames
from flagsvc.http.server.states import BODY, BROKEN, COMPLETE, HEAD, IDLE, NEW
from flagsvc.http.server.target import is_host, origin_form

HEAD_END: Final = b"\r\n\r\n"
"""What ends a head, and a chunked body."""
CHUNKED: Final = b"chunked"
TLS: Final = b"\x16\x03"
"""What a TLS handshake begins with."""
NO_HEADERS: Final[Headers] = []
"""Headers are put into a Call one by one; its request has no list of them."""
NO_CALL: Final = Call(Request(b"", b"", b"", NO_HEADERS))
"""The request under way where there is none: a connection that waits keeps nothing of the last one."""

# What a piece of bytes brought, as bits; the connection looks at them in this order.
HEAD_CAME: Final = 1
"""A head is complete, and can be answered."""
BODY_CAME: Final = 2
"""Bytes of a body came."""
END_CAME: Final = 4
"""The request is complete."""
NO_HTTP: Final = 8
"""What came is no HTTP."""
HEAD_TOO_LARGE: Final = 16
"""A head is too large: what stands further on could decide where the request ends, so the rest of it is not parsed."""
TLS_CAME: Final = 32
"""A TLS handshake begins where plain HTTP is spoken."""

# Which headers of the connection's own a head has, as bits.
HAS_CONNECTION: Final = 1
HAS_UPGRADE: Final = 2
HAS_EXPECT: Final = 4
"""The caller waits for `100 Continue` before it sends the body."""

# Whether the connection goes on after the answer.
ENDS: Final = 0
KEEPS: Final = 1
KEEPS_1_0: Final = 2
"""It does, and the answer has to say so, in HTTP/1.0."""


class HeadTooLargeError(Exception):
    """A head goes beyond what is read of one: nothing of it is looked at any more, and the connection ends."""


class RequestParser:
    """The requests in a connection's bytes.

    `state` is how much of a request there is (states.NEW to BROKEN), `call` the request; `body` or `parts` is what came of its
    body and is not dropped, `got` how many bytes of it came. `held` are bytes, from `held_from` on, that are not parsed yet.

    `names` knows the headers, and how many bytes may come without the request getting on: `idle` have. `size` is that of the
    headers, `remaining` how much of a sized body is to come, `unread` how much of the last piece was not taken. `has` tells which
    headers of the connection's own there are, `persistence` whether the connection goes on after the answer.
    """

    def __init__(self, names: HeaderNames) -> None:
        self.names: Final = names
        self.parser: httptools.HttpRequestParser | None = None
        self.peer: str = ""
        self.secure: bool = False
        self.state: u8 = NEW
        self.news: u8 = 0
        self.has: u8 = 0
        self.hosts: u8 = 0
        self.persistence: u8 = KEEPS
        self.call: Call = NO_CALL
        self.url: bytes = b""
        self.body: bytes = b""
        self.parts: bytearray | None = None
        self.got: i64 = 0
        self.size: i64 = 0
        self.idle: i64 = 0
        self.remaining: i64 = 0
        self.unread: i64 = 0
        self.tail: bytes = b""
        self.held: bytes = b""
        self.held_from: i64 = 0

    def open(self, peer: str, secure: bool) -> None:
        """Begin a connection from an address, empty where there is none; `secure` tells whether TLS is spoken."""
        self.peer = peer
        self.secure = secure
        self.parser = httptools.HttpRequestParser(self)

    def close(self) -> None:
        """Keep nothing of what the caller has sent; of a head that has no end only httptools' parser holds all there is."""
        self.parser = None
        self.got = 0
        self.hold(b"", 0)
        self.forget()

    def forget(self) -> None:
        """Keep nothing of the request."""
        self.call = NO_CALL
        self.url = b""
        self.drop_body()

    def drop_body(self) -> None:
        """Keep nothing of the body."""
        self.body = b""
        self.parts = None

    def take_body(self) -> bytes:
        """Return the body, and keep it no longer."""
        body = self.body if self.parts is None else bytes(self.parts)
        self.drop_body()
        return body

    def next_request(self) -> None:
        """Go on behind a request that is complete."""
        self.forget()
        if self.state == COMPLETE:
            self.state = IDLE

    def stop(self) -> None:
        """Parse nothing more, and let the next answer be the last: where the next request begins is unknown."""
        self.state = BROKEN
        self.persistence = ENDS

    def unfinished(self) -> bool:
        """Return whether anything came of a request that is not complete."""
        return self.state >= HEAD or self.idle > 0

    def hold(self, data: bytes, at: i64) -> None:
        """Keep bytes, from `at` on, to be parsed later."""
        self.held = data
        self.held_from = at

    def hold_more(self, data: bytes) -> None:
        """Keep bytes behind those that are held."""
        self.hold(self.held[self.held_from :] + data, 0)

    def memory(self) -> i64:
        """Return how many bytes are held: those not parsed yet, and of a request that is not complete."""
        size: i64 = len(self.held) - self.held_from + self.idle + len(self.body)
        if self.parts is not None:
            size += len(self.parts)
        return size + self.size if self.state == BODY else size

    def cut(self, data: bytes, at: i64) -> i64:
        """Return where the piece of `data` that begins at `at` ends, so that it holds the end of one message at most."""
        size: i64 = len(data)
        if self.state >= HEAD:
            if self.remaining > 0:
                return min(size, at + self.remaining)
            if at == 0 and self.tail:
                found: i64 = (self.tail + data[:3]).find(HEAD_END)
                if found >= 0:
                    return found + 4 - len(self.tail)
        end: i64 = data.find(HEAD_END, at)
        return size if end < 0 else end + 4

    def remember(self, data: bytes) -> None:
        """Remember the last bytes fed, as a message goes on: what ends its head may be cut in two."""
        if self.state >= HEAD:
            last = data[-3:]
            self.tail = last if len(last) == 3 else (self.tail + last)[-3:]

    def feed(self, piece: bytes) -> u8:
        """Parse a piece; return what it brought. An error of our own in a callback is raised."""
        parser = self.parser
        self.news = 0
        self.unread = 0
        if parser is None:
            return 0
        size: i64 = len(piece)
        self.idle += size
        try:
            parser.feed_data(piece)
        except httptools.HttpParserUpgrade as upgrade:
            self.pass_upgrade(size - upgrade.args[0])
        except httptools.HttpParserCallbackError as error:
            cause: BaseException | None = error.__context__
            if not isinstance(cause, HeadTooLargeError):
                raise (error if cause is None else cause) from None
            self.news |= HEAD_TOO_LARGE
        except httptools.HttpParserError:
            self.news |= TLS_CAME if self.idle == size and piece.startswith(TLS) else NO_HTTP
        return self.news

    def pass_upgrade(self, unread: i64) -> None:
        """Go on behind a head that asks for another protocol, which is not spoken here; so many bytes are not parsed yet.

        httptools' parser believes that nothing of its own follows. A body that the head announced is parsed by another one, behind
        a head made up: that is passed over, as its callbacks come while the state is BODY.
        """
        self.unread = unread
        if self.state != BODY:
            return
        framing = b"Transfer-Encoding: chunked"
        if not self.call.chunked:
            framing = b"Content-Length: " + str(self.call.announced()).encode()
        self.has -= HAS_UPGRADE
        parser = httptools.HttpRequestParser(self)
        parser.feed_data(b"POST / HTTP/1.1\r\n" + framing + HEAD_END)
        self.parser = parser

    def on_url(self, url: bytes) -> None:
        """Take the target, or a part of it; the first part begins a request."""
        if self.state == HEAD:
            self.url += url
            return
        if self.state == BODY:
            return
        if self.state > BODY:
            raise RuntimeError("a piece holds more than one request")
        self.url = url
        self.state = HEAD
        self.size = 0
        self.got = 0
        self.has = 0
        self.hosts = 0
        scheme = "https" if self.secure else "http"
        self.call = Call(Request(b"", b"", b"", NO_HEADERS, peer=self.peer, scheme=scheme))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take one header field; those behind a chunked body are passed over. Raises HeadTooLargeError."""
        if self.state != HEAD:
            return
        self.size += len(name) + len(value) + 4
        if self.size > self.names.head_limit:
            raise HeadTooLargeError
        kind = self.names.kind(name)
        if kind == 0:
            return
        if kind < CONNECTION:
            self.call.put(kind, value)
        elif kind == CONNECTION:
            self.has |= HAS_CONNECTION
        elif kind == HOST:
            self.take_host(value)
        elif kind == UPGRADE:
            self.has |= HAS_UPGRADE
        elif kind == EXPECT:
            self.has |= HAS_EXPECT
            if value.lower() != b"100-continue":
                self.has -= HAS_EXPECT

    def take_host(self, value: bytes) -> None:
        """Take a Host line; one that is no host counts as two, and more than two do as well."""
        self.hosts = 1 if self.hosts == 0 else 2
        if value != self.names.host:
            value = value.strip(b" \t")
            if is_host(value):
                self.names.host = value
            else:
                self.hosts = 2

    def on_headers_complete(self) -> None:
        """Complete the head."""
        parser = self.parser
        if self.state != HEAD or parser is None:
            return
        self.state = BODY
        self.idle = 0
        call = self.call
        call.size = self.size
        call.request.method = parser.get_method()
        if not parser.should_keep_alive():
            self.persistence = ENDS
        elif self.has & HAS_CONNECTION and parser.get_http_version() == "1.0":
            self.persistence = KEEPS_1_0
        else:
            self.persistence = KEEPS
        self.measure(call)
        if self.has & HAS_UPGRADE and not parser.should_upgrade():
            self.has -= HAS_UPGRADE
        if not self.has_one_host() or (call.chunked and not self.only_chunked(call)) or not self.locate(call.request):
            self.news |= NO_HTTP
            self.stop()
        else:
            self.news |= HEAD_CAME

    def measure(self, call: Call) -> None:
        """Note how long a sized body is that follows."""
        self.remaining = 0
        if call.content_length is not None and not call.chunked:
            try:
                self.remaining = call.announced()
            except HttpError:  # the contract answers it
                return

    def has_one_host(self) -> bool:
        """Return whether the request has one good Host, or none in a version that knows none (RFC 9112, 3.2)."""
        return self.hosts == 1 or (self.hosts == 0 and not self.speaks("1.1"))

    def speaks(self, version: str) -> bool:
        """Return whether the request is of a version of HTTP."""
        parser = self.parser
        return parser is not None and parser.get_http_version() == version

    def only_chunked(self, call: Call) -> bool:
        """Return whether every program on the way reads the same end of a chunked body (RFC 9112, 6.1 and 11.2).

        HTTP/1.0 knows no transfer coding, and a coding beside `chunked`, or `chunked` twice, is not undone here.
        """
        coding = call.transfer_coding
        return coding is not None and coding.strip().lower() == CHUNKED and not self.speaks("1.0")

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

    def body_follows(self) -> bool:
        """Return whether the head, which is complete, announces a body."""
        return self.remaining > 0 or self.call.chunked

    def waits_to_continue(self) -> bool:
        """Return whether the caller waits for `100 Continue`, which HTTP/1.0 does not know."""
        return self.has & HAS_EXPECT != 0 and not self.speaks("1.0")

    def may_hold_back_body(self) -> bool:
        """Return whether it is the caller's choice if the body still comes when the head alone is answered."""
        return self.has & HAS_EXPECT != 0 and self.body_follows()

    def on_body(self, part: bytes) -> None:
        """Take a part of the body."""
        self.idle = 0
        size: i64 = len(part)
        self.got += size
        self.news |= BODY_CAME
        if self.remaining > 0:
            self.remaining -= size
        if self.parts is not None:
            self.parts += part
        elif self.body:
            self.parts = bytearray(self.body)
            self.parts += part
            self.body = b""
        else:
            self.body = part

    def on_message_complete(self) -> None:
        """Complete the request; with an upgrade its body is yet to come, which httptools' parser does not know."""
        if self.state == BROKEN or (self.has & HAS_UPGRADE and self.body_follows()):
            return
        self.state = COMPLETE
        self.idle = 0
        self.remaining = 0
        self.tail = b""
        self.news |= END_CAME
