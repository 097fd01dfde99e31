"""The first page of a program: its name and its endpoints, as text or JSON by `Accept`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

READ_AS_TEXT = ("text/plain", "text/html", "text/*")
LONGEST = 512
"""The most bytes of an Accept header that are read."""


class Place(NamedTuple):
    """One endpoint: its purpose, and the key or token that opens it, if it needs one."""

    method: str
    path: str
    description: str
    key: str = ""


def prefers_json(accept: bytes | None) -> bool:
    """Return whether an Accept header prefers JSON to text, or rates both alike. A missing header and `*/*` do not."""
    wanted = dict(qualities((accept or b"")[:LONGEST].decode("latin-1")))
    json = wanted.get("application/json", 0.0)
    return json > 0 and json >= max(wanted.get(media, 0.0) for media in READ_AS_TEXT)


def qualities(accept: str) -> Iterable[tuple[str, float]]:
    """Yield each media type with its q-value, from 0 to 1."""
    for each in accept.lower().split(","):
        media, _, parameters = each.partition(";")
        quality = next((word.strip() for word in parameters.split(";") if word.strip().startswith("q=")), "q=1")
        try:
            yield media.strip(), float(quality[2:])
        except ValueError:
            yield media.strip(), 0.0


def as_text(name: str, about: str, places: Sequence[Place]) -> str:
    """Return a text page with one line for each endpoint."""
    method, path = (max(len(each[column]) for each in places) for column in (0, 1))
    lines = [
        f"  {each.method:<{method}}  {each.path:<{path}}  {each.description}{f' ({each.key})' if each.key else ''}"
        for each in places
    ]
    return "\n".join([f"{name} {about}.", "", *lines, ""])


def as_json(name: str, about: str, places: Sequence[Place]) -> dict[str, Any]:
    """Return the page as a JSON value."""
    return {"name": name, "description": about, "endpoints": [each._asdict() for each in places]}
