"""Targets of requests in their odd forms."""

from __future__ import annotations

import pytest

from flagsvc.http.server.request_parser import origin_form


@pytest.mark.parametrize(
    ("target", "wanted"),
    [
        (b"http://proxy/a/b?c=d", b"/a/b?c=d"),
        (b"https://user:word@proxy:8443/a", b"/a"),
        (b"http://proxy", b"/"),
        (b"http://proxy?c=d", b"/?c=d"),
        (b"/a?b#c", b"/a?b"),
        (b"//a/b", b"//a/b"),
        (b"*", b"*"),
        (b"proxy:443", None),
        (b"http:///a", None),
        (b"a", None),
    ],
)
def test_forms(target: bytes, wanted: bytes | None) -> None:
    """A target becomes a path and perhaps a query. A text without a path that is not an address either is invalid."""
    assert origin_form(target) == wanted
