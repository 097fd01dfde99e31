"""Media types, charsets and content codings of a request's body."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.http.media import Media
from flagsvc.http.messages import HttpError
from flagsvc.http.reached_limits import BODY
from flagsvc.proxy.api.encoding import media, unpacked
from support.serving import attempt


def test_what_headers_say() -> None:
    """The window of the coding and the codec of the charset."""
    assert media(None, None) == Media(0, "utf-8")
    assert media(b"application/json; charset=utf-16", b"gzip") == Media(31, "utf-16")
    assert media(b"application/json", b" Deflate ") == Media(15, "utf-8")


@given(st.binary(max_size=30), st.binary(max_size=10))
def test_any_headers_are_read_or_refused(content_type: bytes, coding: bytes) -> None:
    """415 and nothing else, the message bounded."""
    found = attempt(media, content_type, coding)
    if isinstance(found, HttpError):
        assert found.status == 415
        assert len(found.message) < 300


@pytest.mark.parametrize(
    ("body", "status", "limit"),
    [(gzip.compress(b"12345"), 413, BODY), (b"\x00", 400, ""), (gzip.compress(b"1") + b"x", 400, "")],
)
def test_what_cannot_be_unpacked_is_refused(body: bytes, status: int, limit: str) -> None:
    """413 with the limit that was reached, else 400."""
    with pytest.raises(HttpError) as caught:
        unpacked(body, 31, 4)
    assert (caught.value.status, caught.value.limit) == (status, limit)
