"""Entity tags."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flagsvc.http.etag import Tagger, etag, matches


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
