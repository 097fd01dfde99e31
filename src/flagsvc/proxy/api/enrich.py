"""Context enrichers at work (specification: experimental options, expCustomEnrichers; docs/decisions/0038)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

from flagsvc.core.log import Logger, locate_error
from flagsvc.core.throttle import Throttle
from flagsvc.engine.context import Context
from flagsvc.http.deadlines import CancelledInsideError, CrowdedError, Deadline, OverdueError
from flagsvc.http.limits import ENRICHER_STUCK, ENRICHER_TIME, Reached
from flagsvc.proxy.extensions import ContextEnricher, checked
from flagsvc.proxy.extensions.check import label

CONTEXT = "context"
"""The value of `enricherFailure` with which a request goes on without what its enrichers would have done."""


class EnricherError(Exception):
    """An enricher failed; it has been logged (behaviour: Order of checks, 500)."""


class EnricherRun:
    """One run of all enrichers over one context; `at` is the name of the one whose turn it is."""

    def __init__(self, enrichers: Sequence[ContextEnricher]) -> None:
        self._enrichers = enrichers
        self._turn = 0
        self.at = ""

    def call(self, context: Context) -> tuple[Context, Awaitable[object] | None]:
        """Call enrichers up to the first that has to be waited for; return the context so far, and what to wait for, if anything.

        Raises what an enricher raises, and ExtensionError where one returns no Context.
        """
        while self._turn < len(self._enrichers):
            each = self._enrichers[self._turn]
            self.at = label(each)
            given = each(context)
            if isinstance(given, Awaitable):
                return context, given
            context = checked(each, given)
            self._turn += 1
        return context, None

    async def wait(self, waiting: Awaitable[object]) -> Context:
        """Return the context after every enricher, the first of which has been called; raises the same. Runs as a task."""
        task = asyncio.current_task()
        left: Awaitable[object] | None = waiting
        while left is not None:
            context = checked(self._enrichers[self._turn], await left)
            if task is not None and task.cancelling():  # this one caught it, but nobody waits for the next
                raise asyncio.CancelledError
            self._turn += 1
            context, left = self.call(context)
        return context


class Enrichment:
    """The enrichers of an application, in order. All of them together have `seconds` for a request.

    With `lenient` a request goes on with the context it came with where they fail, else it fails. `faults` keeps the log short,
    `reached` counts what took too long.
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
        self._lenient = lenient
        self._deadline = Deadline(seconds)

    async def apply(self, context: Context) -> Context:
        """Return the context after every enricher; raises EnricherError, which tells nothing of the cause."""
        before = copy(context) if self._lenient else context  # an enricher may write into what it is given
        chain = EnricherRun(self._enrichers)
        try:
            self._deadline.check()
            given, waiting = chain.call(context)
            if waiting is None:  # none of them is async
                return given
            return await self._deadline.wait_for(chain.wait(waiting), lambda: self._stuck(chain))
        except OverdueError:
            self._reached.add(ENRICHER_TIME)
            self._tell("a context enricher took too long", chain.at, milliseconds=round(self._seconds * 1000))
        except CrowdedError:
            self._reached.add(ENRICHER_STUCK)
            self._tell("too many context enrichers go on although they were cancelled", "")
        except CancelledInsideError:
            self._tell("a context enricher raised", chain.at, error=asyncio.CancelledError.__name__)
        except Exception as error:  # whatever a custom enricher raises
            self._tell("a context enricher raised", chain.at, error=locate_error(error))
        if self._lenient:
            return before
        raise EnricherError(chain.at)

    def _stuck(self, chain: EnricherRun) -> None:
        """Tell of an enricher that caught its cancellation and goes on."""
        self._reached.add(ENRICHER_STUCK)
        self._tell("a context enricher goes on although it was cancelled", chain.at)

    def _tell(self, event: str, name: str, **fields: object) -> None:
        """Log what went wrong with an enricher, each kind of fault of each of them now and then."""
        if self._faults.allows(f"{event} {name}"):
            self._log.error(event, **({"enricher": name} if name else {}), **fields)


def copy(context: Context) -> Context:
    """Return a context that shares nothing with another that could change."""
    return context.replace(properties=dict(context.properties))
