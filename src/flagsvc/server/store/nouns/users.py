"""The users of a server: listed and made, as on the real server's `/api/admin/user-admin`, but without passwords.

A user enters with a personal token. The first one comes from a seed; a mail is never sent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Row, func, insert, or_, select

from flagsvc.server.store.checks import Json, invalid, told
from flagsvc.server.store.moments import shown
from flagsvc.server.store.nouns.people import NO_PICTURE
from flagsvc.server.store.refusals import bad_data
from flagsvc.server.store.schema import users
from flagsvc.server.store.store import Tx
from flagsvc.server.store.texts import text_problem

LONGEST = 255
"""UTF-16 code units of a name and of a mail address."""
ADDRESS = re.compile(r"[^\s@]+@[^\s@.]+(\.[^\s@.]+)*")
"""What is taken for a mail address; ours takes any domain, the real server those of a list."""
NO_PASSWORDS = "This server has no passwords: leave `password` out, and give the user a personal token by a seed"
NO_INVITATION = ""
CALLED: ColumnElement[str] = func.coalesce(users.c.username, users.c.email)
"""What a seed names a user by."""

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
NUMBERS: dict[str, int] = {role["name"].lower(): role["id"] for role in ROLES}
"""Root role as it is stored → its number."""


def list_users(tx: Tx) -> Json:
    """Return every user in the order of creation, and the root roles."""
    rows = tx.db.execute(select(users).order_by(users.c.id))
    return {"users": [_shown(row) for row in rows], "rootRoles": list(ROLES)}


def _shown(row: Row[Any]) -> Json:
    """Return a user as the wire shows one: without a name that the user does not have."""
    names = {key: text for key, text in _names(row).items() if text}
    times = {"seenAt": shown(row.seen_at), "loginAttempts": 0, "createdAt": shown(row.created_at)}
    unknown = dict.fromkeys(("scimId", "companyRole", "productUpdatesEmailConsent"))
    role = {"rootRole": NUMBERS[row.root_role], "inviteLink": NO_INVITATION}
    return {"accountType": "User", "id": row.id, **names, "imageUrl": NO_PICTURE, **times, **unknown, **role}


def _names(row: Row[Any]) -> Json:
    return {"name": row.name, "username": row.username, "email": row.email}


def create(tx: Tx, wanted: Mapping[str, Any]) -> Json:
    """Make a user of username or email, perhaps a name, and a root role, and return it. Raises Refusal (400)."""
    names = _checked_names(wanted)
    _check_free(tx, names)
    role = _role(wanted["rootRole"])
    if wanted.get("password"):
        raise bad_data(NO_PASSWORDS)
    row = {**names, "root_role": role["name"].lower(), "created_at": tx.now}
    made = _shown(tx.db.execute(insert(users).values(row).returning(users)).one())
    tx.event("user-created", data={key: made[key] for key in ("id", *names, "rootRole") if key in made})
    given = wanted["rootRole"]
    echoed = given if given == role["name"] else role["id"]
    return made | {"rootRole": echoed, "seatType": None, "emailSent": False}


def _checked_names(wanted: Mapping[str, Any]) -> dict[str, str | None]:
    """Return how a new user is called, the mail address in lower case. Raises Refusal."""
    if not wanted.get("username") and not wanted.get("email"):
        raise bad_data("You must specify username or email")
    if wanted.get("name") == "":
        raise invalid(told('"value" is not allowed to be empty'))
    names = {key: wanted.get(key) or None for key in ("name", "username", "email")}
    if names["email"] and not ADDRESS.fullmatch(names["email"]):
        raise invalid(told('"value" must be a valid email', names["email"]))
    problems = [text_problem(text, key, longest=LONGEST) for key, text in names.items() if text]
    if found := next(filter(None, problems), None):
        raise invalid(found)
    return names | {"email": names["email"] and names["email"].lower()}


def _check_free(tx: Tx, names: Mapping[str, str | None]) -> None:
    """Raise Refusal for a user name or a mail address that a user has."""
    columns = {"username": users.c.username, "email": func.lower(users.c.email)}
    same = [column == names[key] for key, column in columns.items() if names[key]]
    if tx.db.execute(select(users.c.id).where(or_(*same))).first():
        raise bad_data("User already exists")


def _role(given: str | int) -> Json:
    """Return a root role by its number, which may be a text, or its name. Raises Refusal."""
    found = next((role for role in ROLES if str(given) in (str(role["id"]), role["name"])), None)
    if found is None:
        raise bad_data(f"Could not find rootRole={given}")
    return found
