"""The unusual forms of the target in a request line (RFC 9112, 3.2). Compiled."""

from __future__ import annotations

import re
from typing import Any, Final

import httptools

MAX_HOST: Final = 512
"""The most bytes of a Host: a DNS name has 253 at most."""
AUTHORITY: Final = re.compile(
    rb"(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*(?::[0-9]{0,5})?"
    rb"|\[[0-9A-Fa-f:.]{2,45}(?:%25[A-Za-z0-9._~-]{1,16})?\](?::[0-9]{0,5})?"
)


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
