"""A row of the routes: what one method of one path takes, who may call it, and when it is on (behaviour: Other endpoints)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from flagsvc.http.route import RouteRow
from flagsvc.proxy.api.settings import ServiceSettings


class Auth(Enum):
    """Which keys open a route: none is needed, client keys, server-side tokens, or either."""

    NONE = "none"
    CLIENT = "client"
    SERVER = "server"
    EITHER = "either"


class Limit(Enum):
    """The limit that holds for a body: none is read, the common one, or that of usage metrics."""

    NONE = ""
    BODY = "body_limit"
    METRICS = "metrics_body_limit"


@dataclass(frozen=True)
class Condition:
    """What switches a route on: a field or property of ServiceSettings; `status` is the answer while it is off, `hint` its text."""

    field: str
    status: int
    hint: str

    def holds(self, settings: ServiceSettings) -> bool:
        """Return whether the route is on."""
        return bool(getattr(settings, self.field))


@dataclass(frozen=True, kw_only=True, eq=False)
class ProxyRoute(RouteRow):
    """One method of one route. `path` is below the base path, unless `rooted`; a GET row answers HEAD too.

    `handler` names who answers. `always` marks what answers before the first configuration is there.
    """

    handler: str
    tag: str = "operations"
    auth: Auth = Auth.NONE
    limit: Limit = Limit.NONE
    condition: Condition | None = None
    always: bool = False
    rooted: bool = False

    def on(self, settings: ServiceSettings) -> bool:
        """Return whether the route is switched on."""
        return self.condition is None or self.condition.holds(settings)

    def is_known(self, settings: ServiceSettings) -> bool:
        """Return whether there is such a route at all: one that is switched off may say so, or be as unknown as any other path."""
        return self.condition is None or self.condition.status != 404 or self.condition.holds(settings)

    def place(self, base: str) -> str:
        """Return the path where the base path is `base`."""
        return self.path if self.rooted else base + self.path

    def places(self, base: str) -> tuple[str, ...]:
        """Return every path it answers at, without a slash at the end; the first page is at the root and at the base path."""
        place = self.place(base).rstrip("/")
        return tuple({"": None, place: None}) if self.path == "/" else (place,)

    @property
    def for_operators(self) -> bool:
        """Whether this is asked by who runs the proxy, not by who uses it."""
        return self.handler in ("health", "ready", "prometheus")

    @property
    def template(self) -> str:
        """The label that stands for the route in metrics and logs."""
        return self.path
