"""Lists and creates users, as on the real server's `/api/admin/user-admin`, but without passwords.

Users authenticate with personal tokens; a seed creates the first one. The server never sends mail.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Row, func, insert, or_, select

from flagsvc.server.store.checks import Json, invalid, make_detail
from flagsvc.server.store.errors import bad_data
from flagsvc.server.store.resources.people import NO_PICTURE
from flagsvc.server.store.schema import users
from flagsvc.server.store.store import Tx
from flagsvc.server.store.texts import text_problem
from flagsvc.server.store.timestamps import format_time

MAX_LENGTH = 255
"""UTF-16 code units of a name and of an email address."""
EMAIL = re.compile(r"[^\s@]+@[^\s@.]+(\.[^\s@.]+)*")
"""The form of an email address. Ours accepts any domain, the real server those of a list."""
NO_PASSWORDS = "This server has no passwords: leave `password` out, and give the user a personal token by a seed"
NO_INVITATION = ""
SEED_NAME: ColumnElement[str] = func.coalesce(users.c.username, users.c.email)
"""The name of a user in a seed."""

ROLES: tuple[Json, ...] = (
    {"id": 1, "type": "root", "name": "Admin", "description": "May do everything."},
    {
        "id": 2,
        "type": "root",
        "name": "Editor",
        "description": "May change flags and what they use, and no users or tokens.",
    },
    {"id": 3, "type": "root", "name": "Viewer", "description": "May read. A role in a project adds to that."},
)
"""The root roles by the numbers and names of the real server."""
ROLE_NUMBERS: dict[str, int] = {role["name"].lower(): role["id"] for role in ROLES}
"""Stored root role → its number."""


def list_users(tx: Tx) -> Json:
    """Return every user, in order of creation, and the root roles."""
    rows = tx.db.execute(select(users).order_by(users.c.id))
    return {"users": [_to_json(row) for row in rows], "rootRoles": list(ROLES)}


def _to_json(row: Row[Any]) -> Json:
    """Return a user as the API answers it, without unset names."""
    names = {key: text for key, text in _names(row).items() if text}
    times = {"seenAt": format_time(row.seen_at), "loginAttempts": 0, "createdAt": format_time(row.created_at)}
    unknown = dict.fromkeys(("scimId", "companyRole", "productUpdatesEmailConsent"))
    role = {"rootRole": ROLE_NUMBERS[row.root_role], "inviteLink": NO_INVITATION}
    return {"accountType": "User", "id": row.id, **names, "imageUrl": NO_PICTURE, **times, **unknown, **role}


def shown(row: Row[Any]) -> Json:
    """Return a user as events hold it."""
    names = {key: text for key, text in _names(row).items() if text}
    return {"id": row.id, **names, "rootRole": ROLE_NUMBERS[row.root_role]}


def _names(row: Row[Any]) -> Json:
    return {"name": row.name, "username": row.username, "email": row.email}


def create(tx: Tx, wanted: Mapping[str, Any]) -> Json:
    """Create a user and return it. Raises CallerError (400).

    `wanted` has rootRole and a username or an email, and may have a name.
    """
    names = _checked_names(wanted)
    _check_names_free(tx, names)
    role = _find_role(wanted["rootRole"])
    if wanted.get("password"):
        raise bad_data(NO_PASSWORDS)
    row = {**names, "root_role": role["name"].lower(), "created_at": tx.now}
    stored = tx.db.execute(insert(users).values(row).returning(users)).one()
    created = _to_json(stored)
    tx.record_event("user-created", data=shown(stored))
    given = wanted["rootRole"]
    echoed = given if given == role["name"] else role["id"]
    return created | {"rootRole": echoed, "seatType": None, "emailSent": False}


def _checked_names(wanted: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the names of a new user, with the email address in lower case. Raises CallerError."""
    if not wanted.get("username") and not wanted.get("email"):
        raise bad_data("You must specify username or email")
    if wanted.get("name") == "":
        raise invalid(make_detail('"value" is not allowed to be empty'))
    names = {key: wanted.get(key) or None for key in ("name", "username", "email")}
    if names["email"] and not EMAIL.fullmatch(names["email"]):
        raise invalid(make_detail('"value" must be a valid email', names["email"]))
    problems = [text_problem(text, key, longest=MAX_LENGTH) for key, text in names.items() if text]
    if found := next(filter(None, problems), None):
        raise invalid(found)
    return names | {"email": names["email"] and names["email"].lower()}


def _check_names_free(tx: Tx, names: Mapping[str, str | None]) -> None:
    """Raise CallerError for a username or an email address that is in use."""
    columns = {"username": users.c.username, "email": func.lower(users.c.email)}
    same = [column == names[key] for key, column in columns.items() if names[key]]
    if tx.db.execute(select(users.c.id).where(or_(*same))).first():
        raise bad_data("User already exists")


def _find_role(given: str | int) -> Json:
    """Return a root role by its number, as integer or text, or by its name. Raises CallerError."""
    found = next((role for role in ROLES if str(given) in (str(role["id"]), role["name"])), None)
    if found is None:
        raise bad_data(f"Could not find rootRole={given}")
    return found
