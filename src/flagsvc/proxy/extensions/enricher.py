"""Context enrichers: functions from context to context (specification: Experimental options)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TypeAlias, TypeVar

from flagsvc.core.errors import ExtensionError
from flagsvc.engine.context import Context
from flagsvc.proxy.extensions.check import article, label

ContextEnricher: TypeAlias = Callable[[Context], Context | Awaitable[Context]]
"""An enricher: a plain or an async function that takes the context and gives the one to evaluate."""

_Enricher = TypeVar("_Enricher", bound=ContextEnricher)


def enricher(*, pure: bool = False, reads: Collection[str] | None = None) -> Callable[[_Enricher], _Enricher]:
    """Return a decorator that declares what an enricher depends on; an enricher without it works just as well.

    `pure` promises that an equal context always gives an equal result (no clock, no look-up elsewhere). `reads`
    names the context fields it looks at, as on the wire (`userId`, `region`); None stands for any of them.
    """

    def declare(function: _Enricher) -> _Enricher:
        function.pure = pure  # type: ignore[attr-defined]
        function.reads = reads if reads is None or isinstance(reads, str) else frozenset(reads)  # type: ignore[attr-defined]
        return function

    return declare


async def enrich(context: Context, enrichers: Sequence[ContextEnricher]) -> Context:
    """Return `context` after every enricher in turn, each given what the one before it returned.

    Raises ExtensionError when an enricher returns anything but a Context, and whatever an enricher raises
    (behaviour: Statuses and bodies).
    """
    for each in enrichers:
        given = each(context)
        context = checked(each, await given if isinstance(given, Awaitable) else given)
    return context


def checked(each: ContextEnricher, result: object) -> Context:
    """Return what an enricher returned; raises ExtensionError where that is no Context."""
    if not isinstance(result, Context):
        raise ExtensionError(f"enricher `{label(each)}` returned {article(result)}, not a Context")
    return result
