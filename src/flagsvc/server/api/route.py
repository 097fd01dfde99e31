"""What a route of the flag server is: one row, which pipeline, OpenAPI document and tests read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from flagsvc.http.route import RouteRow
from flagsvc.server.api.call import ApiAnswer, ApiCall

Handler: TypeAlias = Callable[[ApiCall], ApiAnswer]
AtOnce: TypeAlias = Callable[[ApiCall], ApiAnswer | None]
ProjectOf: TypeAlias = Callable[[ApiCall], str | None]


class Auth(Enum):
    """Whose tokens open a route: users and admin tokens, backend tokens, or none."""

    ADMIN = "admin"
    CLIENT = "client"
    NONE = "none"


@dataclass(frozen=True, kw_only=True, eq=False)
class Route(RouteRow):
    """One method of one path.

    `path` names its parameters as `:projectId`, `operation` is the name of the row in the OpenAPI document. `permission` is what
    an actor needs, for the project and environment that the path parameters `projectId` and `environment` name; empty where being
    known is enough, several where any one of them is.
    `project_of`, where a route has it, says which project that is when the path does not; it sees the body as it was sent.
    `in_memory` marks what is answered without the database, and so without a thread. `at_once`, where a route has it, is asked
    first, on the event loop: it answers what it can from memory, or gives None, and then `handler` is called in a thread. `reads`
    marks what changes nothing although its method may: it waits for no change that is under way.
    """

    handler: Handler
    operation: str
    auth: Auth = Auth.ADMIN
    permission: str | tuple[str, ...] = ""
    project_of: ProjectOf | None = None
    in_memory: bool = False
    at_once: AtOnce | None = None
    reads: bool = False
