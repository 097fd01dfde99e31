"""Errors in words."""

from __future__ import annotations

import pytest

from flagsvc.http import http_errors
from flagsvc.http.messages import HttpError


@pytest.mark.parametrize(
    ("refused", "status"),
    [
        (http_errors.not_ready(), 503),
        (http_errors.unauthorized(), 401),
        (http_errors.key_unavailable(1.0), 503),
        (http_errors.unknown_path(b"/a"), 404),
        (http_errors.wrong_method(b"PUT", b"/a"), 405),
        (http_errors.endpoint_disabled("hint"), 501),
        (http_errors.query_too_long(1), 414),
        (http_errors.headers_too_large(1), 431),
        (http_errors.internal_error(), 500),
    ],
)
def test_each_has_its_status_and_a_message(refused: HttpError, status: int) -> None:
    """No full stop, no problems of fields."""
    assert refused.status == status
    assert refused.message
    assert not refused.message.endswith(".")
    assert refused.problems == []


def test_what_a_caller_sent_is_shown_short_and_harmless() -> None:
    """The caller's text is shown in ASCII, shortened and in backticks."""
    assert http_errors.unknown_path(b"/\xc3\xa4\n").message == "there is nothing at `/\\xc3\\xa4\n`"
    assert len(http_errors.to_printable(b"x" * 10_000)) == http_errors.MAX_SHOWN


@pytest.mark.parametrize(("seconds", "told"), [(0.1, 1), (1.0, 1), (1.1, 2), (300.0, 300)])
def test_when_to_send_a_key_again(seconds: float, told: int) -> None:
    """The caller is told whole seconds, which are enough."""
    assert http_errors.key_unavailable(seconds).retry == told
