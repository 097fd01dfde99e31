"""Logs the begin and the end of an outage, and not every failed attempt in between."""

from __future__ import annotations

from flagsvc.core.errors import UpstreamError
from flagsvc.core.log import Logger, describe_error


class OutageLog:
    """The present outage of one task. A long outage gives two lines in the log, not one line for each attempt.

    A failure of the same kind and status as the last one is written at level debug, a different failure at level warn. A refused
    token is written at level error, because only a person can fix it. The recovery is written at level info: the
    program needs no help then.
    """

    def __init__(self, log: Logger, failed: str, recovered: str) -> None:
        """Take the logger, and the events to write for a failure and for the recovery."""
        self._log = log
        self._failed = failed
        self._recovered = recovered
        self._current: tuple[str, int | None] | None = None

    def log_failure(self, error: Exception) -> None:
        """Write a failure: at level debug if it is of the same kind as the last one."""
        kind = error.kind if isinstance(error, UpstreamError) else type(error).__name__
        status = error.status if isinstance(error, UpstreamError) else None
        write_change = self._log.error if kind == "unauthorized" else self._log.warn
        write = self._log.debug if self._current == (kind, status) else write_change
        write(self._failed, error=describe_error(error), kind=kind)
        self._current = (kind, status)

    def log_recovery(self) -> None:
        """Write that the task works again, if there was an outage."""
        if self._current is not None:
            self._log.info(self._recovered)
        self._current = None
