"""Moments as pages tell them."""

from __future__ import annotations

from datetime import UTC, datetime


def moment(seconds: float) -> str | None:
    """Return a moment, in seconds since the epoch, as ISO text; None for 0, which is never."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds") if seconds else None
