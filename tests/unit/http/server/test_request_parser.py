"""Where bytes are cut, and the result of parsing a piece. Header names and their kinds."""

from __future__ import annotations

import pytest

from flagsvc.http.call import HEADERS, KEY, ORIGIN
from flagsvc.http.server.request_parser import CONNECTION, LONGEST_SPELLING, MAX_SPELLINGS, HeaderNames, RequestParser
from flagsvc.http.server.states import BODY, HEAD, IDLE, NEW

GET = b"GET /a HTTP/1.1\r\nHost: b\r\n\r\n"


def parser() -> RequestParser:
    made = RequestParser(HeaderNames({**HEADERS, b"authorization": KEY}, 1000))
    made.peer = "192.0.2.1"
    return made


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
    taken = parser()
    taken.state = HEAD if tail else IDLE
    taken.tail = tail
    assert taken.cut(data, at) == end


def test_a_sized_body_is_one_piece() -> None:
    """A body with a length ends there, even if it contains the end of a head."""
    taken = parser()
    taken.state = BODY
    taken.remaining = 12
    assert taken.cut(b"a\r\n\r\nb\r\n\r\ncdGET", 0) == 12
    assert taken.cut(b"a\r\n\r\nb", 0) == 6


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
    taken = parser()
    taken.on_url(target[:3])
    taken.on_url(target[3:])
    request = taken.call.request
    assert taken.locate(request)
    assert (request.path, request.query, request.peer) == (path, query, "192.0.2.1")


def test_headers() -> None:
    """Header names are read in any case. Fields after a chunked body are ignored."""
    taken = parser()
    taken.on_url(b"/")
    sent = ((b"AUTHORIZATION", b"k"), (b"Accept-Encoding", b"gzip"), (b"accept-encoding", b"br"), (b"X", b"y"))
    for name, value in sent:
        taken.on_header(name, value)
    assert (taken.call.key, taken.call.accept_encoding) == (b"k", b"gzip, br")
    assert taken.size == sum(len(name) + len(value) + 4 for name, value in sent)
    taken.state = BODY
    taken.on_header(b"origin", b"https://a.example")
    assert taken.call.origin is None


def test_without_a_parser_nothing_happens() -> None:
    """What still comes after the end is taken and forgotten."""
    taken = parser()
    assert taken.feed(b"GET / HTTP/1.1\r\n\r\n") == 0
    assert (taken.state, taken.unread) == (NEW, 0)


def test_two_requests_in_one_piece() -> None:
    """Are an error: `cut` does not let that happen, and the first one would be lost."""
    taken = parser()
    taken.open("192.0.2.1", secure=False)
    with pytest.raises(RuntimeError, match="more than one request"):
        taken.feed(GET * 2)


def test_spellings() -> None:
    """The case of letters does not matter; a name that is not read has no kind."""
    names = HeaderNames({**HEADERS, b"x-key": KEY}, 0)
    for name, kind in ((b"origin", ORIGIN), (b"Origin", ORIGIN), (b"oRIGIN", ORIGIN), (b"CONNECTION", CONNECTION), (b"X-KEY", KEY)):
        assert names.kind(name) == kind == names.kind(name)
    assert names.kind(b"User-Agent") == 0 == names.kind(b"User-Agent")


def test_the_contract_goes_first() -> None:
    """A header that the contract reads is the contract's."""
    assert HeaderNames({b"expect": KEY}, 0).kind(b"Expect") == KEY


def test_what_is_remembered_is_bounded() -> None:
    """Names made up by callers do not add up, and do not push out the usual ones."""
    names = HeaderNames(HEADERS, 0)
    for at in range(2 * MAX_SPELLINGS):
        assert names.kind(b"x-%d" % at) == 0
    assert len(names.known) == MAX_SPELLINGS and names.kind(b"Origin") == ORIGIN and names.kind(b"oriGIN") == ORIGIN


def test_a_long_name_is_not_remembered() -> None:
    """Long names are not remembered, so that they cannot fill the memory: a name may be as long as a head."""
    names = HeaderNames(HEADERS, 0)
    before = len(names.known)
    assert names.kind(b"X" * LONGEST_SPELLING) == 0 == names.kind(b"X" * (LONGEST_SPELLING + 1))
    assert len(names.known) == before + 1
