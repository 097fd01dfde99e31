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
        "allow",
        "cache-control",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "date",
        "etag",
        "keep-alive",
        "location",
        "retry-after",
        "server",
        "set-cookie",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "vary",
        "www-authenticate",
    }
)
"""Headers of answers that have a meaning of their own."""
CORS_HEADERS = "access-control-"
RESERVED_REQUEST_HEADERS = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "if-none-match",
        "keep-alive",
        "origin",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "x-forwarded-for",
    }
)
"""Headers of requests that have a meaning of their own: they frame a request, belong to one connection, or are read by us."""


READ_BY_THE_SERVER = frozenset(
    {
        *("accept", "authorization", "cookie", "sec-fetch-site", "unleash-appname", "unleash-client-spec"),
        *("unleash-instanceid", "unleash-sdk"),
    }
)
"""Further headers of requests that the flag server reads."""


def parse_header_name(value: object) -> str:
    """Return the name of a header in lower case."""
    return parse_token(value).lower()


def parse_answer_header(value: object) -> str:
    """Return the name of a header that an answer may have in addition, in lower case."""
    name = parse_header_name(value)
    if name in RESERVED_RESPONSE_HEADERS or name.startswith(CORS_HEADERS):
        raise RefusedError(f"{quoted(name)} is reserved for another purpose")
    return name


def parse_key_header(value: object) -> str:
    """Return the name of a header that may carry a key, in lower case."""
    name = parse_header_name(value)
    if name in RESERVED_REQUEST_HEADERS or name.startswith(CORS_HEADERS):
        raise RefusedError(f"{quoted(name)} is reserved for another purpose")
    return name


def parse_user_header(value: object) -> str:
    """Return the name of a header that may tell the user, in lower case."""
    name = parse_key_header(value)
    if name in READ_BY_THE_SERVER:
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
UPSTREAM_RESERVED = RESERVED_REQUEST_HEADERS - {"origin", "x-forwarded-for"} | {"accept", "user-agent"}
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
    if name in UPSTREAM_RESERVED or name.startswith(OWN_PREFIX):
        raise RefusedError(f"{quoted(name)} is reserved for another purpose")
    return name


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
UPSTREAM_NAME = Kind("the name of a header that says nothing else", "NAME", parse_upstream_name)
