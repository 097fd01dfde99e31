"""Every route of the callers' address, and the answers besides 200 (specification: Endpoints; behaviour: Other endpoints).

The service, the OpenAPI document and the tests of the wire read these rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from flagsvc.http.route import Documented
from flagsvc.proxy.api.dialects import DIALECTS
from flagsvc.proxy.api.dialects.dialect import Dialect
from flagsvc.proxy.api.operations import OPERATIONS, WELCOME
from flagsvc.proxy.api.route import Auth, ProxyRoute


def routes_of(dialects: Sequence[Dialect]) -> tuple[ProxyRoute, ...]:
    """Return the routes of a service that speaks these dialects, in the order of the documentation."""
    return (WELCOME, *(row for dialect in dialects for row in dialect.routes), *OPERATIONS)


ROUTES = routes_of(DIALECTS)

ANSWERS: tuple[Documented[ProxyRoute], ...] = (
    Documented(
        304,
        "The caller has this answer already (If-None-Match)",
        lambda row: row.method == "GET" or (row.wire_format.compares_posts and row.result is not None),
        "",
    ),
    Documented(
        400,
        "The query string or the body does not fit, or the key came twice",
        lambda row: bool(row.query) or row.body is not None or row.auth is not Auth.NONE,
    ),
    Documented(401, "The key is missing or wrong", lambda row: row.auth is not Auth.NONE, "text/plain"),
    Documented(
        403,
        "The key is for other endpoints",
        lambda row: row.wire_format.tells_key_types and row.auth in (Auth.CLIENT, Auth.SERVER),
    ),
    Documented(404, "There is no such toggle", lambda row: bool(row.parameters)),
    Documented(404, "A caller with a key is an SDK with a wrong URL", lambda row: row.handler == "welcome"),
    Documented(413, "The body is too large", lambda row: row.body is not None),
    Documented(414, "The query string is too long", lambda _: True),
    Documented(415, "The media type, charset or content coding is not read", lambda row: row.body is not None),
    Documented(429, "The rate limit for the key or the address is used up", lambda row: row.auth is not Auth.NONE),
    Documented(431, "The header block is too large", lambda _: True),
    Documented(500, "Something unexpected happened", lambda _: True),
    Documented(503, "There is no configuration yet", lambda row: not row.always, "text/plain"),
    Documented(503, "Callers should not be sent here", lambda row: row.handler == "ready", "text/plain"),
)
"""The answers besides 200, each with the rows that can give it."""


def answers_of(row: ProxyRoute) -> list[Documented[ProxyRoute]]:
    """Return the answers a row can give besides a 200."""
    return [answer for answer in ANSWERS if answer.applies(row)]
