"""A dialect as data: one API of the family.

Each dialect has a module in this package and a row in `DIALECTS`. Engine, cache, limits, CORS and usage metrics are the same for
all.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from flagsvc.engine.fragments import AnswerShape
from flagsvc.http.call import Handler
from flagsvc.http.keys import Keys
from flagsvc.http.shapes import Named
from flagsvc.proxy.api.answers import Answers
from flagsvc.proxy.api.evaluation import Evaluator
from flagsvc.proxy.api.ports import ConfigurationHolder
from flagsvc.proxy.api.route import ERROR, ProxyRoute
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.api.wire_format import WireFormat
from flagsvc.proxy.usage import UsageCounters

FindTokens = Callable[[list[str], bytes], Awaitable[list[dict[str, Any]]]]
"""Tells which of some texts are keys of the whole process, with what they open, for a caller's network. Raises HttpError (503)."""


class DialectParts(NamedTuple):
    """The parts that handlers of a dialect use. `evaluator` and `answers` have the dialect's wire format.

    `with_shape` returns another evaluator, whose answers have this shape. `find_tokens` tells about the keys of the whole process;
    None if those of the service are all.
    """

    settings: ServiceSettings

    evaluator: Evaluator
    answers: Answers
    holder: ConfigurationHolder
    usage: UsageCounters
    keys: Keys
    with_shape: Callable[[AnswerShape], Evaluator]
    find_tokens: FindTokens | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Dialect:
    """One dialect. Its `name` is a value of the option `dialects`.

    Errors at paths below `prefixes`, which are below the base path, have the dialect's form.
    `wire_format` reads keys and contexts and writes errors. `handlers` maps the handler names of the rows to functions that
    make a handler. `shapes` are the named shapes of bodies and answers, in the order of the OpenAPI document; `error` is the one of
    its errors. `hints` tell for paths that are no routes what a caller may have meant; `{base}` in a text is the base path.
    """

    name: str
    prefixes: tuple[str, ...]
    wire_format: WireFormat
    routes: tuple[ProxyRoute, ...]
    handlers: Mapping[str, Callable[[DialectParts], Handler]]
    shapes: tuple[Named, ...] = ()
    error: Named = ERROR
    hints: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Write into the rows what they have from their dialect."""
        rows = tuple(
            replace(row, dialect=self.name, wire_format=self.wire_format, error=self.error) for row in self.routes
        )
        object.__setattr__(self, "routes", rows)
