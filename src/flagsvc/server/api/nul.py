"""Rejects NUL characters, which PostgreSQL cannot store in texts (ours: the real server answers 500)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flagsvc.http.messages import below
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.errors import invalid

NUL = "\0"


def refuse_nul(call: ApiCall, *, also_in_body: bool) -> None:
    """Raise ApiError (400), with the first place, if a parameter contains a NUL; with `also_in_body`, check the body too."""
    for name, value in call.params.items():
        if NUL in value:
            raise invalid([make_nul_detail(f"/params/{name}")])
    for name, values in call.query.items():
        if any(NUL in value for value in (name, *values)):
            raise invalid([make_nul_detail(f"/query/{name.replace(NUL, '')}")])
    for place in find_nul_pointers("/body", call.body) if also_in_body else ():
        raise invalid([make_nul_detail(place)])


def find_nul_pointers(place: str, value: Any) -> Iterator[str]:
    """Yield the JSON Pointer of every text with a NUL at or below `place`."""
    if isinstance(value, str):
        if NUL in value:
            yield place
    elif isinstance(value, dict):
        for key, each in value.items():
            if NUL in key:
                yield place
            yield from find_nul_pointers(below(place, key), each)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from find_nul_pointers(f"{place}/{index}", each)


def make_nul_detail(place: str) -> dict[str, str]:
    """Return the detail of the 400 for a place."""
    return {"message": f"The `{place}` property must not contain a NUL character.", "path": place}
