"""Frames that are cut at any place, and invalid frames."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.proxy.workers.framing import LENGTHS, MAX_HEAD, Deframer, Frame, FrameError, frame


@given(
    st.lists(st.tuples(st.binary(max_size=40), st.binary(max_size=400)), max_size=6),
    st.lists(st.integers(1, 50), min_size=1),
)
def test_what_goes_in_comes_out(frames: list[tuple[bytes, bytes]], sizes: list[int]) -> None:
    """Frames come out whole and in order, for any content and however their bytes are cut."""
    data = b"".join(part for head, body in frames for part in frame(head, body))
    deframer, found, start, step = Deframer(), list[Frame](), 0, 0
    while start < len(data):
        size = sizes[step % len(sizes)]
        found += deframer.feed(data[start : start + size])
        start, step = start + size, step + 1
    assert found == [Frame(head, body) for head, body in frames]


def test_a_body_is_not_copied() -> None:
    """It is a separate part."""
    body = b"x" * 1000
    assert frame(b"head", body)[1] is body
    assert len(frame(b"head")) == 1


def test_what_is_no_frame() -> None:
    """A head that is too long is refused immediately."""
    with pytest.raises(FrameError, match=f"a head of {MAX_HEAD + 1} bytes"):
        Deframer().feed(LENGTHS.pack(MAX_HEAD + 1, 0))
