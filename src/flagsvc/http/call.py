"""A request inside the service: the facts of its head, and the endpoint of its route. Compiled."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from mypy_extensions import i64, mypyc_attr

from flagsvc.core.tracing import Span
from flagsvc.http.counts import StatusCounts
from flagsvc.http.keys import KeyCheck
from flagsvc.http.media import PLAIN, Media
from flagsvc.http.messages import HttpError, Request, Response

KEY: Final = 1
ORIGIN: Final = 2
IF_NONE_MATCH: Final = 3
ACCEPT_ENCODING: Final = 4
FORWARDED_FOR: Final = 5
CONTENT_TYPE: Final = 6
CONTENT_LENGTH: Final = 7
CONTENT_ENCODING: Final = 8
TRANSFER_ENCODING: Final = 9
REQUESTED_HEADERS: Final = 10
CLIENT_SPEC: Final = 11
ACCEPT: Final = 12
COOKIE: Final = 13
FETCH_SITE: Final = 14
APP_NAME: Final = 15
INSTANCE_ID: Final = 16
SDK: Final = 17
USER: Final = 18
GROUPS: Final = 19
"""The last two are what a proxy in front says of a person; their names are options."""
LAST_EVENT_ID: Final = 21
SPARE_KEY: Final = 20
"""Where OpenFeature providers send the key, unless they send it in the key's own header."""
TRACEPARENT: Final = 22
TRACED: Final = {b"traceparent": TRACEPARENT}
"""What is read as well, if requests are traced."""
OFREP_PATH: Final = b"/ofrep/"
"""The spare header counts only in such a path: anywhere else a gateway in front may have set it for itself."""
HOST: Final = 104
"""The connection reads a Host, too."""

LONGEST_READ: Final = 512
"""Longer Accept-Encoding headers are ignored: no real one is longer, and reading 64 kB of it takes 20 ms."""
MAX_DIGITS: Final = 16
MAX_LENGTH: Final = 10**15
"""A Content-Length with more digits is above any limit, and is not converted to a number."""

HEADERS: Final[dict[bytes, int]] = {
    b"origin": ORIGIN,
    b"if-none-match": IF_NONE_MATCH,
    b"accept-encoding": ACCEPT_ENCODING,
    b"accept": ACCEPT,
    b"x-forwarded-for": FORWARDED_FOR,
    b"content-type": CONTENT_TYPE,
    b"content-length": CONTENT_LENGTH,
    b"content-encoding": CONTENT_ENCODING,
    b"transfer-encoding": TRANSFER_ENCODING,
    b"access-control-request-headers": REQUESTED_HEADERS,
    b"unleash-client-spec": CLIENT_SPEC,
    b"x-api-key": SPARE_KEY,
    b"last-event-id": LAST_EVENT_ID,
}
"""The headers that the service reads. The name of the client key's header is an option."""


