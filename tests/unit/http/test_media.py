"""Content codings and charsets of bodies."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.http.media import GZIP, UTF16, BodyTooLargeError, CodingError, to_text, unpack

DECOMPRESSOR = zlib.decompressobj


@given(st.binary(max_size=300), st.sampled_from([(31, gzip.compress), (15, zlib.compress), (0, bytes)]))
def test_what_was_packed_is_unpacked(body: bytes, coding: tuple[int, object]) -> None:
    """A compressed body is decompressed up to the limit. One byte more raises BodyTooLargeError."""
    window, pack = coding
    packed = pack(body)  # type: ignore[operator]
    assert unpack(packed, window, 300) == body
    if window and body:
        with pytest.raises(BodyTooLargeError):
            unpack(packed, window, len(body) - 1)


@given(st.binary(max_size=60))
def test_damage_is_refused(body: bytes) -> None:
    """Damaged bytes raise CodingError with zlib's reason."""
    with pytest.raises(CodingError, match="incorrect header check"):
        unpack(b"\x00\x00" + body, 31, 1000)


@pytest.mark.parametrize("members", [False, True])
def test_a_body_that_ends_too_early_is_refused(members: bool) -> None:
    """A truncated body raises CodingError with an empty message."""
    with pytest.raises(CodingError, match=r"^$"):
        unpack(gzip.compress(b"12345")[:-1], GZIP, 1000, members=members)


class CountingReader:
    """A decompressor that adds up the bytes that all of them are given."""

    given = 0

    def __init__(self, window: int) -> None:
        self._inner = DECOMPRESSOR(window)

    def decompress(self, data: bytes, most: int) -> bytes:
        """Return decompressed bytes."""
        CountingReader.given += len(data)
        return self._inner.decompress(data, most)

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


def test_many_members_take_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes after a member are not read, or copied, once more for each member before them: a short piece is."""
    members = 10_000
    monkeypatch.setattr(zlib, "decompressobj", CountingReader)
    assert unpack(gzip.compress(b"") * members, GZIP, 5, members=True) == b""
    assert CountingReader.given <= 4096 * members  # all that follows each member would be 25 times as much


@given(st.lists(st.binary(max_size=9000), min_size=1, max_size=4), st.sampled_from([0, 1, 9]))
def test_members_of_any_size_are_joined(bodies: list[bytes], level: int) -> None:
    """It does not matter where the pieces of a body end."""
    packed = b"".join(gzip.compress(body, level) for body in bodies)
    assert unpack(packed, GZIP, 40_000, members=True) == b"".join(bodies)


def test_members() -> None:
    """The members of a body are joined if several are allowed. Bytes after another coding are ignored."""
    several = gzip.compress(b"12") + gzip.compress(b"345")
    assert unpack(several, GZIP, 5, members=True) == b"12345"
    assert unpack(zlib.compress(b"12") + b"x", 15, 5, members=True) == b"12"
    with pytest.raises(BodyTooLargeError):
        unpack(several, GZIP, 4, members=True)
    for body, window in ((several, GZIP), (zlib.compress(b"12") + b"x", 15)):
        with pytest.raises(CodingError):
            unpack(body, window, 5)


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_with_and_without_a_mark(codec: str) -> None:
    """The byte order mark tells the order, else the first byte of a JSON text does."""
    assert to_text('{"ä"}'.encode(codec), UTF16) == '{"ä"}'
    assert to_text('\ufeff{"ä"}'.encode(codec), codec) == '{"ä"}'


@given(st.binary(max_size=20), st.sampled_from(["utf-8", "utf-16", "utf-16-le", "utf-16-be"]))
def test_any_bytes_are_a_text(body: bytes, codec: str) -> None:
    """Invalid bytes become U+FFFD, and the text has no half surrogate pairs."""
    to_text(body, codec).encode("utf-8")
