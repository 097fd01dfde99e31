"""The results of a replica's own polls of the upstream."""

from __future__ import annotations

FAILURES = 3
"""After this many failed polls in a row, a leader lets another replica lead."""


class UpstreamChecks:
    """The polls since the role changed. `number` counts all polls.

    `failing` is the kind of error of the last poll; empty if it succeeded. `confirmed` tells whether the upstream has confirmed
    what this replica serves.
    """

    def __init__(self) -> None:
        self.number = 0
        self.failing = ""
        self.confirmed = False
        self._failures = 0

    def note(self, failing: str, known: bool) -> None:
        """Record a poll: the kind of its error, if it failed, and whether it returned what is `known`."""
        self.number += 1
        self.failing = failing
        self._failures = self._failures + 1 if failing else 0
        self.confirmed = self.confirmed or known

    def forget(self) -> None:
        """Start again. Polls in one role do not count in the next."""
        self.failing, self._failures, self.confirmed = "", 0, False

    def useless(self, serves: bool) -> bool:
        """Return whether another replica may lead better.

        That is so if this one cannot reach the upstream, or has no configuration and gets none.
        """
        return self._failures >= FAILURES and (self.failing == "network" or not serves)
