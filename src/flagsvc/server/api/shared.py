"""Shared by several modules of the admin API: the body with a name, bounds, and the Location header."""

from __future__ import annotations

from urllib.parse import quote

from flagsvc.http.shapes import Named, Object, String

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


def location_header(place: str) -> tuple[tuple[bytes, bytes], ...]:
    """Return the Location header of a new object."""
    return ((b"location", quote(place, safe="/~!*'()").encode()),)
