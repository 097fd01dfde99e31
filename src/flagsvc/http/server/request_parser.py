"""Turns the bytes of a connection into requests: kinds of headers, the parser, its callbacks, where bytes are cut. Compiled.

Nothing here answers, waits or writes. `feed` parses a piece of bytes and returns what it found; then the connection acts. httptools
cannot pause, and calls back for every message that it finds. So the bytes are cut first: no piece contains the ends
of two messages. After each piece the connection may stop, and hold the rest as plain bytes.
"""

from __future__ import annotations

import re
from typing import Any, Final

import httptools
from mypy_extensions import i64, u8

from flagsvc.http.call import HOST, Call
from flagsvc.http.messages import Headers, HttpError, Request
from flagsvc.http.server.states import BODY, BROKEN, COMPLETE, HEAD, IDLE, NEW

# The kinds of headers that the connection reads. Headers of the contract have lower numbers, except Host.
CONNECTION: Final = 101
EXPECT: Final = 102
UPGRADE: Final = 103

CONNECTION_HEADERS: Final[dict[bytes, int]] = {
    b"connection": CONNECTION,
    b"expect": EXPECT,
    b"upgrade": UPGRADE,
    b"host": HOST,
}
"""Their kinds by name, and the kind of Host, which both read."""
MAX_SPELLINGS: Final = 512
"""The most spellings that are remembered."""
LONGEST_SPELLING: Final = 64
"""The most bytes of a remembered spelling. Both limits bound the memory that callers can use."""

HEAD_END: Final = b"\r\n\r\n"
"""The end of a head, and of a chunked body."""
CHUNKED: Final = b"chunked"
TLS: Final = b"\x16\x03"
"""The first bytes of a TLS handshake."""
NO_HEADERS: Final[Headers] = []
"""An empty list. Headers are put into a Call one by one, so the request has no list of them."""
NO_CALL: Final = Call(Request(b"", b"", b"", NO_HEADERS))
"""The current request if there is none. So a waiting connection keeps nothing of its last request."""

# What a piece of bytes brought, as bits; the connection looks at them in this order.
HEAD_CAME: Final = 1
"""A head is complete, and can be answered."""
BODY_CAME: Final = 2
"""Bytes of a body arrived."""
END_CAME: Final = 4
"""The request is complete."""
NO_HTTP: Final = 8
"""The bytes are not HTTP."""
HEAD_TOO_LARGE: Final = 16
"""A head is too large. Its end could contain what decides where the request ends, so the rest is not parsed."""
TLS_CAME: Final = 32
"""A TLS handshake arrived on a port of plain HTTP."""

# Which headers of the connection's own a head has, as bits.
HAS_CONNECTION: Final = 1
HAS_UPGRADE: Final = 2
HAS_EXPECT: Final = 4
"""The caller waits for `100 Continue` before it sends the body."""

# Whether the connection goes on after the answer.
ENDS: Final = 0
KEEPS: Final = 1
KEEPS_1_0: Final = 2
"""The connection stays open, and an answer in HTTP/1.0 must say so."""
MAX_HOST: Final = 512
"""The most bytes of a Host: a DNS name has 253 at most."""
AUTHORITY: Final = re.compile(
    rb"(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*(?::[0-9]{0,5})?"
    rb"|\[[0-9A-Fa-f:.]{2,45}(?:%25[A-Za-z0-9._~-]{1,16})?\](?::[0-9]{0,5})?"
)


class HeaderNames:
    """The kinds of header names in all spellings. 0 is the kind of a header that is not read.

    `contract` has the kinds of the headers that the contract reads, by lower-case name. `head_limit` is the most bytes of a
    head.
    """

    def __init__(self, contract: dict[bytes, int], head_limit: int) -> None:
        self.head_limit: Final[i64] = head_limit
        self.kinds: dict[bytes, int] = {**CONNECTION_HEADERS, **contract}
        self.known: dict[bytes, int] = dict(self.kinds)
        self.host: bytes = b""
        """The last valid value of a Host header. Most requests have the same."""
        for name, kind in self.kinds.items():
            self.known[name.title()] = kind

    def kind(self, name: bytes) -> i64:
        found = self.known.get(name)
        return self.learn(name) if found is None else found

    def learn(self, name: bytes) -> i64:
        """Return the kind of a header in a new spelling, and remember the spelling if there is room."""
        kind = self.kinds.get(name.lower(), 0)
        if len(self.known) < MAX_SPELLINGS and len(name) <= LONGEST_SPELLING:
            self.known[name] = kind
        return kind


class HeadTooLargeError(Exception):
    """A head is over the limit. Nothing more of it is parsed, and the connection closes."""


