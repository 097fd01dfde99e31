"""The target of a request line in its odd forms (RFC 9112, 3.2). Compiled."""

from __future__ import annotations

import re
from typing import Any, Final

import httptools

MAX_HOST: Final = 512
"""Bytes of a Host: the longest name of the DNS has 253."""
AUTHORITY: Final = re.compile(
    rb"(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*(?::[0-9]{0,5})?"
    rb"|\[[0-9A-Fa-f:.]{2,45}(?:%25[A-Za-z0-9._~-]{1,16})?\](?::[0-9]{0,5})?"
)


def is_host(value: bytes) -> bool:
    """Return whether the value of a Host is one: a name or an address, perhaps a port, or nothing (RFC 9110, 7.2).

    A list is none, although a comma may be in a name: a proxy that joins two lines must not get a request through.
    """
    return len(value) <= MAX_HOST and b"," not in value and AUTHORITY.fullmatch(value) is not None


def origin_form(target: bytes) -> bytes | None:
    """Return the path and the query of a target: absolute (`http://host/path?query`), with a fragment, or `*`.

    None for a target of no request that can be answered.
    """
    try:
        parsed: Any = httptools.parse_url(target)  # a part that is missing is None; the types say otherwise
    except httptools.HttpParserInvalidURLError:
        return None
    path: bytes = b"/" if parsed.path is None else parsed.path
    query: bytes | None = parsed.query
    return path if query is None else path + b"?" + query
