"""No answer can be split: nothing that a caller sends adds a line to a head (behaviour: CORS; Evaluation endpoints)."""

from __future__ import annotations

import re

import pytest

from flagsvc.proxy.api.routes import ROUTES
from support.aio import asynchronous
from support.frontkit import dial, serving
from support.wirekit import KEY, Opener

MARK = "x-evil"
SPLITS = tuple(
    f"a{end}{MARK}: 1" for end in ("\r\n", "\n", "\r", "\r\n\r\n", "\0", "\x0b", "\x0c", "\x85", "%0d%0a", "\\r\\n")
)
REFLECTED = ("access-control-request-headers", "access-control-request-method", "origin", "accept-encoding", "if-none-match",
             "host", "content-type", "x-forwarded-for", "authorization")  # fmt: skip
"""Request headers that affect the answer's head, or look as if they did."""
PATHS = sorted({row.path for row in ROUTES} | {f"/{MARK}", "/%0d%0ax-evil:%201"})


@pytest.mark.parametrize("header", REFLECTED)
def test_a_server_that_lets_line_ends_through(over_asgi: Opener, header: str) -> None:
    """Under a server that does not filter them, control characters are not copied into a header."""
    for origin in ("*", ("https://a.example", "https://b.example")):
        wire = over_asgi(enable_oas=True, enable_all_endpoint=True, cors_origin=origin)
        for split in SPLITS:
            for method in ("OPTIONS", "GET", "POST", "DELETE"):
                answer = wire.ask(method, "/proxy", {header: split}, key=None if header == "authorization" else KEY)
                for name, value in answer.fields:
                    assert name != MARK and not re.search(r"[\x00-\x1f\x7f]", value), (method, split, name, value)


@pytest.mark.parametrize("header", REFLECTED)
@asynchronous
async def test_line_ends_on_the_wire(header: str) -> None:
    """Bytes that a parser might take for a line end add no line to the answer's head."""
    given = serving(enable_oas=True)
    for split in SPLITS:
        for method in ("OPTIONS", "GET"):
            line = dial(given)
            line.send(f"{method} /proxy HTTP/1.1\r\nHost: proxy\r\n{header}: {split}\r\n\r\n".encode("latin-1"))
            head = bytes(line.transport.data).partition(b"\r\n\r\n")[0]
            assert head and not re.search(rb"[\r\n]x-evil", head, re.IGNORECASE), (split, head)
            assert not re.search(rb"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f]", head)


@pytest.mark.parametrize("path", PATHS)
def test_a_path_or_query_is_in_no_head(opened: Opener, path: str) -> None:
    """No head holds the path or query, escaped or raw."""
    wire = opened(enable_oas=True, enable_all_endpoint=True)
    for target in (path, f"{path}/", f"{path}?{MARK}=%0d%0a{MARK}:%201", f"/%0d%0a{MARK}:1{path}"):
        answer = wire.get(target)
        assert not any(MARK in name + value for name, value in answer.fields), target
