"""Sentences of what the admin API gives: strategies with titles and variants, segments, and what the engine cannot read."""

from __future__ import annotations

import pytest

from flagsvc.reasons.admin_words import read_segments, whole_words, words_of, words_of_variants

SEGMENTS = read_segments(
    [
        {"id": 1, "name": "eu", "constraints": [{"contextName": "region", "operator": "IN", "values": ["eu"]}]},
        {"id": None, "name": "bad", "constraints": []},
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


@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        ({"name": "default", "constraints": 7}, "never: a constraint that is no object"),
        ({"name": ["default"]}, 'custom strategy ""'),
        ({"name": "userWithId", "parameters": "odd"}, "nobody (no userIds)"),
    ],
)
def test_an_odd_strategy(strategy: dict[str, object], words: str) -> None:
    """The sentence says what the engine makes of it."""
    assert words_of(strategy, SEGMENTS) == words


def test_no_variants() -> None:
    """There is nothing to say of none."""
    assert words_of_variants([]) == ""
