"""Says once what is wrong, once that it is over, and keeps quiet in between."""

from __future__ import annotations

from flagsvc.core.errors import UpstreamError
from flagsvc.core.log import Logger, in_brief


class OutageLog:
    """The trouble something has at the moment, so that an outage of a day is two lines in a log and not one for each attempt.

    A failure of the same kind and status as the last one is written at level debug; a change, and the end of it, at level
    warn (error where the token is refused: nothing but a person helps there).
    """

    def __init__(self, log: Logger, failed: str, recovered: str) -> None:
        """Take the logger and the two events to write."""
        self._log = log
        self._failed = failed
        self._recovered = recovered
        self._current: tuple[str, int | None] | None = None

    def report(self, error: Exception) -> None:
        """Write a failure, loudly if it is another one than before."""
        kind = error.kind if isinstance(error, UpstreamError) else type(error).__name__
        status = error.status if isinstance(error, UpstreamError) else None
        loud = self._log.error if kind == "unauthorized" else self._log.warn
        write = self._log.debug if self._current == (kind, status) else loud
        write(self._failed, error=in_brief(error), kind=kind)
        self._current = (kind, status)

    def over(self) -> None:
        """Write that it works again, if anything was wrong."""
        if self._current is not None:
            self._log.warn(self._recovered)
        self._current = None
