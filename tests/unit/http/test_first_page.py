"""The first page of a program, as text or JSON."""

from __future__ import annotations

import pytest

from flagsvc.http.first_page import prefers_json


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, False),
        (b"*/*", False),
        (b"application/json", True),
        (b"text/html, application/json", True),
        (b"text/html, application/json;q=0.9", False),
        (b"application/json; charset=utf-8; q=0.5, text/plain;q=0.4", True),
        (b"application/json;q=much", False),
        (b"application/json;q=0", False),
        (b"x" * 512 + b",application/json", False),
    ],
)
def test_who_prefers_json(accept: bytes | None, expected: bool) -> None:
    """JSON is preferred if text has no larger weight. A header over the limit is ignored."""
    assert prefers_json(accept) is expected
