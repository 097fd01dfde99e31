"""Whether callers should be sent here, and how old the knowledge is that they get (docs/decisions/0028).

Only what asks for it is told: an evaluation is answered whatever stands here.
"""

from __future__ import annotations

from collections.abc import Callable

from flagsvc.core.clock import Clock
from flagsvc.http.messages import Headers
from flagsvc.proxy.api.ports import ConfigurationHolder

COLD = "cold"
"""There is no configuration yet."""
STALE = "stale"
"""The last check of the upstream that went well is too long ago."""
DRAINING = "draining"
"""The process is about to end."""
NO_WORKER = "no-worker"
"""None of the processes that answer requests lives, or none answers."""


class Readiness:
    """Says whether this process is ready, or why not. `draining` is set by whoever ends it.

    `max_staleness_s` is the option maxStaleness, 0 for no bound; `answered` says whether anybody answers requests, where that is
    not this process.
    """

    def __init__(
        self,
        holder: ConfigurationHolder,
        clock: Clock,
        max_staleness_s: float = 0,
        answered: Callable[[], bool] | None = None,
    ) -> None:
        self.is_draining = False
        self._holder = holder
        self._clock = clock
        self._max_staleness_s = max_staleness_s
        self._answered = answered
        self._began = clock.monotonic()

    @property
    def age_s(self) -> float | None:
        """The seconds since the last check of the upstream that went well; None before the first."""
        checked = self._holder.checked_at
        return None if checked is None else max(0.0, self._clock.monotonic() - checked)

    @property
    def stale(self) -> bool:
        """Whether that is longer than allowed. Before the first check the time since the start counts.

        So a restart in the middle of an outage, with what was stored, is no reason to fail at once.
        """
        age = self.age_s
        if age is None:
            age = self._clock.monotonic() - self._began
        return 0 < self._max_staleness_s < age

    def find_objection(self) -> str:
        """Return the word for why nobody should be sent here; empty where all is well."""
        if self.is_draining:
            return DRAINING
        if self._answered is not None and not self._answered():
            return NO_WORKER
        if self._holder.current is None:
            return COLD
        return STALE if self.stale else ""


class AgeField:
    """The header field with the age of the configuration in whole seconds (option ageHeader); written once a second at most."""

    def __init__(self, name: str, readiness: Readiness) -> None:
        self._name = name.encode("latin-1")
        self._standing = readiness
        self._seconds = -1
        self._fields: Headers = []

    def fields(self) -> Headers:
        """Return the field in a list that is not to be changed; an empty one before the first check."""
        age = self._standing.age_s
        if age is None:
            return []
        if int(age) != self._seconds:
            self._seconds = int(age)
            self._fields = [(self._name, b"%d" % self._seconds)]
        return self._fields
