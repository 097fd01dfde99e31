"""The definition of a route of the flag server, which pipeline, OpenAPI document and tests read; and what several routes share.

A handler that only calls the store is made of that call by `reading` or `writing`, mostly with `by_path`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias
from urllib.parse import quote

from flagsvc.http.answers import Answer
from flagsvc.http.call import Call
from flagsvc.http.route import RouteRow
from flagsvc.http.shapes import Integer, Named, Object, Shape, String, check
from flagsvc.pages.forms import Form
from flagsvc.server.api.body import Parsed
from flagsvc.server.api.call import ApiCall
from flagsvc.server.store.store import Tx

Handler: TypeAlias = Callable[[ApiCall], Answer]
Render: TypeAlias = Callable[[ApiCall, Answer], Answer]
AtOnce: TypeAlias = Callable[[ApiCall], Answer | None]
ReadForm: TypeAlias = Callable[[Call, Parsed], Form]
ProjectOf: TypeAlias = Callable[[ApiCall], str | None]
Heads: TypeAlias = tuple[tuple[bytes, bytes], ...]
Act: TypeAlias = Callable[[Tx, ApiCall], Any]
"""Reads or changes something in a transaction, and returns the body of the answer; None for an answer without one."""


class Auth(Enum):
    """Who a route is for: tokens of users and admin tokens, the same or a session (a page), backend tokens, or anybody."""

    ADMIN = "admin"
    PAGE = "page"
    CLIENT = "client"
    NONE = "none"


@dataclass(frozen=True, kw_only=True, eq=False)
class Route(RouteRow):
    """One method of one path.

    `path` names its parameters as `:projectId`. `operation` is the operationId in the OpenAPI document. `permission` is the
    permission that an actor needs, in the project and environment of the path parameters `projectId` and `environment`. An empty
    `permission` accepts every authenticated caller; of several permissions, any one is enough.
    `project_of` returns the project if the path does not name it; it gets the body as it was sent.
    `in_memory` marks a handler that needs no database and so runs on the event loop. `at_once` runs first, on the event loop; it
    returns an answer from memory, or None, and then `handler` runs in a thread. `reads` marks a route that changes nothing
    although its method could; it does not wait for running changes. `renews` marks a route that tells of tokens, which may be new.
    `in_maintenance` tells that maintenance mode lets a route change something. `render` makes the page of an answer's data, and
    `read_form` the form of a route that reads no JSON. `rooted` tells that the path is outside of the base path. `about_body` says
    what a body without the right shape is instead, behind the words "The request body", or nothing. `stands_for` is the operation
    of the admin API that a form does, with the same permission.
    """

    handler: Handler
    operation: str
    auth: Auth = Auth.ADMIN
    permission: str | tuple[str, ...] = ""
    project_of: ProjectOf | None = None
    in_memory: bool = False
    at_once: AtOnce | None = None
    reads: bool = False
    renews: bool = False
    in_maintenance: bool = False
    render: Render | None = None
    read_form: ReadForm | None = None
    stands_for: str = ""
    rooted: bool = False
    about_body: Callable[[object], str] | None = None


MIN_SORT_ORDER, MAX_SORT_ORDER = -(2**31), 2**31 - 1
"""The bounds of a sort order column."""
NAME_BODY = Named(
    "nameSchema",
    Object(
        {"name": String(description="The name to check.", example="betaUser")},
        required=("name",),
        closed=True,
        description="A name.",
    ),
)
NUMBER = Integer()
MAX_ID = 2**53
NO_STORE: Heads = ((b"cache-control", b"no-store"),)
NO_ID = 0
"""An id that no row has: databases count from 1. It replaces numbers that are too large for the database."""


def row_id(call: ApiCall, name: str = "id") -> int:
    """Return the number in a parameter of the path. Raises ShapeError for what is none."""
    number = check(NUMBER, call.params[name], f"/params/{name}")
    return number if isinstance(number, int) and 0 < number < MAX_ID else NO_ID


def location_header(place: str) -> Heads:
    return ((b"location", quote(place, safe="/~!*'()").encode()),)


NUMBERED = ("id", "userId")
"""Parameters of paths that are ids of rows."""


def by_path(function: Callable[..., Any], *names: str) -> Act:
    """Return what calls a function of the store with parameters of the path, and the body if the route reads a body.

    Without `names`, it gets all parameters in the order of the path.
    """

    def act(tx: Tx, call: ApiCall) -> Any:
        given = [row_id(call, name) if name in NUMBERED else call.params[name] for name in names or call.params]
        return function(tx, *given, *([] if call.body is None else [call.body]))

    return act


def versioned(member: str, act: Act) -> Act:
    """Return what answers the result of `act` as a member of an object with the version 1."""
    return lambda tx, call: {"version": 1, member: act(tx, call)}


def versioned_shape(name: str, member: str, shape: Shape, version: Integer) -> Named:
    """Return the shape of what `versioned` answers."""
    return Named(name, Object({"version": version, member: shape}, required=("version", member), closed=True))


def reading(act: Act, *, headers: Heads = ()) -> Handler:
    def handler(call: ApiCall) -> Answer:
        with call.store.reading() as tx:
            return Answer(act(tx, call), headers=headers)

    return handler


def writing(act: Act, *, headers: Heads = (), location: str = "") -> Handler:
    """Return the handler of a route that changes something.

    `location` is the place of a new object, with names of path parameters and of the answer's members in braces.
    """

    def handler(call: ApiCall) -> Answer:
        with call.store.writing(call.actor) as tx:
            body = act(tx, call)
        place = location_header(location.format_map(call.params | body)) if location else ()
        return Answer(body, headers=(*headers, *place))

    return handler
