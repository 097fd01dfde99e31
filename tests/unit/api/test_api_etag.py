"""Entity tags."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flagsvc.api.etag import etag, matches


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_a_tag_stands_for_one_body(first: bytes, second: bytes) -> None:
    """Equal bodies have equal tags, different ones different ones; a tag has 128 bits."""
    assert (etag(first) == etag(second)) == (first == second)
    assert len(etag(first)) == len(b'W/""') + 32


@given(st.lists(st.sampled_from([b"a", b"b", b"c,d", b""]), max_size=4), st.sampled_from([b"a", b"b", b"z"]))
def test_a_list_matches_when_it_has_the_tag(listed: list[bytes], own: bytes) -> None:
    """Strong and weak alike."""
    header = b", ".join(b'W/"%s"' % etag(each)[3:-1] if each == b"a" else b'"%s"' % etag(each)[3:-1] for each in listed)
    assert matches(header, etag(own)) == (own in listed)


def test_an_asterisk_matches_everything() -> None:
    """Only by itself."""
    assert matches(b"*", etag(b""))
    assert matches(b" *\t", etag(b""))
    assert not matches(b'"*"', etag(b""))
    assert not matches(b"", etag(b""))