class RequestParser:
    """The requests in the bytes of a connection.

    `state` is how much of a request has arrived (states.NEW to BROKEN), and `call` is the request. `body` or `parts` is the
    part of its body that is kept, and `got` the number of its bytes that have arrived. `held` are bytes, from `held_from` on,
    that are not parsed yet.

    `names` knows the headers and the most bytes that may arrive without progress of the request; `idle` counts them. `size` is
    the size of the headers, `remaining` the rest of a body with a length, and `unread` the unread rest of the last piece. `has`
    tells which of the connection's own headers have come, and `persistence` whether the connection stays open after the answer.
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
        """Start with the address of the caller, empty if there is none. `secure` tells whether the connection uses TLS."""
        self.peer = peer
        self.secure = secure
        self.parser = httptools.HttpRequestParser(self)

    def close(self) -> None:
        """Release everything that the caller has sent. Only httptools' parser may still hold a head without an end."""
        self.parser = None
        self.got = 0
        self.hold(b"", 0)
        self.forget()

    def forget(self) -> None:
        self.call = NO_CALL
        self.url = b""
        self.drop_body()

    def drop_body(self) -> None:
        self.body = b""
        self.parts = None

    def take_body(self) -> bytes:
        body = self.body if self.parts is None else bytes(self.parts)
        self.drop_body()
        return body

    def next_request(self) -> None:
        """Continue after a complete request."""
        self.forget()
        if self.state == COMPLETE:
            self.state = IDLE

    def stop(self) -> None:
        """Parse nothing more, and make the next answer the last one: the start of the next request is unknown."""
        self.state = BROKEN
        self.persistence = ENDS

    def unfinished(self) -> bool:
        """Return whether an incomplete request has begun."""
        return self.state >= HEAD or self.idle > 0

    def hold(self, data: bytes, at: i64) -> None:
        """Hold bytes, from `at` on, to parse them later."""
        self.held = data
        self.held_from = at

    def hold_more(self, data: bytes) -> None:
        """Hold bytes after those that are already held."""
        self.hold(self.held[self.held_from :] + data, 0)

    def memory(self) -> i64:
        """Return how many bytes are held: unparsed ones, and those of an incomplete request."""
        size: i64 = len(self.held) - self.held_from + self.idle + len(self.body)
        if self.parts is not None:
            size += len(self.parts)
        return size + self.size if self.state == BODY else size

    def cut(self, data: bytes, at: i64) -> i64:
        """Return the end of the piece of `data` that begins at `at`, so that it contains the end of one message at most."""
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
        """Remember the last bytes of an unfinished message, because the end of its head may be cut in two."""
        if self.state >= HEAD:
            last = data[-3:]
            self.tail = last if len(last) == 3 else (self.tail + last)[-3:]

    def feed(self, piece: bytes) -> u8:
        """Parse a piece and return what it found. Raises an error of our own callbacks."""
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
        """Continue after a head that asks for another protocol, which this server does not speak.

        The argument is the number of bytes that are not parsed yet. httptools' parser expects no further HTTP. If the head
        announced a body, another parser parses it, after an artificial head. The callbacks for that head are ignored,
        because the state is BODY.
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
        """Handle the target or a part of it. The first part begins a request."""
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
        """Handle one header field. Fields after a chunked body are ignored. Raises HeadTooLargeError."""
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
        """Handle a Host line. An invalid one counts as two, and so do more than two."""
        self.call.host = value
        self.hosts = 1 if self.hosts == 0 else 2
        if value != self.names.host:
            value = value.strip(b" \t")
            if is_host(value):
                self.names.host = value
            else:
                self.hosts = 2

    def on_headers_complete(self) -> None:
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
        """Note the length of the body that follows."""
        self.remaining = 0
        if call.content_length is not None and not call.chunked:
            try:
                self.remaining = call.announced()
            except HttpError:  # the contract answers it
                return

    def has_one_host(self) -> bool:
        """Return whether the request has one valid Host, or none in a version without Host (RFC 9112, 3.2)."""
        return self.hosts == 1 or (self.hosts == 0 and not self.speaks("1.1"))

    def speaks(self, version: str) -> bool:
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
        """Return whether the caller waits for `100 Continue`, which HTTP/1.0 does not have."""
        return self.has & HAS_EXPECT != 0 and not self.speaks("1.0")

    def may_hold_back_body(self) -> bool:
        """Return whether the caller may leave out the body when the head alone is answered."""
        return self.has & HAS_EXPECT != 0 and self.body_follows()

    def on_body(self, part: bytes) -> None:
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
        """Complete the request. After an upgrade, its body is still to come, which httptools' parser does not know."""
        if self.state == BROKEN or (self.has & HAS_UPGRADE and self.body_follows()):
            return
        self.state = COMPLETE
        self.idle = 0
        self.remaining = 0
        self.tail = b""
        self.news |= END_CAME


def is_host(value: bytes) -> bool:
    """Return whether a Host value is valid: a name or an address, perhaps with a port, or empty (RFC 9110, 7.2).

    A list is invalid, although a name may contain a comma: some proxies join two Host lines, and such a request must not pass.
    """
    return len(value) <= MAX_HOST and b"," not in value and AUTHORITY.fullmatch(value) is not None


def origin_form(target: bytes) -> bytes | None:
    """Return path and query of a target that is absolute (`http://host/path?query`), has a fragment, or is `*`.

    Returns None for a target that cannot be answered.
    """
    try:
        parsed: Any = httptools.parse_url(target)  # a part that is missing is None; the types say otherwise
    except httptools.HttpParserInvalidURLError:
        return None
    path: bytes = b"/" if parsed.path is None else parsed.path
    query: bytes | None = parsed.query
    return path if query is None else path + b"?" + query
