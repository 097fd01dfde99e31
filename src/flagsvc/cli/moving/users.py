"""Plans users: missing ones are created, without a password. Where the target's API has no users, they stay behind."""

from __future__ import annotations

from typing import Any, NamedTuple

from flagsvc.cli.batch.client import AdminClient
from flagsvc.cli.moving.steps import AdminRequest, Json, MoveStep

PATH = "/api/admin/user-admin"


class UserPlan(NamedTuple):
    """The steps that create users, and the names of those that stay behind; None if the source does not list its users."""

    steps: tuple[MoveStep, ...]
    left: list[str] | None


def plan_users(source: AdminClient, target: AdminClient) -> UserPlan:
    """Return the plan for the users of `source`."""
    theirs, own = read_users(source.value(PATH)), read_users(target.value(PATH))
    if theirs is None:
        return UserPlan((), None)
    users, roles = theirs
    if own is None:
        return UserPlan((), [display_name(user) for user in users])
    there = {name for user in own[0] for name in names_of(user)}
    numbers = {name: number for number, name in own[1].items()}
    new = [(user, numbers.get(roles.get(user.get("rootRole"), ""))) for user in users if not names_of(user) & there]
    made = tuple(user_step(user, role) for user, role in new if role is not None)
    return UserPlan(made, [display_name(user) for user, role in new if role is None])


def read_users(answer: Any) -> tuple[list[Json], dict[Any, str]] | None:
    """Return users and the names of root roles by number; None if the answer does not list users."""
    if not isinstance(answer, dict) or not isinstance(answer.get("users"), list):
        return None
    return answer["users"], {role["id"]: role["name"] for role in answer.get("rootRoles") or ()}


def names_of(user: Json) -> set[str]:
    """Return the email and the username of a user, in lower case."""
    return {str(user[key]).lower() for key in ("email", "username") if user.get(key)}


def display_name(user: Json) -> str:
    """Return the name of a user for messages."""
    return str(user.get("username") or user.get("email") or user.get("name") or user.get("id"))


def user_step(user: Json, role: Any) -> MoveStep:
    """Return the step that creates a user; no mail is sent."""
    body = {key: user[key] for key in ("username", "email", "name") if user.get(key)}
    request = AdminRequest("POST", PATH, {**body, "rootRole": role, "sendEmail": False})
    return MoveStep("user", display_name(user), "new", (request,))
