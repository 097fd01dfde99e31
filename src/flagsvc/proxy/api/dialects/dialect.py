"""A dialect as data: one API of the family.

Each dialect has a module in this package and a row in `DIALECTS`. Engine, cache, limits, CORS and usage metrics are the same for
all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from flagsvc.http.call import Handler
from flagsvc.http.shapes import Named
from flagsvc.proxy.api.answers import Answers
from flagsvc.proxy.api.evaluation import Evaluator
from flagsvc.proxy.api.ports import ConfigurationHolder, UsageCounting
from flagsvc.proxy.api.route import ProxyRoute
from flagsvc.proxy.api.wire_format import WireFormat


class DialectParts(NamedTuple):
    """The parts that handlers of a dialect use. `evaluator` and `answers` have the dialect's wire format."""

    evaluator: Evaluator
    answers: Answers
    holder: ConfigurationHolder
    usage: UsageCounting


@dataclass(frozen=True, kw_only=True, eq=False)
class Dialect:
    """One dialect. Errors at paths below `prefix`, which is below the base path, have the dialect's form.

    `wire_format` reads keys and contexts and writes errors. `handlers` maps the handler names of the rows to functions that
    make a handler. `shapes` are the named shapes of bodies and answers, in the order of the OpenAPI document.
    """

    prefix: str
    wire_format: WireFormat
    routes: tuple[ProxyRoute, ...]
    handlers: Mapping[str, Callable[[DialectParts], Handler]]
    shapes: tuple[Named, ...] = ()
