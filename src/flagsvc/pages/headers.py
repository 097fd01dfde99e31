"""The headers of pages, their cookies, and where a change may come from (decision 0032)."""

from __future__ import annotations

from typing import Final

from flagsvc.http.call import COOKIE, FETCH_SITE, HOST
from flagsvc.http.messages import Headers

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
GUARDS: Final[Headers] = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),  # with `no-referrer`, a form sends no origin either
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
]
"""Headers of every page and file."""
PAGE_HEADERS: Final[Headers] = [*GUARDS, (b"cache-control", b"no-store")]
"""Headers of a page. A page is for one person, so no cache keeps it."""
FILE_HEADERS: Final[Headers] = [*GUARDS, (b"cache-control", b"public, max-age=31536000, immutable")]
"""Headers of a file, whose path has a digest of its content."""
READ_HEADERS: Final = {b"cookie": COOKIE, b"host": HOST, b"sec-fetch-site": FETCH_SITE}
"""The headers that pages read, beside those of the service."""
SAME_ORIGIN: Final = b"same-origin"


def is_own_request(fetch_site: bytes | None, origin: bytes | None, host: bytes | None) -> bool:
    """Return whether a page of ours sent a request that changes something.

    Browsers say so in `Sec-Fetch-Site`; on plain HTTP outside of this machine only `Origin` tells. A request without either comes
    from no page: a program sends a token instead of a cookie.
    """
    if fetch_site is not None:
        return fetch_site == SAME_ORIGIN
    if not origin or not host:
        return False
    _, mark, place = origin.partition(b"://")
    return bool(mark) and place.lower() == host.lower()


def make_cookie(name: str, value: str, path: str, seconds: int, same_site: str, *, secure: bool = False) -> tuple[bytes, bytes]:
    """Return the header that sets a cookie for so many seconds; 0 seconds remove it. No script reads it."""
    text = f"{name}={value}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite={same_site}{'; Secure' if secure else ''}"
    return b"set-cookie", text.encode()


KEPT_S: Final = 365 * 86_400
"""Seconds for which a browser keeps a choice."""


def keep_choice(name: str, value: str, pages: str) -> tuple[bytes, bytes]:
    """Return the header with which a browser keeps what a person chose, for a year below `pages`; an empty value removes it."""
    return make_cookie(name, value, pages, KEPT_S if value else 0, "Lax")


def read_cookie(header: bytes | None, name: str) -> str:
    """Return the value of a cookie in a Cookie header; empty without one."""
    return dict(each.strip().partition("=")[::2] for each in (header or b"").decode("latin-1").split(";")).get(name, "")
