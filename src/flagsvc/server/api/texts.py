"""What several nouns of the admin API have in common: the body that is a name, bounds, and where something new is found."""

from __future__ import annotations

from urllib.parse import quote

from flagsvc.http.shapes import Named, Object, String

LEAST, MOST = -(2**31), 2**31 - 1
"""What a column for a place in lists holds."""
NAME_BODY = Named(
    "nameSchema",
    Object(
        {"name": String(description="The name that is asked about.", example="betaUser")},
        required=("name",),
        closed=True,
        description="A name.",
    ),
)


def location(place: str) -> tuple[tuple[bytes, bytes], ...]:
    """Return the header that says where something new is found."""
    return ((b"location", quote(place, safe="/~!*'()").encode()),)
