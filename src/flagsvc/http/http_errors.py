"""The error responses that do not depend on a body (specification: Errors; behaviour: Order of checks)."""

from __future__ import annotations

from math import ceil

from flagsvc.http.messages import HttpError
from flagsvc.http.reached_limits import ANSWER, CONNECTIONS, HEADERS, MEMORY, QUERY

MAX_SHOWN = 200
UNAUTHORIZED = "Unauthorized"
"""The message of the 401 for a missing or wrong key."""
NO_TLS = "this port speaks plain HTTP, and this is a TLS handshake: use http:// here"


def answer_too_large() -> HttpError:
    """Return the 413 for a look-up that names so many toggles that its answer would be huge."""
    return HttpError(413, "the answer would be too large: name fewer toggles", [], ANSWER)


def not_ready() -> HttpError:
    """Return the 503 while there is no configuration."""
    return HttpError(503, "Not Ready", [])


def unauthorized() -> HttpError:
    """Return the 401 for a missing or wrong client key."""
    return HttpError(401, UNAUTHORIZED, [])


def wrong_key_type() -> HttpError:
    """Return the 403 for a key that opens other routes."""
    return HttpError(403, "invalid token: expected a different token type for this endpoint", [])


def key_unavailable(seconds: float) -> HttpError:
    """Return the 503 for a key that cannot be looked up now; `seconds` is when to try again."""
    return HttpError(503, "the key cannot be checked now", [], "", ceil(seconds))


def duplicate_key(header: str) -> HttpError:
    """Return the 400 for a request with two keys: another program may read the other key, and admit somebody else."""
    return HttpError(400, f"the header `{header}` came more than once", [])


def unknown_path(path: bytes, hint: str = "") -> HttpError:
    """Return the 404 for a path that is not a route. `hint` tells what the caller may have meant."""
    return HttpError(404, f"there is nothing at `{to_printable(path)}`" + (f": {hint}" if hint else ""), [])


def unknown_toggle(path: bytes) -> HttpError:
    """Return the 404 for a path that names a toggle which the configuration does not have."""
    return HttpError(404, f"there is no toggle with the name in `{to_printable(path)}`", [])


def wrong_method(method: bytes, path: bytes) -> HttpError:
    """Return the 405 for a known path with another method."""
    return HttpError(405, f"`{to_printable(path)}` does not take `{to_printable(method)}`", [])


def endpoint_disabled(hint: str) -> HttpError:
    """Return the 501 for an endpoint that an option can switch on."""
    return HttpError(501, hint, [])


def query_too_long(limit: int) -> HttpError:
    return HttpError(414, f"the query string is longer than {limit} bytes", [], QUERY)


def headers_too_large(limit: int) -> HttpError:
    return HttpError(431, f"the header block is larger than {limit} bytes", [], HEADERS)


def too_many_requests(whose: str, limit: str, seconds: float) -> HttpError:
    """Return the 429 for a caller whose rate limit is used up, with the seconds until the next request."""
    return HttpError(429, f"too many requests {whose}", [], limit, max(1, ceil(seconds)))


def too_many_connections() -> HttpError:
    """Return the 503 for a connection above the limit."""
    return HttpError(503, "too many connections", [], CONNECTIONS)


def too_much_memory() -> HttpError:
    """Return the 503 for a request that is aborted because all requests together use too much memory."""
    return HttpError(503, "too many requests are under way, and this one holds more than most", [], MEMORY)


def not_http() -> HttpError:
    """Return the 400 for bytes that are not an HTTP request, or have no clear end or no single host."""
    return HttpError(400, "this is not an HTTP request, or its Host or the length of its body is in doubt", [])


def unexpected_tls() -> HttpError:
    """Return the 400 for a TLS handshake on a port of plain HTTP."""
    return HttpError(400, NO_TLS, [])


def internal_error() -> HttpError:
    """Return the 500, which does not contain the cause."""
    return HttpError(500, "an unexpected error occurred", [])


def to_printable(text: bytes) -> str:
    """Return bytes from a caller as text that is safe in a message."""
    return text[:MAX_SHOWN].decode("ascii", "backslashreplace")
