"""What a route of the flag server is: one row, which pipeline, OpenAPI document and tests read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from flagsvc.http.shapes import Shape
from flagsvc.server.api.call import ApiAnswer, ApiCall

Handler: TypeAlias = Callable[[ApiCall], ApiAnswer]
AtOnce: TypeAlias = Callable[[ApiCall], ApiAnswer | None]
ProjectOf: TypeAlias = Callable[[ApiCall], str | None]


class Auth(Enum):
    """Whose tokens open a route: users and admin tokens, backend tokens, or nobody's."""

    ADMIN = "admin"
    CLIENT = "client"
    NONE = "none"


@dataclass(frozen=True)
class Parameter:
    """A parameter of the query string, for the OpenAPI document; `repeated` where it may come several times."""

    name: str
    description: str
    kind: str = "string"
    repeated: bool = False


@dataclass(frozen=True, kw_only=True)
class Route:
    """One method of one path.

    `path` names its parameters as `:projectId`. `permission` is what an actor needs, for the project and environment that the
    path parameters `projectId` and `environment` name; empty where being known is enough, several where any one of them is.
    `project_of`, where a route has it, says which project that is when the path does not; it sees the body as it was sent.
    `body` is the shape a JSON body must have; None where none is read. `in_memory` marks what is answered without the
    database, and so without a thread. `at_once`, where a route has it, is asked first, on the event loop: it answers what it can
    from memory, or gives None, and then `handler` is called in a thread. `reads` marks what changes nothing although
    its method may: it waits for no change that is under way. `as_json` is the shape of the answer for who asks for JSON, where it
    is usually something else.
    """

    path: str
    method: str = "GET"
    handler: Handler
    operation: str
    summary: str
    tag: str
    description: str = ""
    auth: Auth = Auth.ADMIN
    permission: str | tuple[str, ...] = ""
    project_of: ProjectOf | None = None
    body: Shape | None = None
    query: tuple[Parameter, ...] = ()
    status: int = 200
    result: Shape | None = None
    media: str = "application/json"
    as_json: Shape | None = None
    in_memory: bool = False
    at_once: AtOnce | None = None
    reads: bool = False
    listed: bool = True
