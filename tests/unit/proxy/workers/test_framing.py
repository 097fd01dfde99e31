"""Frames cut anywhere, and what is no frame."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.proxy.workers.framing import LENGTHS, MOST_HEAD, Deframer, Frame, FrameError, frame


@given(
    st.lists(st.tuples(st.binary(max_size=40), st.binary(max_size=400)), max_size=6),
    st.lists(st.integers(1, 50), min_size=1),
)
def test_what_goes_in_comes_out(frames: list[tuple[bytes, bytes]], sizes: list[int]) -> None:
    """Whatever the frames hold and however their bytes are cut, they come out whole, in their order."""
    data = b"".join(part for head, body in frames for part in frame(head, body))
    deframer, found, start, step = Deframer(), list[Frame](), 0, 0
    while start < len(data):
        size = sizes[step % len(sizes)]
        found += deframer.feed(data[start : start + size])
        start, step = start + size, step + 1
    assert found == [Frame(head, body) for head, body in frames]


def test_a_body_is_not_copied() -> None:
    """It is a part of its own."""
    body = b"x" * 1000
    assert frame(b"head", body)[1] is body
    assert len(frame(b"head")) == 1


def test_what_is_no_frame() -> None:
    """A head that nobody would send is refused at once, and not waited for."""
    with pytest.raises(FrameError, match=f"a head of {MOST_HEAD + 1} bytes"):
        Deframer().feed(LENGTHS.pack(MOST_HEAD + 1, 0))
