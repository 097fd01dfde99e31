"""Kinds of value that are names in HTTP: headers and methods.

As in `kinds.py`, a parser knows no option and no source, and reads its own results unchanged.
"""

from __future__ import annotations

import re

from flagsvc.settings.kinds import Kind, RefusedError, parse_text, quoted, several

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
ANSWER_HEADER = Kind("the name of a header that answers do not have yet", "NAME", parse_answer_header)
HEADER_NAMES = several(parse_token, "names of headers, with commas between", "NAMES")
METHODS = several(parse_method, "HTTP methods, with commas between", "METHODS")
