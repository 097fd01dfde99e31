"""Cross-origin resource sharing by the rules of npm `cors` 2.8 (behaviour: CORS). Compiled.

The constructor decides everything that depends only on options. The Origin of a request is checked only if origins are a list.
"""

from __future__ import annotations

import re
from typing import Final

from flagsvc.http.messages import Headers
from flagsvc.proxy.api.settings import ServiceSettings

ALLOW_ORIGIN: Final = b"access-control-allow-origin"
ALLOW_HEADERS: Final = b"access-control-allow-headers"
ANY_ORIGIN: Final = "*"
WILDCARD: Final = "[A-Za-z0-9._-]+"
"""The characters that a `*` inside an origin stands for: one or more labels of a host, or a port."""
NAMES: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z, \t-]+")
"""Names of headers, separated by commas. Only such text is sent back, so that no line end can be."""


class Cors:
    """The CORS headers of every answer and of a preflight.

    `fixed` are the headers of every answer except a preflight's. `dynamic` tells that Access-Control-Allow-Origin depends on the
    request. `vary` are the request headers that an answer depends on.
    """

    def __init__(self, settings: ServiceSettings) -> None:
        origin = settings.cors_origin
        self.origins: frozenset[bytes] = frozenset()
        self.patterns: list[re.Pattern[bytes]] = []
        self.dynamic: bool = not isinstance(origin, str)
        self.vary: tuple[bytes, ...] = () if origin == ANY_ORIGIN else (b"Origin",)
        first: Headers = [] if not isinstance(origin, str) else [(ALLOW_ORIGIN, origin.encode())]
        if not isinstance(origin, str):
            self.origins = frozenset(each.encode() for each in origin if "*" not in each)
            self.patterns = [compile_origin(each) for each in origin if "*" in each]
        if settings.cors_credentials:
            first.append((b"access-control-allow-credentials", b"true"))
        exposed: Headers = text_header(b"access-control-expose-headers", ", ".join(settings.cors_exposed_headers))
        self.fixed: Headers = first + exposed
        self.preflight_fixed: Headers = (
            first
            + text_header(b"access-control-allow-methods", ", ".join(settings.cors_methods))
            + text_header(ALLOW_HEADERS, ", ".join(settings.cors_allowed_headers))
            + text_header(b"access-control-max-age", str(settings.cors_max_age))
            + exposed
        )
        self.repeats: bool = not settings.cors_allowed_headers
        asked: tuple[bytes, ...] = (b"Access-Control-Request-Headers",) if self.repeats else ()
        self.preflight_vary: tuple[bytes, ...] = self.vary + asked
        if self.preflight_vary:
            self.preflight_fixed.append((b"vary", b", ".join(self.preflight_vary)))

    def allows(self, origin: bytes) -> bool:
        """Return whether the list of origins and patterns contains `origin`."""
        if origin in self.origins:
            return True
        return any(pattern.fullmatch(origin) is not None for pattern in self.patterns)

    def headers_for(self, origin: bytes | None) -> Headers:
        """Return the headers of an answer that depend on the request's Origin."""
        if self.dynamic and origin is not None and self.allows(origin):
            return [(ALLOW_ORIGIN, origin)]
        return []

    def preflight_headers_for(self, origin: bytes | None, requested: bytes | None) -> Headers:
        """Return the headers of a preflight's answer that depend on its Origin and Access-Control-Request-Headers."""
        headers = self.headers_for(origin)
        if self.repeats and requested and NAMES.fullmatch(requested) is not None:
            headers.append((ALLOW_HEADERS, requested))
        return headers


def compile_origin(pattern: str) -> re.Pattern[bytes]:
    """Return the expression for an origin with wildcards.

    The text after a wildcard matches where it is found first, without backtracking, so that the time is linear in the length of any
    origin. No match is missed: text that a wildcard cannot match can be in only one place.
    """
    first, *middle, last = (re.escape(part) for part in pattern.split("*"))
    written = first + "".join([f"(?>{WILDCARD}?{part})" for part in middle]) + WILDCARD + last
    return re.compile(written.encode())


def text_header(name: bytes, value: str) -> Headers:
    return [(name, value.encode("latin-1"))] if value else []
