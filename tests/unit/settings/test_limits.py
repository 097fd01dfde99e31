"""The options that limit callers have safe defaults."""

from __future__ import annotations

from flagsvc.settings.table import OPTIONS, SERVER_OPTIONS

WITHOUT = {"rateLimitKey", "rateLimitAddress"}
"""The limits without a default: only an operator can know the rate of one caller."""


def test_callers_are_bounded_by_default() -> None:
    """Every option of SECURITY.md's table has a default limit, except the rates."""
    unbounded = {row.name for row in (*OPTIONS, *SERVER_OPTIONS) if row.stops and not (row.default or row.default_text)}
    assert unbounded == WITHOUT
