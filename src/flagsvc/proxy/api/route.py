"""A row of the routes: one method of one path, the keys that open it, and its switch (behaviour: Other endpoints).

A dialect, one API of the family, is data as well. Engine, cache, limits, CORS and usage metrics are the same for all dialects.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, NamedTuple

from flagsvc.engine.fragments import AnswerShape
from flagsvc.http.call import Handler
from flagsvc.http.keys import Keys
from flagsvc.http.reached_limits import Reached
from flagsvc.http.route import RouteRow
from flagsvc.http.shapes import Array, Named, Record, String
from flagsvc.proxy.api.answers import Answers
from flagsvc.proxy.api.evaluation import Evaluator
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.api.streams import OpenTicket, StreamParts
from flagsvc.proxy.api.wire_format import WireFormat
from flagsvc.proxy.configuration.holder import ConfigurationHolder
from flagsvc.proxy.usage import UsageCounters

TEXT = String()
PROXY_FORMAT = WireFormat()


class Auth(Enum):
    """The keys that open a route: none is needed, client keys, server-side tokens, or either."""

    NONE = "none"
    CLIENT = "client"
    SERVER = "server"
    EITHER = "either"


class Limit(Enum):
    """The limit for a body: no body is read, the common limit, or the limit of usage metrics."""

    NONE = ""
    BODY = "body_limit"
    METRICS = "metrics_body_limit"


PROBLEM = Named("Problem", Record({"instancePath": TEXT, "message": TEXT}, required=("instancePath", "message"), closed=True))
ERROR = Named("Error", Record({"error": TEXT, "validation": Array(PROBLEM)}, required=("error",), closed=True))
"""The shape of the errors of `/proxy`, and of paths that belong to no dialect."""


@dataclass(frozen=True)
class Condition:
    """The switch of a route: a field or property of ServiceSettings. `status` and `hint` are the answer while the route is off."""

    field: str
    status: int
    hint: str

    def holds(self, settings: ServiceSettings) -> bool:
        return bool(getattr(settings, self.field))


@dataclass(frozen=True, kw_only=True, eq=False)
class ProxyRoute(RouteRow):
    """One method of one path. A GET row also answers HEAD.

    `path` is below the base path, unless `rooted`; if `twice`, it is at both places. `handler` is the name of the handler. An
    `always` row also answers before the first configuration. `tells_keys`: the answer tells whether something is a key. `dialect`
    is the name of the dialect that the row belongs to, or empty. The dialect sets it, `wire_format`, and `error`, the shape of the
    row's errors. The last segment of `path` may be a name in braces, which stands for the rest of a path.
    """

    handler: str
    tag: str = "operations"
    auth: Auth = Auth.NONE
    limit: Limit = Limit.NONE
    condition: Condition | None = None
    always: bool = False
    rooted: bool = False
    twice: bool = False
    tells_keys: bool = False
    dialect: str = ""
    wire_format: WireFormat = PROXY_FORMAT
    error: Named = ERROR

    def on(self, settings: ServiceSettings) -> bool:
        return self.is_spoken(settings) and (self.condition is None or self.condition.holds(settings))

    def is_spoken(self, settings: ServiceSettings) -> bool:
        """Return whether the dialect of the route is switched on."""
        return not self.dialect or self.dialect in settings.dialects

    def is_known(self, settings: ServiceSettings) -> bool:
        """Return whether the path is known. A route that is off answers with its status; with 404 its path is unknown."""
        return self.on(settings) or (self.is_spoken(settings) and self.condition is not None and self.condition.status != 404)

    def hint_while_off(self, settings: ServiceSettings) -> str:
        """Return how to switch the route on, if its path is unknown while it is off and callers may know that; else nothing."""
        if not self.is_spoken(settings):
            return f"the dialect `{self.dialect}` is switched off (option `dialects`)"
        return "" if self.condition is None or self.is_known(settings) else self.condition.hint

    def place(self, base: str) -> str:
        """Return the path below this base path."""
        return self.path if self.rooted else base + self.path

    def places(self, base: str) -> tuple[str, ...]:
        """Return all paths of the row, without a slash at the end: if `twice`, at the root and below the base path."""
        found = (self.path, base + self.path) if self.twice else (self.place(base),)
        return tuple(dict.fromkeys(place.rstrip("/") for place in found))

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters in the path."""
        name = self.path.rpartition("/")[2]
        return (name[1:-1],) if name.startswith("{") else ()

    @property
    def for_operators(self) -> bool:
        return self.handler in ("health", "ready", "prometheus")

    @property
    def template(self) -> str:
        """The label of the route in metrics and logs."""
        return self.path


FindTokens = Callable[[list[str], bytes], Awaitable[list[dict[str, Any]]]]
"""Tells which of some texts are keys of the whole process, with what they open, for a caller's network. Raises HttpError (503)."""


class DialectParts(NamedTuple):
    """The parts that handlers of a dialect use. `evaluator` and `answers` have the dialect's wire format.

    `with_shape` returns another evaluator, whose answers have this shape. `find_tokens` tells about the keys of the whole process;
    None if those of the service are all. `open_ticket` finds the stream of a ticket; None if the service has the only stream.
    """

    settings: ServiceSettings

    evaluator: Evaluator
    answers: Answers
    holder: ConfigurationHolder
    usage: UsageCounters
    keys: Keys
    streams: StreamParts
    reached: Reached
    with_shape: Callable[[AnswerShape], Evaluator]
    find_tokens: FindTokens | None = None
    open_ticket: OpenTicket | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Dialect:
    """One dialect. Its `name` is a value of the option `dialects`, but for OFREP.

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
        rows = tuple(replace(row, dialect=self.name, wire_format=self.wire_format, error=self.error) for row in self.routes)
        object.__setattr__(self, "routes", rows)
