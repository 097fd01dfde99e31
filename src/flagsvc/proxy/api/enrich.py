"""Context enrichers at work (specification: Experimental options; decision 0005)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

from flagsvc.core.log import Logger, Throttle, locate_error
from flagsvc.engine.context import Context
from flagsvc.http.deadlines import CancelledInsideError, CrowdedError, Deadline, OverdueError
from flagsvc.http.reached_limits import ENRICHER_STUCK, ENRICHER_TIME, Reached
from flagsvc.proxy.extensions import ContextEnricher, check_result, function_name

CONTEXT = "context"
"""The value of `enricherFailure` with which a request continues with its original context."""


class EnricherError(Exception):
    """An enricher failed; it has been logged (behaviour: Statuses and bodies)."""


class EnricherRun:
    """One run of all enrichers over one context. `current` is the name of the enricher that runs."""

    def __init__(self, enrichers: Sequence[ContextEnricher]) -> None:
        self._enrichers = enrichers
        self._index = 0
        self.current = ""

    def call(self, context: Context) -> tuple[Context, Awaitable[object] | None]:
        """Call enrichers up to the first async one. Returns the context so far, and the awaitable of that enricher or None.

        Raises what an enricher raises, and ExtensionError if one does not return a Context.
        """
        while self._index < len(self._enrichers):
            each = self._enrichers[self._index]
            self.current = function_name(each)
            given = each(context)
            if isinstance(given, Awaitable):
                return context, given
            context = check_result(each, given)
            self._index += 1
        return context, None

    async def wait(self, waiting: Awaitable[object]) -> Context:
        """Wait for the enricher that was called, call the others, and return the context. Raises as `call` does. Runs as a task."""
        task = asyncio.current_task()
        left: Awaitable[object] | None = waiting
        while left is not None:
            context = check_result(self._enrichers[self._index], await left)
            if task is not None and task.cancelling():  # the enricher caught it; do not start the next one
                raise asyncio.CancelledError
            self._index += 1
            context, left = self.call(context)
        return context


class Enrichment:
    """The enrichers of an application, in order. Together they have `seconds` for a request.

    If they fail, a request fails too, or with `lenient` continues with its original context. `faults` limits the log lines, and
    `reached` counts timeouts.
    """

    def __init__(
        self,
        enrichers: Sequence[ContextEnricher],
        log: Logger,
        faults: Throttle,
        reached: Reached,
        *,
        seconds: float = 1.0,
        lenient: bool = False,
    ) -> None:
        self._enrichers = tuple(enrichers)
        self._log = log
        self._faults = faults
        self._reached = reached
        self._seconds = seconds
        self._is_lenient = lenient
        self._deadline = Deadline(seconds)

    async def apply(self, context: Context) -> Context:
        """Return the context after every enricher. Raises EnricherError, which does not contain the cause."""
        before = copy(context) if self._is_lenient else context  # an enricher may change the context that it gets
        run = EnricherRun(self._enrichers)
        try:
            self._deadline.check()
            given, waiting = run.call(context)
            if waiting is None:  # no enricher is async
                return given
            return await self._deadline.wait_for(run.wait(waiting), lambda: self._on_stuck(run))
        except OverdueError:
            self._reached.add(ENRICHER_TIME)
            self._log_failure("a context enricher took too long", run.current, milliseconds=round(self._seconds * 1000))
        except CrowdedError:
            self._reached.add(ENRICHER_STUCK)
            self._log_failure("too many context enrichers go on although they were cancelled", "")
        except CancelledInsideError:
            self._log_failure("a context enricher raised", run.current, error=asyncio.CancelledError.__name__)
        except Exception as error:  # a custom enricher may raise any exception
            self._log_failure("a context enricher raised", run.current, error=locate_error(error))
        if self._is_lenient:
            return before
        raise EnricherError(run.current)

    def _on_stuck(self, run: EnricherRun) -> None:
        """Count and log an enricher that caught its cancellation and continues."""
        self._reached.add(ENRICHER_STUCK)
        self._log_failure("a context enricher goes on although it was cancelled", run.current)

    def _log_failure(self, event: str, name: str, **fields: object) -> None:
        """Log a failure of an enricher. Each kind of failure of each enricher is logged only now and then."""
        if self._faults.allows(f"{event} {name}"):
            self._log.error(event, **({"enricher": name} if name else {}), **fields)


def copy(context: Context) -> Context:
    """Return a copy of a context that shares no mutable value with it."""
    return context.replace(properties=dict(context.properties))
