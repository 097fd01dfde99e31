"""The roles of users in projects: owner and member (decision 0024)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, insert, select

from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import CallerError, bad_data
from flagsvc.server.store.resources import projects, users
from flagsvc.server.store.schema import project_roles
from flagsvc.server.store.schema import users as users_table
from flagsvc.server.store.store import Tx

UNKNOWN_ROLE = "There is no project role {}: 4 is the owner, 5 a member"
ROLES: tuple[Json, ...] = (
    {"id": 4, "type": "project", "name": "Owner", "description": "May do everything in the project."},
    {
        "id": 5,
        "type": "project",
        "name": "Member",
        "description": "May change the flags of the project, and its tokens.",
    },
)
"""The roles in a project by the numbers and names of the real server."""
NUMBERS: dict[str, int] = {role["name"].lower(): role["id"] for role in ROLES}
"""Stored role → its number."""
NAMES = {number: name for name, number in NUMBERS.items()}
OWNER = "owner"


def list_access(tx: Tx, project: str) -> Json:
    """Return the users with a role in a project, by id, and the roles that there are. Raises CallerError (404)."""
    projects.find(tx, project)
    holders = select(project_roles.c.user_id).where(project_roles.c.project == project)
    query = select(users_table).where(users_table.c.id.in_(holders)).order_by(users_table.c.id)
    return {
        "users": [_to_json(tx, project, row) for row in tx.db.execute(query).all()],
        "groups": [],
        "roles": list(ROLES),
    }


def _to_json(tx: Tx, project: str, row: Any) -> Json:
    found = roles_of(tx, project, row.id)
    return {"id": row.id} | users.given_names(row) | {"roleId": found[0], "roles": found}


def roles_of(tx: Tx, project: str, user: int) -> list[int]:
    """Return the numbers of a user's roles in a project, the owner's first."""
    mine = project_roles.c.project == project, project_roles.c.user_id == user
    return sorted(NUMBERS[name] for name in tx.db.execute(select(project_roles.c.role).where(*mine)).scalars())


def add(tx: Tx, project: str, roles: Sequence[int], numbers: Sequence[int], groups: Sequence[Any] | None = None) -> None:
    """Give roles to users, who keep their other roles. Raises CallerError (400, also for groups; 403, 404)."""
    if groups:
        raise bad_data("This server has no groups: give the roles to users")
    _check(tx, project, roles)
    named = list(dict.fromkeys(numbers))
    for number in named:
        users.get(tx, number)
    before = {"users": held_roles(tx, project, named)}
    for number in named:
        _write(tx, project, number, sorted({*roles, *roles_of(tx, project, number)}))
    given = [{"roleId": role, "groupIds": [], "userIds": list(numbers)} for role in roles]
    data = {"roles": given, "users": held_roles(tx, project, named)}
    tx.record_event("project-access-added", project=project, before=before, data=data)


def held_roles(tx: Tx, project: str, numbers: Sequence[int]) -> list[Json]:
    """Return the roles of users in a project, as events hold them."""
    return [{"userId": number, "roles": roles_of(tx, project, number)} for number in numbers]


def give_role(tx: Tx, user: int, name: str, project: str, role: str) -> None:
    """Give a user, who has the name in a seed, a stored role in a project, and record that if the role is new."""
    if NUMBERS[role] not in roles_of(tx, project, user):
        tx.db.execute(insert(project_roles).values(user_id=user, project=project, role=role))
        data = {"userId": user, "name": name, "project": project, "role": role}
        tx.record_event("project-user-added", project=project, data=data)


def replace(tx: Tx, project: str, user: int, roles: Sequence[int]) -> None:
    """Set the roles of a user; none takes them all away. Raises CallerError (400, 403, 404)."""
    users.get(tx, user)
    held, wanted = roles_of(tx, project, user), sorted(set(roles))
    _check(tx, project, sorted(set(held) ^ set(wanted)))
    if wanted == held:
        return
    _write(tx, project, user, wanted)
    before, data = {"roles": held, "userId": user}, {"roles": wanted, "userId": user}
    tx.record_event("project-access-user-roles-updated", project=project, before=before, data=data)


def remove(tx: Tx, project: str, user: int) -> None:
    """Take all roles of a user away. Raises CallerError (403, 404)."""
    users.get(tx, user)
    held = roles_of(tx, project, user)
    _check(tx, project, held)
    _write(tx, project, user, [])
    tx.record_event("project-access-user-roles-deleted", project=project, before={"roles": held, "userId": user})


def _check(tx: Tx, project: str, roles: Sequence[int]) -> None:
    """Raise CallerError: 404 without the project, 400 for an unknown role, 403 for a role that the actor cannot give."""
    projects.find(tx, project)
    unknown = next((role for role in roles if role not in NAMES), None)
    if unknown is not None:
        raise bad_data(UNKNOWN_ROLE.format(unknown))
    if tx.actor is None or tx.actor.root_role == "admin":
        return
    own = tx.actor.project_roles.get(project, ())
    if OWNER not in own and any(NAMES[role] not in own for role in roles):
        raise CallerError("InvalidOperationError", "You can give and take only the roles that you have in the project yourself")


def _write(tx: Tx, project: str, user: int, roles: Sequence[int]) -> None:
    tx.db.execute(delete(project_roles).where(project_roles.c.project == project, project_roles.c.user_id == user))
    rows = [{"project": project, "user_id": user, "role": NAMES[role]} for role in roles]
    if rows:
        tx.db.execute(insert(project_roles), rows)
