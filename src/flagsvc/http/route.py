"""A row of the routes of either program. The OpenAPI writer and the tests read it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from flagsvc.http.media import JSON
from flagsvc.http.shapes import Schema, Shape


class Parameter(NamedTuple):
    """A parameter of the query string. `repeated` tells that it may come several times.

    `style` is the OpenAPI style of a parameter with several values. `schema` replaces the schema of its `kind`.
    """

    name: str
    description: str
    kind: str = "string"
    repeated: bool = False
    style: str = ""
    schema: Schema | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class RouteRow:
    """One method of one path.

    `body` is the shape of a JSON body; None if no body is read. `body_needed` tells that the body must not be missing, and
    `example` is an example of it. `status`, `media` and `result` are the status, the media type and the shape of a successful
    answer; `result` is None for a text or an empty body. `as_json` is the shape if a caller asks for JSON and others get
    another media type. The OpenAPI document has only `listed` rows.
    """

    path: str
    method: str = "GET"
    summary: str
    description: str = ""
    tag: str
    query: tuple[Parameter, ...] = ()
    body: Shape | None = None
    body_needed: bool = True
    example: Any = None
    status: int = 200
    media: str = JSON
    result: Shape | None = None
    as_json: Shape | None = None
    listed: bool = True


R = TypeVar("R", bound=RouteRow)


class Documented(NamedTuple, Generic[R]):
    """An error that some rows can answer with.

    Its body is the program's error if `media` is JSON, a text for any other media type, and empty for an empty `media`.
    """

    status: int
    description: str
    applies: Callable[[R], bool]
    media: str = JSON
