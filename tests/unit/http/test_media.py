"""Media types, charsets and content codings of bodies."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.http.media import UTF16, Media, media, to_text, unpack
from flagsvc.http.messages import Refused
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
    if isinstance(found, Refused):
        assert found.status == 415
        assert len(found.message) < 300


@given(st.binary(max_size=300), st.sampled_from([(31, gzip.compress), (15, zlib.compress), (0, bytes)]))
def test_what_was_packed_is_unpacked(body: bytes, coding: tuple[int, object]) -> None:
    """Up to the limit, and not a byte more of what was compressed."""
    window, pack = coding
    packed = pack(body)  # type: ignore[operator]
    assert unpack(packed, window, 300) == body
    if window and body:
        with pytest.raises(Refused) as caught:
            unpack(packed, window, len(body) - 1)
        assert caught.value.status == 413


@given(st.binary(max_size=60))
def test_damage_is_refused(body: bytes) -> None:
    """400, whatever the bytes are."""
    with pytest.raises(Refused) as caught:
        unpack(b"\x00" + body, 31, 1000)
    assert caught.value.status == 400


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_with_and_without_a_mark(codec: str) -> None:
    """The byte order mark tells the order, else the first byte of a JSON text does."""
    assert to_text('{"ä"}'.encode(codec), UTF16) == '{"ä"}'
    assert to_text('\ufeff{"ä"}'.encode(codec), codec) == '{"ä"}'


@given(st.binary(max_size=20), st.sampled_from(["utf-8", "utf-16", "utf-16-le", "utf-16-be"]))
def test_any_bytes_are_a_text(body: bytes, codec: str) -> None:
    """What is no character becomes U+FFFD; half surrogate pairs cannot come out."""
    to_text(body, codec).encode("utf-8")
