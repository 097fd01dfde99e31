"""Two custom activation strategies: FLAGSVC_CUSTOM_STRATEGIES_FILE=examples/custom_strategies.py

The file exports a list named `strategies`. A strategy is any object with a name and a method is_enabled(parameters,
context); the base class only saves typing. See docs/how-to/custom-strategies.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, time, timedelta

from flagsvc import ContextView, Strategy

DAY_MS = 86_400_000
"""Milliseconds of a day: callers may send a time in any year, also in those that a date cannot have."""


class OpeningHours(Strategy):
    """On between the parameters `from` and `to` (such as 09:00 and 17:00, UTC), at the time of the evaluation."""

    name = "openingHours"
    reads = frozenset({"currentTime"})

    def is_enabled(self, parameters: Mapping[str, str], context: ContextView) -> bool:
        """Return whether the time of day lies between the two; a parameter that is no time of day raises: off."""
        moment = context.now if context.current_time is None else context.current_time
        clock = (datetime.min + timedelta(milliseconds=moment % DAY_MS)).time()
        return time.fromisoformat(parameters["from"]) <= clock < time.fromisoformat(parameters["to"])


class EmailDomain:
    """On for user ids that are mail addresses of one of the comma-separated `domains`. No base class is needed."""

    name = "emailDomain"
    pure = True
    reads = frozenset({"userId"})

    def is_enabled(self, parameters: Mapping[str, str], context: ContextView) -> bool:
        """Return whether the part of the user id behind the last `@` is one of the domains."""
        domains = {domain.strip().lower() for domain in parameters.get("domains", "").split(",")}
        return (context.user_id or "").rpartition("@")[2].lower() in domains - {""}


strategies = [OpeningHours(), EmailDomain()]
