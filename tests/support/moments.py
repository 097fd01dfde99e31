"""Moments with their words, for the pages and for their script."""

from __future__ import annotations

from typing import Final

NOW: Final = "2026-11-28T12:00:00Z"
MOMENTS: Final = {
    "2026-11-28T12:00:00Z": "just now",
    "2026-11-28T11:59:00.001Z": "just now",
    "2026-11-28T11:59:00Z": "1 minute ago",
    "2026-11-28T11:00:01Z": "59 minutes ago",
    "2026-11-28T11:00:00Z": "1 hour ago",
    "2026-11-27T12:00:01Z": "23 hours ago",
    "2026-11-27T12:00:00Z": "yesterday, 12:00 UTC",
    "2026-11-27T00:00:00+00:00": "yesterday, 00:00 UTC",
    "2026-11-26T23:59:59Z": "2 days ago",
    "2026-10-30T00:00:00Z": "29 days ago",
    "2026-10-29T23:59:59Z": "2026-10-29",
    "2026-11-28T12:00:05Z": "just now",
    "2026-11-28T12:00:59Z": "in a moment",
    "2026-11-28T12:03:00Z": "in 3 minutes",
    "2026-11-28T14:30:00Z": "in 2 hours",
    "2026-11-29T16:12:00Z": "tomorrow, 16:12 UTC",
    "2026-12-03T12:00:00Z": "in 5 days",
    "2027-03-01T00:00:00Z": "2027-03-01",
}
"""Moment → how far it is from NOW."""
