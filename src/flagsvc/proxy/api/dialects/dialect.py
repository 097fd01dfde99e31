"""What a dialect is: an API of the family that callers speak, as data.

A dialect has a module in this package and a row in `DIALECTS`. Engine, cache, limits, CORS and counting are the same for all.
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
    """What the handlers of a dialect are made of. `evaluator` and `answers` speak the dialect's wire format."""

    evaluator: Evaluator
    answers: Answers
    holder: ConfigurationHolder
    usage: UsageCounting


@dataclass(frozen=True, kw_only=True, eq=False)
class Dialect:
    """One dialect. `prefix` is the path, below the base path, whose errors have the dialect's form.

    `wire_format` reads keys and contexts and writes errors. `handlers` has, by the names that the rows use, who makes each
    handler. `shapes` are the named shapes of bodies and answers, in the order of the OpenAPI document.
    """

    prefix: str
    wire_format: WireFormat
    routes: tuple[ProxyRoute, ...]
    handlers: Mapping[str, Callable[[DialectParts], Handler]]
    shapes: tuple[Named, ...] = ()
