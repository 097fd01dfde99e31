"""Content codings and charsets of bodies. Entity tags."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.http.etag import Tagger, etag, matches
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


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_a_tag_stands_for_one_body(first: bytes, second: bytes) -> None:
    """Equal bodies have equal tags, and different bodies different tags. A tag has 128 bits."""
    assert (etag(first) == etag(second)) == (first == second)
    assert len(etag(first)) == len(b'W/""') + 32


@given(st.lists(st.sampled_from([b"a", b"b", b"c,d", b""]), max_size=4), st.sampled_from([b"a", b"b", b"z"]))
def test_a_list_matches_when_it_has_the_tag(listed: list[bytes], own: bytes) -> None:
    """A header matches if its list contains the tag, strong or weak."""
    header = b", ".join(b'W/"%s"' % etag(each)[3:-1] if each == b"a" else b'"%s"' % etag(each)[3:-1] for each in listed)
    assert matches(header, etag(own)) == (own in listed)


def test_an_asterisk_matches_everything() -> None:
    """Only a header of a single asterisk matches every tag."""
    assert matches(b"*", etag(b""))
    assert matches(b" *\t", etag(b""))
    assert not matches(b'"*"', etag(b""))
    assert not matches(b"", etag(b""))


def test_the_tag_of_what_decides_an_answer() -> None:
    """The tag has 128 bits and depends on the revision and the key. It never equals the tag of a body."""
    tag = Tagger("a").tag(b"key")
    assert tag == Tagger("a").tag(b"key")
    assert len({tag, Tagger("b").tag(b"key"), Tagger("a").tag(b"other"), Tagger("a").tag(b""), etag(b"key")}) == 5
    assert len(tag) == len(etag(b""))
    assert Tagger("a").tag(bytes(500)) != Tagger("a").tag(bytes(499) + b"x")
    assert matches(b'"x", ' + tag, tag)


def test_the_tag_is_another_one_in_another_version() -> None:
    """Another version has another tag, because it may write the same answer differently."""
    assert Tagger("a", "1.0").tag(b"key") != Tagger("a", "1.1").tag(b"key")
