"""Users: those that are missing are made, without a password; where a server has no users over its API, they are named."""

from __future__ import annotations

from typing import Any, NamedTuple

from flagsvc.cli.batch.client import AdminClient
from flagsvc.cli.moving.steps import AdminRequest, Json, MoveStep

PATH = "/api/admin/user-admin"


class People(NamedTuple):
    """The users to be made, and the names of those that stay behind; None where the other server does not tell its users."""

    steps: tuple[MoveStep, ...]
    left: list[str] | None


def people(source: AdminClient, target: AdminClient) -> People:
    """Return what becomes of the users of a server on another."""
    theirs, own = lists(source.value(PATH)), lists(target.value(PATH))
    if theirs is None:
        return People((), None)
    users, roles = theirs
    if own is None:
        return People((), [called(user) for user in users])
    there = {name for user in own[0] for name in names_of(user)}
    numbers = {name: number for number, name in own[1].items()}
    new = [(user, numbers.get(roles.get(user.get("rootRole"), ""))) for user in users if not names_of(user) & there]
    made = tuple(step(user, role) for user, role in new if role is not None)
    return People(made, [called(user) for user, role in new if role is None])


def lists(answer: Any) -> tuple[list[Json], dict[Any, str]] | None:
    """Return users and the names of root roles by number, None where the answer holds none."""
    if not isinstance(answer, dict) or not isinstance(answer.get("users"), list):
        return None
    return answer["users"], {role["id"]: role["name"] for role in answer.get("rootRoles") or ()}


def names_of(user: Json) -> set[str]:
    """Return by what a user is known, in lower case."""
    return {str(user[key]).lower() for key in ("email", "username") if user.get(key)}


def called(user: Json) -> str:
    """Return how a user is called in messages."""
    return str(user.get("username") or user.get("email") or user.get("name") or user.get("id"))


def step(user: Json, role: Any) -> MoveStep:
    """Return what makes a user; no mail is sent."""
    body = {key: user[key] for key in ("username", "email", "name") if user.get(key)}
    request = AdminRequest("POST", PATH, {**body, "rootRole": role, "sendEmail": False})
    return MoveStep("user", called(user), "new", (request,))
