"""Whether callers should be sent to this process, and how old its configuration is (decision 0013).

Only probes and the age header use this. Evaluations are answered in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flagsvc.core.clock import Clock
from flagsvc.http.messages import Headers
from flagsvc.proxy.configuration.holder import Holder

COLD = "cold"
"""There is no configuration yet."""
STALE = "stale"
"""The last successful check of the upstream is too long ago."""
DRAINING = "draining"
"""The process is about to end."""
NO_WORKER = "no-worker"
"""No worker process is alive and answering."""


class Readiness:
    """Tells whether this process is ready, or why not. The shutdown sets `is_draining`.

    `max_staleness_s` is the option maxStaleness; 0 for no limit. `has_workers` tells whether a worker answers requests, if this
    process does not answer them itself.
    """

    def __init__(
        self,
        holder: Holder,
        clock: Clock,
        max_staleness_s: float = 0,
        has_workers: Callable[[], bool] | None = None,
    ) -> None:
        self.is_draining = self.has_started = False
        self._holder = holder
        self._clock = clock
        self._max_staleness_s = max_staleness_s
        self._has_workers = has_workers
        self.began = clock.monotonic()

    @property
    def is_starting(self) -> bool:
        """Whether the first configuration is still to come, and nothing has gone wrong yet."""
        return self._holder.current is None and self._holder.failures == 0

    @property
    def age_s(self) -> float | None:
        """The seconds since the last successful check of the upstream; None before the first."""
        checked = self._holder.checked_at
        return None if checked is None else max(0.0, self._clock.monotonic() - checked)

    @property
    def is_stale(self) -> bool:
        """Whether that is longer than allowed. Before the first check the time since the start counts.

        So a restart during an outage, with a stored configuration, does not fail readiness immediately.
        """
        age = self.age_s
        if age is None:
            age = self._clock.monotonic() - self.began
        return 0 < self._max_staleness_s < age

    def note_start(self) -> bool:
        """Return whether every first check has ended, well or not. This is remembered in `has_started`."""
        self.has_started = self.has_started or not self.is_starting
        return self.has_started

    def find_objection(self) -> str:
        """Return the reason why callers should not be sent here, as one word; empty if this process is ready."""
        if self.is_draining:
            return DRAINING
        if self._has_workers is not None and not self._has_workers():
            return NO_WORKER
        if self._holder.current is None:
            return COLD
        return STALE if self.is_stale else ""


class EnvironmentsReadiness(Readiness):
    """The readiness of a process with several environments: an environment that fails harms no other environment.

    The process is not ready while its first environments are starting, so that a roll-out waits for all of them. One that comes
    later does not change its readiness, because `note_start` is called before any change of the environments.
    """

    def __init__(
        self,
        holder: Holder,
        clock: Clock,
        list_readiness: Callable[[], Sequence[Readiness]],
        has_workers: Callable[[], bool] | None = None,
    ) -> None:
        super().__init__(holder, clock, 0, has_workers)
        self._list_readiness = list_readiness

    @property
    def is_starting(self) -> bool:
        """Whether the first configuration of any environment is still to come, and nothing has gone wrong there yet."""
        return any(each.is_starting for each in self._list_readiness())

    def find_objection(self) -> str:
        objection = super().find_objection()
        if objection:
            return objection
        if not self.note_start():
            return COLD
        return min((each.find_objection() for each in self._list_readiness()), default="")


class AgeField:
    """The header field with the age of the configuration in whole seconds (option ageHeader).

    It is encoded at most once a second.
    """

    def __init__(self, name: str, readiness: Readiness) -> None:
        self._name = name.encode("latin-1")
        self._readiness = readiness
        self._seconds = -1
        self._fields: Headers = []

    def fields(self) -> Headers:
        """Return the field in a list, which must not be changed. The list is empty before the first check."""
        age = self._readiness.age_s
        if age is None:
            return []
        if int(age) != self._seconds:
            self._seconds = int(age)
            self._fields = [(self._name, b"%d" % self._seconds)]
        return self._fields
