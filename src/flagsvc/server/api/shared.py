"""Shared by several modules of the admin API: the body with a name, bounds, ids in paths, and the Location header."""

from __future__ import annotations

from urllib.parse import quote

from flagsvc.http.shapes import Integer, Named, Object, String, check
from flagsvc.server.api.call import ApiCall

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
NO_ID = 0
"""An id that no row has: databases count from 1. It replaces numbers that are too large for the database."""


def row_id(call: ApiCall, name: str = "id") -> int:
    """Return the number in a parameter of the path. Raises ShapeError for what is none."""
    number = check(NUMBER, call.params[name], f"/params/{name}")
    return number if isinstance(number, int) and 0 < number < MAX_ID else NO_ID


def location_header(place: str) -> tuple[tuple[bytes, bytes], ...]:
    """Return the Location header of a new object."""
    return ((b"location", quote(place, safe="/~!*'()").encode()),)
