"""Where bytes are cut, and what requests are found in them."""

from __future__ import annotations

import pytest

from flagsvc.http.call import HEADERS, KEY
from flagsvc.http.server.intake import Intake, Quiet
from flagsvc.http.server.names import Names


def intake() -> Intake:
    """Return an intake that tells nobody."""
    return Intake(Names({**HEADERS, b"authorization": KEY}), 1000, "192.0.2.1", "http")


@pytest.mark.parametrize(
    ("tail", "data", "at", "end"),
    [
        (b"", b"a\r\n\r\nb\r\n\r\n", 0, 5),
        (b"", b"a\r\n\r\nb\r\n\r\n", 5, 10),
        (b"", b"a\r\n\r\nb", 5, 6),
        (b"1\r\n", b"\r\nb\r\n\r\n", 0, 2),
        (b"\r\n\r", b"\nb\r\n\r\n", 0, 1),
        (b"x1\r", b"\n\r\nb\r\n\r\n", 0, 3),
        (b"abc", b"b\r\n\r\n", 0, 5),
    ],
)
def test_cuts(tail: bytes, data: bytes, at: int, end: int) -> None:
    """A piece ends with a head, also with one whose end was cut in two."""
    taken = intake()
    taken.inside = bool(tail)
    taken.tail = tail
    assert taken.cut(data, at) == end


def test_a_sized_body_is_one_piece() -> None:
    """Whatever looks like the end of a head in it; it ends where its length says."""
    taken = intake()
    taken.inside = True
    taken.remaining = 12
    assert taken.cut(b"a\r\n\r\nb\r\n\r\ncdGET", 0) == 12
    assert taken.cut(b"a\r\n\r\nb", 0) == 6


def test_the_last_bytes() -> None:
    """Three of them are remembered, over however many pieces."""
    taken = intake()
    for piece, tail in ((b"a", b"a"), (b"bc", b"abc"), (b"d", b"bcd"), (b"efghi", b"ghi")):
        taken.mark(piece)
        assert taken.tail == tail


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        (b"/proxy", b"/proxy", b""),
        (b"/proxy?a=b?c", b"/proxy", b"a=b?c"),
        (b"/proxy?", b"/proxy", b""),
        (b"/a#b?c", b"/a", b""),
        (b"http://proxy?a=b", b"/", b"a=b"),
    ],
)
def test_targets(target: bytes, path: bytes, query: bytes) -> None:
    """Path and query are split at the first question mark."""
    taken = intake()
    taken.on_url(target[:3])
    taken.on_url(target[3:])
    request = taken.call.request
    assert taken.locate(request)
    assert (request.path, request.query, request.peer) == (path, query, "192.0.2.1")


def test_headers() -> None:
    """They go into the call, whatever the case of their names; those behind a chunked body do not."""
    taken = intake()
    taken.on_url(b"/")
    for name, value in (
        (b"AUTHORIZATION", b"k"),
        (b"Accept-Encoding", b"gzip"),
        (b"accept-encoding", b"br"),
        (b"X", b"y"),
    ):
        taken.on_header(name, value)
    assert (taken.call.key, taken.call.accept_encoding) == (b"k", b"gzip, br")
    assert taken.size == sum(len(name) + len(value) + 4 for name, value in ((b"authorization", b"k"), (b"x", b"y"))) + (
        2 * len(b"accept-encoding") + len(b"gzipbr") + 8
    )
    taken.in_head = False
    taken.on_header(b"origin", b"https://a.example")
    assert taken.call.origin is None


def test_without_a_parser_nothing_happens() -> None:
    """What still comes after the end is taken and forgotten."""
    taken = intake()
    assert taken.feed(b"GET / HTTP/1.1\r\n\r\n") == 18
    taken.on_headers_complete()
    assert not taken.inside


def test_a_made_up_head_is_not_told() -> None:
    """Behind an upgrade only the body and what follows it are."""
    taken = intake()
    quiet = Quiet(taken)
    quiet.on_url(b"/made-up")
    quiet.on_header(b"content-length", b"2")
    quiet.on_headers_complete()
    assert taken.url == b"" and taken.call.content_length is None
    quiet.on_body(b"{}")
    quiet.on_message_complete()
    quiet.on_url(b"/next")
    quiet.on_header(b"authorization", b"k")
    assert taken.url == b"/next" and taken.call.key == b"k"
