"""Unusual heads: the end of a request is unambiguous, or the request is refused (RFC 9112, 6 and 11.2).

If two programs disagree, the end of one caller's body becomes the beginning of another caller's request.

Targets of requests in their odd forms.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from flagsvc.http.call import Call
from flagsvc.http.contract import Contract
from flagsvc.http.messages import Response
from flagsvc.http.reached_limits import Reached
from flagsvc.http.server.request_parser import origin_form
from flagsvc.testing import RecordingLog, turns
from support.frontframing import HIDDEN, LAST, REFUSED, TAKEN, TOO_LARGE
from support.frontkit import KEYED, dial, get, head, parse_answer, serving

in_pieces = pytest.mark.parametrize("size", [100_000, 1], ids=["in one piece", "byte by byte"])


THE_LAST = {
    **{f"odd: {name}": (data, (400,)) for name, data in REFUSED.items()},
    **{f"version: {name}": (data, (200, 400)) for name, data in LAST.items()},
    **{f"too large: {name}": (data, (400, 431)) for name, data in TOO_LARGE.items()},
}
"""Heads → the statuses that their answers may have."""


@pytest.mark.parametrize("name", THE_LAST)
@in_pieces
async def test_the_last_request_of_a_connection(name: str, size: int) -> None:
    """Odd framing, a version that keeps no connection, and too large a head, for every kind of its end."""
    data, statuses = THE_LAST[name]
    data += HIDDEN
    step = size if len(data) < 10_000 else size * 7_000
    line = dial(serving(), quiet=True)
    line.send(*(data[at : at + step] for at in range(0, len(data), step)))
    status, fields, _, rest = parse_answer(bytes(line.transport.data))
    assert status in statuses and rest == b"" and ("connection", "close") in fields
    assert line.transport.over and b" 404 " not in line.transport.data


@pytest.mark.parametrize("name", TAKEN)
@in_pieces
async def test_good_framing_is_taken(name: str, size: int) -> None:
    """There are two answers: one to this request, and one to the next."""
    data = TAKEN[name] + get("/proxy/health")
    line = dial(serving())
    line.send(*(data[at : at + size] for at in range(0, len(data), size)))
    assert line.answers("POST", "GET") == [200, 200]
    assert not line.transport.over


async def test_a_host_is_not_needed_in_old_versions() -> None:
    """HTTP/1.0 has no Host header, so a missing Host is no fault there."""
    line = dial(serving(), quiet=True).send(b"GET /proxy/health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    assert line.answers() == [200] and not line.transport.over


async def test_a_tunnel_is_not_opened() -> None:
    """CONNECT is refused. The bytes behind CONNECT are for the other end of the tunnel, so the server reads no request in them."""
    for data in (
        head("CONNECT proxy:443 HTTP/1.1") + HIDDEN,
        head("CONNECT proxy:443 HTTP/1.1", f"Content-Length: {len(HIDDEN)}") + HIDDEN,
        head("CONNECT /proxy HTTP/1.1", KEYED) + HIDDEN,
    ):
        line = dial(serving(), quiet=True).send(data)
        status, fields, _, rest = parse_answer(bytes(line.transport.data))
        assert status in (400, 404, 405) and ("connection", "close") in fields
        assert rest == b"" and line.transport.over


class Admitting(Contract):
    """Admits every request, and answers it with 404, at once or later."""

    def __init__(self, later: bool) -> None:
        super().__init__({}, 10_000, 10_000, Reached(), RecordingLog())
        self.later = later

    def check_head(self, call: Call) -> Call:
        return call

    def answer(self, call: Call, body: bytes) -> Any:
        """Return the answer, or an awaitable of it."""
        return asyncio.sleep(0, self.early_refusal(404)) if self.later else self.early_refusal(404)

    def early_refusal(self, status: int, crowded: bool = False) -> Response:
        return Response(status, [(b"content-length", b"0")], [], b"")

    def fail(self, call: Call, error: Exception) -> Response:
        return self.early_refusal(500)


@pytest.mark.parametrize("later", [False, True], ids=["at once", "later"])
async def test_a_tunnel_is_not_opened_behind_the_head(later: bool) -> None:
    """The same holds where a contract decides by more than the head."""
    given: Any = SimpleNamespace(service=Admitting(later))
    line = dial(given).send(head("CONNECT /proxy HTTP/1.1") + HIDDEN)
    await turns()
    status, fields, _, rest = parse_answer(bytes(line.transport.data))
    assert (status, rest) == (404, b"") and ("connection", "close") in fields
    assert line.transport.over


SPLITTING = (
    head("OPTIONS /proxy HTTP/1.1", "Origin: https://a.example", "Access-Control-Request-Headers: a\r\n Set-Cookie: b=c"),
    head("OPTIONS /proxy HTTP/1.1", "Access-Control-Request-Headers: a%0d%0aSet-Cookie: b=c"),
    head("OPTIONS /proxy HTTP/1.1", "Access-Control-Request-Headers: a\x85Set-Cookie: b=c"),
    head("OPTIONS /proxy HTTP/1.1", "Access-Control-Request-Headers: a\tb\x0bSet-Cookie: b"),
    head("GET /proxy HTTP/1.1", KEYED, "Origin: https://a.example\r\n Set-Cookie: b=c"),
    head("GET /%0d%0aSet-Cookie:b=c HTTP/1.1"),
    head("GET /proxy/health?%0d%0aSet-Cookie:b=c HTTP/1.1"),
    head("GET /proxy HTTP/1.1", KEYED, 'If-None-Match: W/"a"\r\n Set-Cookie: b=c'),
    head("PUT /proxy%0aSet-Cookie:b HTTP/1.1"),
)


@pytest.mark.parametrize("data", SPLITTING)
@pytest.mark.parametrize("settings", [{}, {"cors_origin": ("https://*.example",)}, {"cors_origin": ("https://a.example",)}])
async def test_nothing_that_is_sent_becomes_a_header(data: bytes, settings: dict[str, object]) -> None:
    """No line end, and no field of a caller's making, gets into the head of an answer."""
    line = dial(serving(**settings), quiet=True).send(data)  # type: ignore[arg-type]
    _, fields, _, rest = parse_answer(bytes(line.transport.data), data.split()[0].decode())
    assert rest == b""
    assert all("cookie" not in name.lower() for name, _ in fields)
    assert all("\r" not in value and "\n" not in value and "\x0b" not in value for _, value in fields)
    assert all("cookie" not in value.lower() for _, value in fields)


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
