"""The headers of a request that the programs read."""

from __future__ import annotations

import pytest

from flagsvc.http.call import COOKIE, HEADERS, KEY, LONGEST_READ, SPARE_KEY, USER, Call
from flagsvc.http.messages import Headers, HttpError, Request

TABLE = {**HEADERS, b"authorization": KEY, b"cookie": COOKIE, b"x-user": USER}


def call(*headers: tuple[bytes, bytes]) -> Call:
    given: Headers = list(headers)
    found = Call(Request(b"POST", b"/", b"", given))
    found.read(TABLE)
    return found


def test_headers_are_found() -> None:
    """Each known header has an attribute. Other headers only count for the size."""
    other = {b"authorization": "key", b"x-forwarded-for": "forwarded", b"access-control-request-headers": "requested_headers"}
    names = (*other, b"origin", b"if-none-match", b"accept-encoding", b"content-type", b"content-length", b"content-encoding")
    found = call(*((name, name[-3:]) for name in names), (b"user-agent", b"u"))
    fields = {name: other.get(name, name.decode().replace("-", "_")) for name in names}
    assert {name: getattr(found, field) for name, field in fields.items()} == {name: name[-3:] for name in names}
    assert found.size == sum(len(name) + len(value) + 4 for name, value in found.request.headers)


def test_headers_that_come_twice() -> None:
    """Repeated list headers are joined. For the key and the content type the first wins. A second key sets `keyed_twice`."""
    found = call(
        (b"authorization", b"1"), (b"authorization", b"2"), (b"content-type", b"a"), (b"content-type", b"b"),
        (b"x-forwarded-for", b"a"), (b"x-forwarded-for", b"b"), (b"accept-encoding", b"x"), (b"accept-encoding", b"y"),
        (b"content-encoding", b"gzip"), (b"content-encoding", b"gzip"),
    )  # fmt: skip
    assert (found.key, found.content_type) == (b"1", b"a") and found.keyed_twice
    assert not call((b"authorization", b"1")).keyed_twice
    assert (found.forwarded, found.accept_encoding) == (b"a, b", b"x, y")
    assert found.content_encoding == b"gzip, gzip"


def test_rare_headers_that_come_twice() -> None:
    """Cookies are joined. Of another rare header the first line counts. Nothing is kept of a person who is named twice."""
    found = call(
        *((b"cookie", b"a=1"), (b"cookie", b"b=2"), (b"x-api-key", b"1"), (b"x-api-key", b"2")),
        *((b"x-user", b"ann"), (b"x-user", b"bob")),
    )
    assert [found.other(kind) for kind in (COOKIE, SPARE_KEY, USER)] == [b"a=1; b=2", b"1", b""]


def test_a_long_accept_encoding_is_none() -> None:
    """An Accept-Encoding over the limit, in one line or in several, is ignored: it would cost time before the key is checked."""
    whole, half = b"a" * LONGEST_READ, b"a" * (LONGEST_READ // 2)
    assert call((b"accept-encoding", whole)).accept_encoding == whole
    assert call((b"accept-encoding", whole + b"a")).accept_encoding == b""
    assert call((b"accept-encoding", half), (b"accept-encoding", half)).accept_encoding == b""


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ((), False),
        (((b"content-length", b"0"),), False),
        (((b"content-length", b"1"),), True),
        (((b"transfer-encoding", b"chunked"),), True),
        (((b"transfer-encoding", b"chunked"), (b"content-length", b"0")), True),
    ],
)
def test_whether_there_is_a_body(headers: tuple[tuple[bytes, bytes], ...], expected: bool) -> None:
    """A request has a body if its length is over 0, or if it is chunked."""
    assert call(*headers).has_body() is expected


def test_a_length_that_is_no_number() -> None:
    """A Content-Length that is no number is a 400."""
    with pytest.raises(HttpError) as caught:
        call((b"content-length", b"+1")).has_body()
    assert caught.value.status == 400
