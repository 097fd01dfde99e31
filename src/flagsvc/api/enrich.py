"""Context enrichers at work (specification: experimental options, expCustomEnrichers)."""

from __future__ import annotations

from collections.abc import Sequence

from flagsvc.api.log import Sparing
from flagsvc.engine.context import Context
from flagsvc.extensions import ContextEnricher, enrich
from flagsvc.extensions.check import label
from flagsvc.log import Logger, where


class EnricherError(Exception):
    """An enricher raised; it has been logged (behaviour: Order of checks, 500)."""


class Enrichment:
    """The enrichers of an application, in order."""

    def __init__(self, enrichers: Sequence[ContextEnricher], log: Logger, faults: Sparing) -> None:
        self._enrichers = tuple(enrichers)
        self._log = log
        self._faults = faults

    async def apply(self, context: Context) -> Context:
        """Return the context after every enricher; raises EnricherError, which tells nothing of the cause."""
        for each in self._enrichers:
            try:
                context = await enrich(context, (each,))
            except Exception as error:  # whatever a custom enricher raises
                name = label(each)
                if self._faults.allows(name):
                    self._log.error("a context enricher raised", enricher=name, error=where(error))
                raise EnricherError(name) from None
        return context
