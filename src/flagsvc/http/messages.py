"""Requests and responses, independent of the transport. Compiled.

This module knows no routes, no meaning of bodies and no transport: ASGI, a protocol of a server and tests all use it.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from mypy_extensions import mypyc_attr

Headers: TypeAlias = list[tuple[bytes, bytes]]
"""Header fields in order; names are lower case."""

GET: Final = b"GET"
HEAD: Final = b"HEAD"
POST: Final = b"POST"
OPTIONS: Final = b"OPTIONS"
UNREAD: Final = b""
"""The method of a request that could not be read."""

JSON: Final = b"application/json; charset=utf-8"
TEXT: Final = b"text/plain; charset=utf-8"
HTML: Final = b"text/html; charset=utf-8"
"""Content types of answers."""


class Request:
    """The head of one request.

    `path` is the raw path (percent escapes as sent) below the mount path of the application, and `root` is the mount path (empty if
    it is not mounted). `query` is the text after the question mark. `peer` is the address at the other end of the connection (empty
    if there is none, as on a Unix socket). Header names are in lower case.
    """

    def __init__(
        self,
        method: bytes,
        path: bytes,
        query: bytes,
        headers: Headers,
        *,
        peer: str = "",
        scheme: str = "http",
        root: bytes = b"",
    ) -> None:
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.peer = peer
        self.scheme = scheme
        self.root = root


class Response:
    """A complete answer: a status, header fields and a body.

    `fixed` is shared between answers and never changed, so that a transport can cache its encoded form by identity. `own` belongs
    to this answer. `body` is sent as it is: empty for HEAD and 304, compressed if that was negotiated. It may be given as `pieces`,
    which are joined once: after the head, or when `body` is read. `close` tells that a huge request body is still coming and will
    not be read, so that the connection must be closed.
    """

    def __init__(self, status: int, fixed: Headers, own: Headers, body: bytes, pieces: list[bytes] | None = None) -> None:
        self.status = status
        self.fixed = fixed
        self.own = own
        self.whole = body
        self.pieces = pieces
        self.close = False

    @property
    def body(self) -> bytes:
        if self.pieces is not None:
            self.whole = b"".join(self.pieces)
            self.pieces = None
        return self.whole

    @body.setter
    def body(self, body: bytes) -> None:
        self.whole = body
        self.pieces = None

    def headers(self) -> Headers:
        """Return every header field."""
        return self.fixed + self.own


@mypyc_attr(allow_interpreted_subclasses=True)
class HttpError(Exception):
    """The answer is an error with this status (behaviour: Statuses and bodies).

    `problems` are pairs of a JSON pointer (`/body/toggles/0`) and the rule that the value there breaks; empty if the request
    as a whole is wrong. `limit` is the limit that was reached, one of `reached_limits.LIMITS`, or empty. `retry` is the seconds
    until the next attempt, or 0.
    """

    def __init__(self, status: int, message: str, problems: list[tuple[str, str]], limit: str = "", retry: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.problems = problems
        self.limit = limit
        self.retry = retry


def below(place: str, name: str) -> str:
    """Return the JSON pointer of the field `name` below the pointer `place`."""
    return place + "/" + name.replace("~", "~0").replace("/", "~1")


def invalid(place: str, name: str | None, rule: str, limit: str = "") -> HttpError:
    """Return the 400 for a value that breaks `rule`: the field `name` below the JSON pointer `place`, or `place` itself.

    `limit` is as in HttpError.
    """
    pointer = place if name is None else below(place, name)
    return HttpError(400, "the request does not fit its schema", [(pointer, rule)], limit)
