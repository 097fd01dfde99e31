"""Texts of people in sentences: which are isolated, and that nothing else changes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flagsvc.core.direction import isolate, isolate_marked, isolate_quoted

ARABIC, HEBREW, NUMBERS = "عرض 91 %", "a בטא", "٩١"


@pytest.mark.parametrize(
    ("function", "given", "expected"),
    [
        *((isolate, each, f"\u2068{each}\u2069") for each in (ARABIC, HEBREW, NUMBERS)),
        *((isolate, each, each) for each in ("", "beta 91 %", "größer 日本 €")),
        (isolate_marked, f"**ada** made **{ARABIC}** 2 **", f"ada made \u2068{ARABIC}\u2069 2 "),
        (isolate_quoted, f"There is no `{HEBREW}` in `it`.", f"There is no `\u2068{HEBREW}\u2069` in `it`."),
    ],
)
def test_isolation(function: Callable[[str], str], given: str, expected: str) -> None:
    """A text with letters or numbers from right to left stands between isolates; any other text stays as it is."""
    assert function(given) == expected
