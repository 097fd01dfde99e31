"""What a route row of either program says: the writer of OpenAPI documents and the tests read it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from flagsvc.http.shapes import Schema, Shape

JSON_MEDIA = "application/json"


@dataclass(frozen=True)
class Parameter:
    """A parameter of the query string. `repeated` tells that it may come several times.

    `style` names how a parameter that holds several values is written; `schema` replaces the schema of its `kind`.
    """

    name: str
    description: str
    kind: str = "string"
    repeated: bool = False
    style: str = ""
    schema: Schema | None = field(default=None, hash=False)


@dataclass(frozen=True, kw_only=True)
class RouteRow:
    """One method of one path.

    `body` is the shape of a JSON body, None where none is read; `body_needed` tells that it may not be missing, and `example` is
    a body to begin with. `status` and `media` belong to an answer when all is well, `result` is its shape, None for a text or
    nothing; `as_json` is its shape where a caller asks for JSON and others get something else. The OpenAPI document tells of
    `listed` rows.
    """

    path: str
    method: str = "GET"
    summary: str
    description: str = ""
    tag: str
    query: tuple[Parameter, ...] = ()
    body: Shape | None = None
    body_needed: bool = True
    example: Any = field(default=None, hash=False)
    status: int = 200
    media: str = JSON_MEDIA
    result: Shape | None = None
    as_json: Shape | None = None
    listed: bool = True


R = TypeVar("R", bound=RouteRow)


@dataclass(frozen=True)
class Documented(Generic[R]):
    """An answer that some rows can give when not all is well.

    Its body is the program's error where `media` is JSON, a text where it is another media type, and nothing where it is empty.
    """

    status: int
    description: str
    applies: Callable[[R], bool]
    media: str = JSON_MEDIA
