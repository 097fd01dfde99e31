"""Errors in words."""

from __future__ import annotations

import pytest

from flagsvc.http import refusals
from flagsvc.http.messages import Refused


@pytest.mark.parametrize(
    ("refused", "status"),
    [
        (refusals.not_ready(), 503),
        (refusals.unauthorized(), 401),
        (refusals.unknown_path(b"/a"), 404),
        (refusals.wrong_method(b"PUT", b"/a"), 405),
        (refusals.endpoint_disabled("hint"), 501),
        (refusals.query_too_long(1), 414),
        (refusals.headers_too_large(1), 431),
        (refusals.internal_error(), 500),
    ],
)
def test_each_has_its_status_and_a_message(refused: Refused, status: int) -> None:
    """No full stop, no problems of fields."""
    assert refused.status == status
    assert refused.message
    assert not refused.message.endswith(".")
    assert refused.problems == []


def test_what_a_caller_sent_is_shown_short_and_harmless() -> None:
    """In ASCII, bounded, in backticks."""
    assert refusals.unknown_path(b"/\xc3\xa4\n").message == "there is nothing at `/\\xc3\\xa4\n`"
    assert len(refusals.to_printable(b"x" * 10_000)) == refusals.MAX_SHOWN
