"""The JavaScript module for SDKs in pages, as browsers and caches get it (dialects: Event streams)."""

from __future__ import annotations

import gzip

import pytest

from flagsvc.proxy.api.stream_routes import read_module
from support.wirekit import Opener

PLACES = ("/proxy/live.js", "/api/frontend/live.js", "/api/proxy/live.js", "/API//frontend/live.js/")


@pytest.mark.parametrize("path", PLACES)
def test_everybody_gets_it(opened: Opener, path: str) -> None:
    """It needs no key, no configuration and no streams, because a page whose import fails shows nothing. Any cache keeps it."""
    wire = opened(document=None, max_streams=0, base_path="/base")
    answer = wire.get(f"/base{path}", {"accept-encoding": "identity"}, key=None)
    assert (answer.status, answer.body) == (200, read_module())
    assert answer.header("content-type") == "text/javascript; charset=utf-8"
    assert answer.header("cache-control") == "public, max-age=3600"
    assert answer.header("x-content-type-options") == "nosniff"
    again = wire.get(f"/base{path}", {"if-none-match": answer.header("etag") or ""}, key="any")
    assert (again.status, again.body, again.header("cache-control")) == (304, b"", "public, max-age=3600")


def test_the_origins_of_the_option(opened: Opener) -> None:
    """A script of another origin is loaded with CORS: the answer names the page's origin if the option has it."""
    wire = opened(cors_origin=("https://shop.example",))
    for origin, allowed in (("https://shop.example", "https://shop.example"), ("https://other.example", None)):
        answer = wire.get(PLACES[0], {"origin": origin}, key=None)
        assert (answer.status, answer.header("access-control-allow-origin")) == (200, allowed)
        assert "Origin" in (answer.header("vary") or "")


def test_it_is_small() -> None:
    """A page loads less than 2,500 bytes for it."""
    assert len(gzip.compress(read_module())) < 2_500
