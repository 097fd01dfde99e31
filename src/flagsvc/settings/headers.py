"""Kinds of value that are names in HTTP: headers and methods.

As in `kinds.py`, a parser knows no option and no source, and reads its own results unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from flagsvc.settings.kinds import Kind, RefusedError, parse_header_value, parse_text, quoted, several, unquoted

TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
RESERVED_RESPONSE_HEADERS = frozenset(
    {
        *("accept-ranges", "allow", "cache-control", "connection", "content-disposition", "content-encoding"),
        *("content-language", "content-length", "content-location", "content-range", "content-security-policy"),
        *("content-type", "cross-origin-opener-policy", "cross-origin-resource-policy", "date", "etag", "expires"),
        *("keep-alive", "last-modified", "link", "location", "permissions-policy", "pragma", "proxy-authenticate"),
        *("referrer-policy", "retry-after", "server", "set-cookie", "strict-transport-security", "te", "trailer"),
        *("transfer-encoding", "upgrade", "vary", "via", "www-authenticate", "x-content-type-options"),
    }
)
"""Headers of answers that have a meaning of their own."""
CORS_HEADERS = "access-control-"
FRAMING_HEADERS = frozenset(
    {
        *("connection", "content-length", "expect", "host", "http2-settings", "keep-alive", "proxy-authenticate"),
        *("proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"),
    }
)
"""Headers that frame a request or belong to one connection. A server on the way reads, changes or removes them."""
FORWARDING_HEADERS = frozenset(
    {
        *("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-port", "x-forwarded-prefix"),
        *("x-forwarded-proto", "x-forwarded-server", "x-real-ip"),
    }
)
"""Headers that a server on the way writes. Those with a person or a token, such as X-Forwarded-User, are none of them."""
CLIENT_HEADERS = frozenset(
    {
        *("accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "content-encoding"),
        *("content-type", "cookie", "date", "if-match", "if-modified-since", "if-none-match", "if-range"),
        *("if-unmodified-since", "origin", "pragma", "priority", "range", "referer", "set-cookie", "user-agent"),
        *("unleash-appname", "unleash-client-spec", "unleash-connection-id", "unleash-instanceid"),
        *("unleash-interval", "unleash-sdk"),
    }
)
"""Headers that browsers, SDKs and HTTP clients write with a meaning of their own."""
RESERVED_REQUEST_HEADERS = FRAMING_HEADERS | FORWARDING_HEADERS | CLIENT_HEADERS
RESERVED_BEGINNINGS = (CORS_HEADERS, "sec-")
"""How names begin that browsers write and no page may set."""
AUTHORIZATION = "authorization"


def parse_header_name(value: object) -> str:
    """Return the name of a header in lower case."""
    return parse_token(value).lower()


def parse_answer_header(value: object) -> str:
    """Return the name of a header that an answer may have in addition, in lower case."""
    name = parse_header_name(value)
    return _unless(name in RESERVED_RESPONSE_HEADERS or name.startswith(CORS_HEADERS), name)


def parse_key_header(value: object) -> str:
    """Return the name of a header that may carry a key, in lower case."""
    name = parse_header_name(value)
    return _unless(name in RESERVED_REQUEST_HEADERS or name.startswith(RESERVED_BEGINNINGS), name)


def parse_user_header(value: object) -> str:
    """Return the name of a header that may tell the user, in lower case. The key of a caller has its own."""
    name = parse_key_header(value)
    return _unless(name == AUTHORIZATION, name)


def _unless(reserved: bool, name: str) -> str:
    if reserved:
        raise RefusedError(f"{quoted(name)} is reserved for another purpose")
    return name


def parse_token(value: object) -> str:
    """Return a token as HTTP defines it: the name of a header or of a method."""
    text = parse_text(value)
    if not TOKEN.fullmatch(text):
        raise RefusedError
    return text


def parse_method(value: object) -> str:
    """Return the name of an HTTP method in upper case."""
    return parse_token(value).upper()


KEY_HEADER = Kind("the name of a header that says nothing else", "NAME", parse_key_header)
USER_HEADER = KEY_HEADER._replace(parse=parse_user_header)
ANSWER_HEADER = Kind("the name of a header that answers do not have yet", "NAME", parse_answer_header)
HEADER_NAMES = several(parse_token, "names of headers, with commas between", "NAMES")
METHODS = several(parse_method, "HTTP methods, with commas between", "METHODS")
UPSTREAM_RESERVED = FRAMING_HEADERS | {
    *("accept", "accept-encoding", "content-encoding", "content-type", "if-none-match", "user-agent"),
}
"""Headers that a request to the upstream has for a reason of its own; so have those that begin with `unleash-`."""
OWN_PREFIX = "unleash-"


def parse_upstream_headers(value: object) -> tuple[tuple[str, str], ...]:
    """Return headers for the upstream as (name, value) pairs, with names in lower case.

    A text has one header in each line or, in a single line, between commas: `Name: value`.
    """
    pairs: list[object]
    if isinstance(value, Mapping):
        pairs = list(value.items())
    elif isinstance(value, str):
        lines = value.strip().splitlines()
        parts = lines if len(lines) > 1 else value.split(",")
        pairs = [tuple(part.split(":", 1)) for part in parts if part.strip()]
    elif isinstance(value, list | tuple):
        pairs = [tuple(part.split(":", 1)) if isinstance(part, str) else part for part in value]
    else:
        raise RefusedError
    found = dict(parse_upstream_header(pair) for pair in pairs)
    if len(found) != len(pairs):
        raise RefusedError("a name comes twice")
    return tuple(found.items())


def parse_upstream_header(pair: object) -> tuple[str, str]:
    """Return the name and the value of one header for the upstream."""
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        raise RefusedError("a header is a name and a value, with a colon between them")
    return parse_upstream_name(pair[0]), parse_header_value(pair[1])


def parse_upstream_name(value: object) -> str:
    """Return the name of a header that may be sent to the upstream in addition, in lower case."""
    name = parse_header_name(value)
    return _unless(name in UPSTREAM_RESERVED or name.startswith(OWN_PREFIX), name)


def parse_upstream_key_header(value: object) -> str:
    """Return the name of a header that may carry the key for the upstream, in lower case."""
    return parse_upstream_name(parse_key_header(value))


def mask_headers(headers: tuple[tuple[str, str], ...]) -> object:
    """Return the names of headers without their values."""
    return tuple(f"{name}: ***" for name, _ in headers)


UPSTREAM_HEADERS = Kind(
    "headers such as X-Gateway-Key: value, with commas or line ends between",
    "HEADERS",
    parse_upstream_headers,
    safe=mask_headers,
    echo=unquoted,
)
UPSTREAM_NAME = KEY_HEADER._replace(parse=parse_upstream_key_header)
