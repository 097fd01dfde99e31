"""The target of a request line in its odd forms (RFC 9112, 3.2). Compiled."""

from __future__ import annotations

from typing import Any

import httptools


def origin_form(target: bytes) -> bytes | None:
    """Return the path and the query of a target: absolute (`http://host/path?query`), with a fragment, or `*`.

    None for what is no target of a request that can be answered.
    """
    try:
        parsed: Any = httptools.parse_url(target)  # what is not there is None, whatever the types say
    except httptools.HttpParserInvalidURLError:
        return None
    path: bytes = b"/" if parsed.path is None else parsed.path
    query: bytes | None = parsed.query
    return path if query is None else path + b"?" + query
