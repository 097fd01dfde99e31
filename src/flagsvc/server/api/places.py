"""Which project a permission is asked for where the path does not name it: the body's, or that of what the path names."""

from __future__ import annotations

from flagsvc.http.shapes import Integer, ShapeError, check
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.nul import NUL
from flagsvc.server.store.nouns.owners import project_of_feature, project_of_field, project_of_segment

NUMBER = Integer()
LARGEST = 2**31 - 1


def of_body(call: ApiCall) -> str | None:
    """Return the project that the body names: the one that what it describes will belong to."""
    named = call.body.get("project") if isinstance(call.body, dict) else None
    return named if isinstance(named, str) and named else None


def of_feature(call: ApiCall) -> str | None:
    """Return the project of the feature that the path names."""
    name = call.params["featureName"]
    if NUL in name:
        return None
    with call.store.reading() as tx:
        return project_of_feature(tx, name)


def of_segment(call: ApiCall) -> str | None:
    """Return the project of the segment that the path names, unless the body names another: for who deletes it."""
    own = _own_of_segment(call)
    return own if of_body(call) in (None, own) else None


def of_written_segment(call: ApiCall) -> str | None:
    """Return the project of the segment that the path names, if the body says that it stays there; else it belongs to all.

    Ours: on the real server naming any project in the body is enough to write any segment.
    """
    own = _own_of_segment(call)
    return own if isinstance(call.body, dict) and call.body.get("project") == own else None


def _own_of_segment(call: ApiCall) -> str | None:
    try:
        number = read_number(call, "id")
    except ShapeError:
        return None
    with call.store.reading() as tx:
        return project_of_segment(tx, number)


def of_field(call: ApiCall) -> str | None:
    """Return the project of the context field that the path names, if the body names it too.

    Ours: on the real server naming any project in the body is enough.
    """
    named = of_body(call)
    if named is None or NUL in call.params["contextField"]:
        return None
    with call.store.reading() as tx:
        own = project_of_field(tx, call.params["contextField"])
    return own if named == own else None


def read_number(call: ApiCall, name: str) -> int:
    """Return the number that a parameter of the path is; one beyond all ids counts as the largest. Raises ShapeError (400)."""
    number = check(NUMBER, call.params[name], f"/params/{name}")
    return number if isinstance(number, int) and abs(number) < LARGEST else LARGEST
