"""Finds the project for a permission check where the path does not name it: in the body, or by the object in the path."""

from __future__ import annotations

from flagsvc.http.shapes import Integer, ShapeError, check
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.nul import NUL
from flagsvc.server.store.resources.projects import project_of_feature, project_of_field, project_of_segment

NUMBER = Integer()
MAX_ID = 2**31 - 1


def body_project(call: ApiCall) -> str | None:
    """Return the project in the body, to which the described object will belong."""
    named = call.body.get("project") if isinstance(call.body, dict) else None
    return named if isinstance(named, str) and named else None


def feature_project(call: ApiCall) -> str | None:
    """Return the project of the feature in the path."""
    name = call.params["featureName"]
    if NUL in name:
        return None
    with call.store.reading() as tx:
        return project_of_feature(tx, name)


def segment_project(call: ApiCall) -> str | None:
    """Return the project of the segment in the path, unless the body names another; for deletions."""
    own = _read_segment_project(call)
    return own if body_project(call) in (None, own) else None


def written_segment_project(call: ApiCall) -> str | None:
    """Return the project of the segment in the path, if the body names the same; else None, which stands for all projects.

    Ours: on the real server, a permission for any project in the body is enough to change any segment.
    """
    own = _read_segment_project(call)
    return own if isinstance(call.body, dict) and call.body.get("project") == own else None


def _read_segment_project(call: ApiCall) -> str | None:
    try:
        number = read_number(call, "id")
    except ShapeError:
        return None
    with call.store.reading() as tx:
        return project_of_segment(tx, number)


def context_field_project(call: ApiCall) -> str | None:
    """Return the project of the context field in the path, if the body names the same.

    Ours: on the real server, a permission for any project in the body is enough.
    """
    named = body_project(call)
    if named is None or NUL in call.params["contextField"]:
        return None
    with call.store.reading() as tx:
        own = project_of_field(tx, call.params["contextField"])
    return own if named == own else None


def read_number(call: ApiCall, name: str) -> int:
    """Return a parameter of the path as an id, at most MAX_ID. Raises ShapeError (400)."""
    number = check(NUMBER, call.params[name], f"/params/{name}")
    return number if isinstance(number, int) and abs(number) < MAX_ID else MAX_ID
