"""No NUL in what is stored: PostgreSQL's texts cannot hold one (ours: the real server answers 500)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flagsvc.http.messages import below
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.errors import invalid

NUL = "\0"


def refuse_nul(call: ApiCall, *, also_in_body: bool) -> None:
    """Raise Failure (400) when a parameter or, if it is to be searched, the body holds a NUL; names the first place."""
    for name, value in call.params.items():
        if NUL in value:
            raise invalid([detail(f"/params/{name}")])
    for name, values in call.query.items():
        if any(NUL in value for value in (name, *values)):
            raise invalid([detail(f"/query/{name.replace(NUL, '')}")])
    for place in places("/body", call.body) if also_in_body else ():
        raise invalid([detail(place)])


def places(place: str, value: Any) -> Iterator[str]:
    """Give the JSON pointer of every text with a NUL below `place`."""
    if isinstance(value, str):
        if NUL in value:
            yield place
    elif isinstance(value, dict):
        for key, each in value.items():
            if NUL in key:
                yield place
            yield from places(below(place, key), each)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from places(f"{place}/{index}", each)


def detail(place: str) -> dict[str, str]:
    """Return what is wrong, as the details of a 400 have it."""
    return {"message": f"The `{place}` property must not contain a NUL character.", "path": place}
