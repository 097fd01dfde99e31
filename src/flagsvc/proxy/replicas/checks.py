"""What a replica's own checks of the upstream have brought."""

from __future__ import annotations

FAILURES = 3
"""After so many failed checks in a row a leader lets another replica try."""


class UpstreamChecks:
    """The checks since the role has changed; `number` counts all of them.

    `failing` is the kind of error that the last one brought, empty where it went well. `confirmed` tells that this replica serves
    what the upstream has.
    """

    def __init__(self) -> None:
        self.number = 0
        self.failing = ""
        self.confirmed = False
        self._failures = 0

    def note(self, failing: str, known: bool) -> None:
        """Note a check: the kind of error, if it met one, or that it brought what is `known`."""
        self.number += 1
        self.failing = failing
        self._failures = self._failures + 1 if failing else 0
        self.confirmed = self.confirmed or known

    def forget(self) -> None:
        """Begin again: what was met in one role says nothing of the upstream in the next."""
        self.failing, self._failures, self.confirmed = "", 0, False

    def useless(self, serves: bool) -> bool:
        """Return whether another replica may do better: this one does not reach the upstream, or has nothing and gets nothing."""
        return self._failures >= FAILURES and (self.failing == "network" or not serves)
