"""Sentences of what the admin API gives: strategies with titles and variants, segments, and what the engine cannot read."""

from __future__ import annotations

import pytest

from flagsvc.reasons.admin_words import read_segments, whole_words, words_of, words_of_variants

SEGMENTS = read_segments(
    [
        {"id": 1, "name": "eu", "constraints": [{"contextName": "region", "operator": "IN", "values": ["eu"]}]},
        {"id": 2, "name": "bad", "constraints": "none"},
    ]
)
VARIANTS = [{"name": "blue", "weight": 500}, {"name": "green", "weight": 500}]


def test_segments_that_the_engine_cannot_read_are_left_out() -> None:
    """The others are known by identity."""
    assert list(SEGMENTS) == ["1"]


def test_a_strategy_with_title_segment_and_variants() -> None:
    """The sentence has all of them."""
    strategy = {"name": "default", "title": "Europe", "segments": [1], "variants": VARIANTS, "disabled": True}
    expected = (
        "Europe: in segment eu: region is eu (disabled); variants: blue 50 %, green 50 %, by userId, sessionId or"
    )
    assert whole_words(strategy, SEGMENTS) == f"{expected} remoteAddress"


@pytest.mark.parametrize("strategy", [{"name": "default", "constraints": 7}, {"name": ["default"]}])
def test_a_strategy_that_the_engine_cannot_read(strategy: dict[str, object]) -> None:
    """It is on for no user, and the sentence says why."""
    assert words_of(strategy, SEGMENTS).startswith("for no user: ")


def test_no_variants() -> None:
    """There is nothing to say of none."""
    assert words_of_variants([]) == ""
