"""The options that limit callers: their defaults are safe."""

from __future__ import annotations

from flagsvc.settings.table import OPTIONS, SERVER_OPTIONS

WITHOUT = {"rateLimitKey", "rateLimitAddress"}
"""What only an operator can know: how much one caller should be able to ask for."""


def test_callers_are_bounded_by_default() -> None:
    """Every option of SECURITY.md's table has a limit by default, except the rates."""
    unbounded = {row.name for row in (*OPTIONS, *SERVER_OPTIONS) if row.stops and not (row.default or row.default_text)}
    assert unbounded == WITHOUT
