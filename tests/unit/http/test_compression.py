"""Content codings of responses."""

from __future__ import annotations

import gzip as library
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.http.compression import GZIP, GZIP_ALWAYS, MAX_REMEMBERED, PLAIN, SHORT, Negotiator, gzip, negotiate, quality


@given(st.binary(max_size=5000))
def test_gzip_is_gzip(body: bytes) -> None:
    """The standard gzip module reads the result, and equal bodies give equal bytes."""
    assert library.decompress(gzip(body)) == body
    assert gzip(body) == gzip(body)


@pytest.mark.parametrize(
    ("accept", "choice"),
    [
        (b"gzip", GZIP),
        (b"", PLAIN),
        (b"gzip, identity;q=0", GZIP_ALWAYS),
        (b"*, identity;q=0", GZIP_ALWAYS),
        (b"gzip, *;q=0", GZIP_ALWAYS),
        (b"identity, gzip", GZIP),
        (b"identity, gzip;q=0.9", PLAIN),
        (b"*;q=0", PLAIN),
        (b"gzip;q=0;q=1", PLAIN),
        (b"gzip;x=1;q=0", PLAIN),
        (b"gzip;level=9", GZIP),
        (b"\xff\xfe", PLAIN),
    ],
)
def test_what_a_header_asks_for(accept: bytes, choice: int) -> None:
    """gzip is chosen if it is accepted and the plain form has no larger weight."""
    assert negotiate(accept) == choice


@given(st.binary(max_size=30))
def test_any_header_is_read(accept: bytes) -> None:
    """No header value raises an error."""
    assert negotiate(accept) in (PLAIN, GZIP, GZIP_ALWAYS)


@given(st.text(max_size=8))
def test_a_weight_is_from_0_to_1(text: str) -> None:
    """A weight is always from 0 to 1."""
    assert 0.0 <= quality(text) <= 1.0


def test_size_decides() -> None:
    """gzip is used from 1024 bytes, or for every size if the plain form is refused."""
    negotiator = Negotiator()
    assert negotiator.wants_gzip(b"gzip", 1024)
    assert not negotiator.wants_gzip(b"gzip", 1023)
    assert negotiator.wants_gzip(b"gzip, identity;q=0", 1)
    assert not negotiator.wants_gzip(b"br", 10**6)


def test_what_is_remembered_is_bounded() -> None:
    """The number of remembered headers is limited."""
    negotiator = Negotiator()
    for number in range(MAX_REMEMBERED + 50):
        negotiator.wants_gzip(b"gzip;x=%d" % number, 5000)
    assert len(negotiator.known) == MAX_REMEMBERED


@pytest.mark.parametrize("size", [1024, SHORT - 1, SHORT, 100_000])
def test_a_body_comes_back_whatever_its_size(size: int) -> None:
    """Short and long bodies are compressed differently, to less than a quarter. zlib decompresses both."""
    body = (b'{"name":"some-toggle","enabled":true,"impressionData":false},' * (size // 60 + 1))[:size]
    packed = gzip(body)
    assert zlib.decompress(packed, 31) == body and packed == gzip(body)
    assert len(packed) < size / 4