class Call:
    """A request: the facts of its head, and its endpoint.

    The header attributes are None if the header is missing. The lines of a list header are joined with commas; of any other header
    the first line counts. `others` has headers that few callers send, by kind; see `other`. `keyed_twice` tells that the
    key came in several lines. `limit` is the most bytes of body to read; 0 for none, because the body of a GET is never read.
    `depth` is the deepest allowed nesting of its JSON. `huge` tells that the body is so large that the connection should be closed
    and not drained. `handler` answers the call: the contract, or what the contract has chosen. `key_pending` tells that the key is
    checked later, after the body has arrived, and `is_counted` that the request counts for the rate of its address already.
    `started` is the moment of `time.monotonic` when the head was there. `span` is the span of a request that is traced.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.endpoint: Endpoint | None = None
        self.media: Media = PLAIN
        self.limit: int = 0
        self.depth: int = 0
        self.huge: bool = False
        self.size: i64 = 0
        self.started: float = 0.0
        self.key: bytes | None = None
        self.keyed_twice: bool = False
        self.origin: bytes | None = None
        self.if_none_match: bytes | None = None
        self.accept_encoding: bytes | None = None
        self.forwarded: bytes | None = None
        self.content_type: bytes | None = None
        self.content_length: bytes | None = None
        self.content_encoding: bytes | None = None
        self.transfer_coding: bytes | None = None
        self.requested_headers: bytes | None = None
        self.client_spec: bytes | None = None
        self.accept: bytes | None = None
        self.host: bytes | None = None
        self.others: dict[int, bytes] | None = None
        self.handler: Handler = NO_HANDLER
        self.key_pending: bool = False
        self.is_counted: bool = False
        self.span: Span | None = None

    def read(self, table: dict[bytes, int]) -> None:
        """Read the headers that the service needs. `table` has the kind of each header by its name."""
        size: i64 = 0
        for name, value in self.request.headers:
            size += len(name) + len(value) + 4
            kind = table.get(name)
            if kind is not None:
                self.put(kind, value)
        self.size = size

    def put(self, kind: i64, value: bytes) -> None:
        """Set the attribute of a header."""
        if kind == KEY:
            if self.key is None:
                self.key = value
            else:
                self.keyed_twice = True
        elif kind == ACCEPT_ENCODING:
            self.accept_encoding = drop_if_long(join_list(self.accept_encoding, value))
        elif kind == ORIGIN:
            self.origin = value
        elif kind == IF_NONE_MATCH:
            self.if_none_match = join_list(self.if_none_match, value)
        elif kind == FORWARDED_FOR:
            self.forwarded = join_list(self.forwarded, value)
        elif kind == REQUESTED_HEADERS:
            self.requested_headers = join_list(self.requested_headers, value)
        else:
            self.put_content(kind, value)

    def put_content(self, kind: i64, value: bytes) -> None:
        """Set the attribute of a header about a body: of the request's body, or of the accepted answer."""
        if kind == CONTENT_TYPE:
            self.content_type = value if self.content_type is None else self.content_type
        elif kind == CONTENT_LENGTH:
            self.content_length = value
        elif kind == CONTENT_ENCODING:
            self.content_encoding = join_list(self.content_encoding, value)
        elif kind == ACCEPT:
            self.accept = value if self.accept is None else self.accept
        elif kind == CLIENT_SPEC:
            self.client_spec = value if self.client_spec is None else self.client_spec
        elif kind == TRANSFER_ENCODING:
            self.transfer_coding = join_list(self.transfer_coding, value)
        else:
            self.put_other(kind, value)

    def put_other(self, kind: i64, value: bytes) -> None:
        """Keep the host, or a header that few callers send: its first line, of cookies all.

        Of a person that is named twice nothing is kept: one of the lines may be the caller's own.
        """
        if kind == HOST:
            self.host = value
            return
        if self.others is None:
            self.others = {}
        before = self.others.get(kind)
        if before is None:
            self.others[kind] = value
        elif kind == COOKIE:
            self.others[kind] = before + b"; " + value
        elif kind in (USER, GROUPS):
            self.others[kind] = b""

    def use_spare_key(self) -> None:
        """Take the key from the spare header, if that is the only key and counts at the path. The head is complete."""
        if self.key is None and self.others is not None and OFREP_PATH in self.request.path.lower():
            self.key = self.others.get(SPARE_KEY)

    def other(self, kind: int) -> bytes | None:
        """Return a header that has no attribute; None without one."""
        return None if self.others is None else self.others.get(kind)

    @property
    def chunked(self) -> bool:
        """Whether the body has a transfer coding, so that its end is marked in the body itself."""
        return self.transfer_coding is not None

    def has_body(self) -> bool:
        """Return whether the request has a body. Raises HttpError (400) for an invalid length."""
        return self.announced() > 0 or self.chunked

    def announced(self) -> int:
        """Return the Content-Length, at most `MAX_LENGTH`, or 0. Raises HttpError (400) if it is not a number."""
        length = self.content_length
        if length is None:
            return 0
        if not length.isdigit():
            length = length.strip(b" \t")  # the parser does not remove blanks after the value
            if not length.isdigit():
                raise HttpError(400, "the Content-Length is not a number", [])
        digits = length.lstrip(b"0")
        return MAX_LENGTH if len(digits) >= MAX_DIGITS else int(digits or b"0")


def join_list(before: bytes | None, value: bytes) -> bytes:
    """Return a list header with the value of another line added."""
    return value if before is None else before + b", " + value


def drop_if_long(value: bytes) -> bytes:
    """Return a header, or an empty one if it is longer than any real one."""
    return value if len(value) <= LONGEST_READ else b""


Answer: TypeAlias = Response | Awaitable[Response]


@mypyc_attr(allow_interpreted_subclasses=True)
class Handler:
    """Answers calls after all checks of the head. An endpoint has a handler, and a contract chooses a handler for each call."""

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return the response, or an awaitable of it. Raises HttpError."""
        raise HttpError(404, "there is nothing here", [])


NO_HANDLER: Final = Handler()
"""The handler of a call that no contract has seen."""


@mypyc_attr(allow_interpreted_subclasses=True)
class FunctionHandler(Handler):
    """Answers with a function. A contract keeps in it what it knows about the caller."""

    def __init__(self, function: Callable[[Call, bytes], Answer]) -> None:
        self.function = function

    def answer(self, call: Call, body: bytes) -> Answer:
        return self.function(call, body)


class Endpoint:
    """One method of one route: its keys, the limit of its body, and its handler.

    `key_check` checks the key; None if no key is needed. `limit` is the most bytes of body; 0 if none is read. With `typed`, a
    body must have a Content-Type. With `counts_address`, a request counts for the rate of its address though it needs no key. `off`
    tells how to switch the endpoint on; empty if it is on.
    """

    def __init__(
        self,
        handler: Handler,
        key_check: KeyCheck | None,
        limit: int,
        off: str,
        counts: StatusCounts,
        typed: bool = False,
    ) -> None:
        self.handler = handler
        self.key_check = key_check
        self.limit = limit
        self.typed = typed
        self.counts_address: bool = False
        self.off = off
        self.counts = counts


class Resource:
    """One path: its endpoints by method, and whether it answers while there is no configuration.

    With `merges_slashes`, doubled slashes in the path do not matter.
    """

    def __init__(self, always: bool, merges_slashes: bool = False) -> None:
        self.always = always
        self.merges_slashes = merges_slashes
        self.endpoints: dict[bytes, Endpoint] = {}
        self.allow: bytes = b""
