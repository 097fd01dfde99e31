"""What people ask about the polls of an upstream: since when, why not, and when again. No request of a caller reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

NAMED_PROBLEMS = 20
"""Malformed parts of a document that are named, and as many odd ones; of others only the number is told."""
LONGEST_NAME = 255
"""The characters of a name or a path that are told: a document can have names of a megabyte."""


@dataclass
class PollNotes:
    """Moments are in seconds since the epoch; `failed_at` and `next_at` are None for none.

    The present state began `since`. `error` is the last failure in words; it is empty after a poll that succeeded. `left_out` are
    the first malformed parts of the served document, in words, and `odd` the first odd ones.
    """

    since: float
    error: str = ""
    failed_at: float | None = None
    next_at: float | None = None
    left_out: Sequence[str] = ()
    odd: Sequence[str] = ()
