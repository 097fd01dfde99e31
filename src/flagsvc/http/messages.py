"""What a request and a response are, for every transport alike. Compiled.

This file refuses to know routes, bodies' meaning and any transport: ASGI, a protocol under a server and a test all speak it.
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

JSON: Final = b"application/json; charset=utf-8"
TEXT: Final = b"text/plain; charset=utf-8"
HTML: Final = b"text/html; charset=utf-8"
"""Content types of answers."""


class Request:
    """The head of one request.

    `path` is the raw path (percent escapes as sent) below the place the application is mounted at, `root` that place (empty when
    it is not mounted), `query` what follows the question mark, `peer` the address at the other end of the connection (empty
    when there is none, as on a Unix socket). Header names are lower case.
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
    """One whole answer: a status, header fields and a body.

    `fixed` is shared between answers and never changed, so that a transport may keep its encoded form by identity; `own` belongs
    to this answer. `body` is already what goes out: empty for HEAD and 304, compressed where that was agreed. `close` tells
    that a huge body is still to come which nobody will read: the connection is of no more use.
    """

    def __init__(self, status: int, fixed: Headers, own: Headers, body: bytes) -> None:
        self.status = status
        self.fixed = fixed
        self.own = own
        self.body = body
        self.close = False

    def headers(self) -> Headers:
        """Return every header field."""
        return self.fixed + self.own


@mypyc_attr(allow_interpreted_subclasses=True)
class Refused(Exception):  # noqa: N818  (what the caller sent is at fault, not the program)
    """The answer is an error with this status (behaviour: Statuses and bodies).

    `problems` are pairs of a JSON pointer (`/body/toggles/0`) and what must hold there; empty when the whole is at fault. `limit`
    is the limit that was reached, one of `limits.LIMITS`, if one was; `retry` the seconds after which to ask again, 0 for never.
    """

    def __init__(
        self, status: int, message: str, problems: list[tuple[str, str]], limit: str = "", retry: int = 0
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.problems = problems
        self.limit = limit
        self.retry = retry


def below(place: str, name: str) -> str:
    """Return the JSON pointer of the field `name` below the pointer `place`."""
    return place + "/" + name.replace("~", "~0").replace("/", "~1")


def invalid(place: str, name: str | None, rule: str, limit: str = "") -> Refused:
    """Return the 400 for the field `name` below the JSON pointer `place`, or for `place` itself, which does not keep `rule`.

    `limit` is as in Refused.
    """
    pointer = place if name is None else below(place, name)
    return Refused(400, "the request does not fit its schema", [(pointer, rule)], limit)
