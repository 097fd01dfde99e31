"""Moments in words, near and far, before now and after it. The script's words are compared in tests/integration/pages."""

from __future__ import annotations

import pytest

from flagsvc.pages.times import in_full, in_words, read_moment
from support.moments import MOMENTS, NOW


@pytest.mark.parametrize(("text", "words"), MOMENTS.items())
def test_a_moment_in_words(text: str, words: str) -> None:
    """It says how far the moment is away, and from thirty days on the day."""
    assert in_words(read_moment(text), read_moment(NOW)) == words


def test_a_moment_in_full() -> None:
    """It is in UTC, wherever the text is from."""
    assert in_full(read_moment("2026-11-28T01:30:05.123+02:00")) == "2026-11-27 23:30:05 UTC"
