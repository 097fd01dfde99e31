"""Context enrichers: functions from context to context (specification: Experimental options)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TypeAlias, TypeVar

from flagsvc.core.errors import ExtensionError
from flagsvc.engine.context import Context
from flagsvc.engine.values import jsnumber
from flagsvc.proxy.extensions.check import function_name, type_with_article

ContextEnricher: TypeAlias = Callable[[Context], Context | Awaitable[Context]]
"""An enricher: a plain or async function that takes a context and returns the one to evaluate."""

_Enricher = TypeVar("_Enricher", bound=ContextEnricher)


def enricher(*, pure: bool = False, reads: Collection[str] | None = None) -> Callable[[_Enricher], _Enricher]:
    """Return a decorator that declares what an enricher depends on. An enricher works without it too.

    `pure` promises that an equal context always gives an equal result (no clock, no look-up elsewhere). `reads` names the context
    fields that the enricher reads, as on the wire (`userId`, `region`); None stands for any field.
    """

    def declare(function: _Enricher) -> _Enricher:
        function.pure = pure  # type: ignore[attr-defined]
        function.reads = reads if reads is None or isinstance(reads, str) else frozenset(reads)  # type: ignore[attr-defined]
        return function

    return declare


async def enrich(context: Context, enrichers: Sequence[ContextEnricher]) -> Context:
    """Return `context` after all enrichers. Each one gets the result of the one before.

    Raises ExtensionError if an enricher does not return a Context, and any exception that an enricher raises
    (behaviour: Statuses and bodies).
    """
    for each in enrichers:
        given = each(context)
        context = check_result(each, await given if isinstance(given, Awaitable) else given)
    return context


def check_result(each: ContextEnricher, result: object) -> Context:
    """Return the result of an enricher, with texts as properties (behaviour: Context by POST).

    Raises ExtensionError if it is not a Context, or if a value in it can be no text.
    """
    if not isinstance(result, Context):
        raise ExtensionError(f"enricher `{function_name(each)}` returned {type_with_article(result)}, not a Context")
    properties: Mapping[str, object] = result.properties  # a program that is not type-checked may give any value
    if all(isinstance(value, str) for value in properties.values()):
        return result
    return result.replace(properties={name: to_text(each, name, value) for name, value in properties.items()})


def to_text(each: ContextEnricher, name: str, value: object) -> str:
    """Return a property as text. Raises ExtensionError for a value that is no text, number, boolean or None."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return jsnumber.scalar_text(value)
    if value is None:
        return ""
    told = f"{type_with_article(value)}, not a text"
    raise ExtensionError(f"enricher `{function_name(each)}` returned a context whose property `{name}` is {told}")
