"""Errors in words. Requests, responses and refusals. How often a limit was reached."""

from __future__ import annotations

import pytest

from flagsvc.http import http_errors
from flagsvc.http.messages import HttpError, Response, below, invalid
from flagsvc.http.reached_limits import LIMITS, VALUE, Reached


def test_what_a_caller_sent_is_shown_short_and_harmless() -> None:
    """The caller's text is shown in ASCII, shortened and in backticks."""
    assert http_errors.unknown_path(b"/\xc3\xa4\n").message == "there is nothing at `/\\xc3\\xa4\n`"
    assert len(http_errors.to_printable(b"x" * 10_000)) == http_errors.MAX_SHOWN


@pytest.mark.parametrize(("seconds", "told"), [(0.1, 1), (1.0, 1), (1.1, 2), (300.0, 300)])
def test_when_to_send_a_key_again(seconds: float, told: int) -> None:
    """The caller is told whole seconds, which are enough."""
    assert http_errors.key_unavailable(seconds).retry == told


def test_json_pointers_are_escaped() -> None:
    """`~` and `/` in a name are escaped. An empty name is valid."""
    assert below("/body", "a/b~c") == "/body/a~1b~0c"
    assert below("/body", "") == "/body/"


def test_invalid_names_the_place_and_the_rule() -> None:
    """A 400 with one problem, for a field or for the whole."""
    refused = invalid("/body", "a", "must be string")
    assert isinstance(refused, HttpError)
    assert (refused.status, refused.problems) == (400, [("/body/a", "must be string")])
    assert invalid("/body", None, "must be object").problems == [("/body", "must be object")]


def test_a_body_in_pieces() -> None:
    """It is joined when it is read; another body takes its place."""
    response = Response(200, [], [], b"", [b"a", b"bc"])
    assert [response.pieces, response.body, response.pieces] == [[b"a", b"bc"], b"abc", None]
    response = Response(200, [], [], b"", [b"a"])
    response.body = b""
    assert (response.body, response.pieces) == (b"", None)


def test_limits_reached_are_counted_by_their_words() -> None:
    """Every limit is there from the start, with 0, and nothing else can be counted."""
    reached = Reached()
    assert reached.counts == dict.fromkeys(LIMITS, 0)
    reached.add(VALUE)
    reached.add(VALUE)
    assert reached.counts[VALUE] == 2 and sum(reached.counts.values()) == 2
    with pytest.raises(KeyError):
        reached.add("something else")
    assert len(set(LIMITS)) == len(LIMITS)
