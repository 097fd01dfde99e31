"""Routes that show the pipeline before and after a handler, and a reader of its errors."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy.exc import OperationalError

from flagsvc.core.errors import DatabaseError
from flagsvc.http.answers import Answer
from flagsvc.http.shapes import Array, Object, String
from flagsvc.server.api.admin import maintenance
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import Auth, Route
from flagsvc.server.store.errors import bad_data

ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
THING = Object({"name": String(), "tags": Array(String())}, required=("name",), closed=True)
PATH = "/api/admin/projects/:projectId/environments/:environment/things"
THINGS = "/api/admin/projects/default/environments/development/things"
NO_TOKEN = "This request has no token. Send the token of a user, or an admin token, in the Authorization header."
UNKNOWN_TOKEN = "This server does not know this token, or it has expired. Send the token of a user, or an admin token."


def told(call: ApiCall) -> Answer:
    """Answer with the handler's input."""
    actor, token = call.caller.actor, call.caller.token
    who = actor.name if actor else token and token.kind
    return Answer({"who": who, "params": call.params, "query": call.query, "body": call.body})


def refusing(call: ApiCall) -> Answer:
    """Refuse, as an operation does."""
    raise bad_data("The thing is odd")


def failing(call: ApiCall) -> Answer:
    """Raise an error whose message must not be shown."""
    raise LookupError("hunter2")


def away(call: ApiCall) -> Answer:
    """Fail as with a database that is away."""
    raise DatabaseError("the database failed: OperationalError") from OperationalError("x", {}, Exception("hunter2"))


def broken(call: ApiCall) -> Answer:
    """Fail as with a statement that the database does not take."""
    raise DatabaseError("the database failed: DataError")


def deep(call: ApiCall) -> Answer:
    """Answer with what recursion cannot encode."""
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return Answer(value)


def row(path: str, handler: Any = told, **given: Any) -> Route:
    method = given.get("method", "GET")
    return Route(path=path, handler=handler, operation=f"{method}{path}", summary="x", tag="x", **given)


ROUTES = (
    row(PATH, permission="CREATE_FEATURE_STRATEGY", method="POST", body=THING, status=201),
    row(PATH, permission="CREATE_FEATURE_STRATEGY", method="PATCH", body=THING),
    row(PATH),
    row("/api/admin/either", permission=("ADMIN", "CREATE_SEGMENT")),
    row("/api/admin/things/:name", method="DELETE", status=202),
    row("/api/admin/refusing", refusing),
    row("/api/admin/failing", failing),
    row("/api/admin/away", away),
    row("/api/admin/broken", broken),
    row("/api/admin/deep", deep, method="POST", body=THING),
    row("/api/client/things", auth=Auth.CLIENT),
    row("/open", auth=Auth.NONE, in_memory=True),
    *maintenance.ROUTES,
)


def message(answer: Any) -> str:
    """Return the message of an error; checks that it is one of the forms of the wire."""
    body = answer.json()
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    if "name" in body:
        further = {"AuthenticationRequired": ["path", "type", "defaultHidden"], "PermissionError": ["permissions"]}
        names = [name for name in body if name not in further.get(body["name"], ())]
        assert names[-2:] == ["message", "details"]
        assert body["details"]
        assert "id" not in body or ID.fullmatch(body["id"])
    else:
        assert list(body) == ["message"]
    return str(body["message"])
