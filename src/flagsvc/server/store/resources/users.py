"""Lists, creates, changes and deletes users, as on the real server's `/api/admin/user-admin`, but without passwords.

Users authenticate with personal tokens; an administrator or a seed creates the first one. The server never sends mail.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Row, func, or_, select, true

from flagsvc.server.store.checks import Json, invalid, make_detail, raise_problems
from flagsvc.server.store.errors import CallerError, bad_data, not_found
from flagsvc.server.store.schema import events, project_roles, users
from flagsvc.server.store.store import Tx
from flagsvc.server.store.texts import text_problem
from flagsvc.server.store.timestamps import format_time
from flagsvc.server.store.upsert import count_rows, rows_in
from flagsvc.server.store.writer import Writer
from flagsvc.settings.kinds import printable

MAX_LENGTH = 255
"""UTF-16 code units of a name and of an email address."""
EMAIL = re.compile(r"[^\s@]+@[^\s@.]+(\.[^\s@.]+)*")
"""The form of an email address. Ours accepts any domain, the real server those of a list."""
NO_PASSWORDS = "This server has no passwords: leave `password` out, and create a personal token for the user"
NO_INVITATION = ""
NO_USER = "No user found"
ADMINISTRATOR = "admin"
LAST_ADMINISTRATOR = "This is the only administrator. Make another user an administrator first"
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


def list_with_roles(tx: Tx) -> list[Json]:
    """Return every user with the names of the roles, in order of creation."""
    roles: dict[int, list[Json]] = {}
    query = select(project_roles).order_by(project_roles.c.project, project_roles.c.role)
    for row in tx.db.execute(query):
        roles.setdefault(row.user_id, []).append({"project": row.project, "role": row.role})
    return [
        {"id": row.id, "user": row.username or row.email, "role": row.root_role, "projectRoles": roles.get(row.id, [])}
        | {"name": row.name, "email": row.email}
        | {"createdAt": format_time(row.created_at), "seenAt": format_time(row.seen_at)}
        for row in tx.db.execute(select(users).order_by(users.c.id))
    ]


def get(tx: Tx, number: int) -> Json:
    """Return a user. Raises CallerError (404)."""
    found = _to_json(find(tx, number))
    return {key: each for key, each in found.items() if key != "inviteLink"} | {"seatType": None}


def find(tx: Tx, number: int) -> Row[Any]:
    """Return the row of a user. Raises CallerError (404)."""
    row = tx.db.execute(select(users).where(users.c.id == number)).first()
    if row is None:
        raise not_found(NO_USER)
    return row


def find_by_name(tx: Tx, name: str) -> Row[Any]:
    """Return the user with a username, an email address or, if no user has that name, an id. Raises CallerError (404)."""
    number = int(name) if name.isascii() and name.isdecimal() and len(name) < 10 else None
    same = or_(users.c.username == name, func.lower(users.c.email) == name.lower(), users.c.id == number)
    found = tx.db.execute(select(users).where(same).order_by(users.c.username.is_distinct_from(name), users.c.id)).first()
    if found is None:
        raise not_found(f"There is no user `{printable(name)}`")
    return found


def list_names(tx: Tx) -> list[Json]:
    """Return the names of every user, in order of creation, for those who give roles in a project."""
    rows = tx.db.execute(select(users).order_by(users.c.id))
    return [{"id": row.id, "accountType": "User"} | given_names(row) for row in rows]


def count_administrators(tx: Tx) -> int:
    return count_rows(tx, users, users.c.root_role == ADMINISTRATOR)


def _to_json(row: Row[Any]) -> Json:
    """Return a user as the API answers it, without unset names."""
    times = {"seenAt": format_time(row.seen_at), "loginAttempts": 0, "createdAt": format_time(row.created_at)}
    unknown = dict.fromkeys(("scimId", "companyRole", "productUpdatesEmailConsent"))
    role = {"rootRole": ROLE_NUMBERS[row.root_role], "inviteLink": NO_INVITATION}
    return {"accountType": "User", "id": row.id, **given_names(row), "imageUrl": NO_PICTURE, **times, **unknown, **role}


def shown(row: Row[Any]) -> Json:
    """Return a user as events hold it."""
    return {"id": row.id, **given_names(row), "rootRole": ROLE_NUMBERS[row.root_role]}


def given_names(row: Row[Any]) -> Json:
    """Return the names of a user that are set."""
    return {key: text for key in ("name", "username", "email") if (text := getattr(row, key))}


def create(tx: Tx, wanted: Mapping[str, Any]) -> Json:
    """Create a user and return it. Raises CallerError (400).

    `wanted` has rootRole and a username or an email, and may have a name.
    """
    names = _checked_names(wanted)
    _check_names_free(tx, names)
    role = _find_role(wanted["rootRole"])
    if wanted.get("password"):
        raise bad_data(NO_PASSWORDS)
    created = WRITER.put(tx, names | {"rootRole": role["id"]})[0]
    stored = _to_json(find(tx, created["id"]))
    return stored | {"rootRole": _as_sent(wanted["rootRole"]), "seatType": None, "emailSent": False}


def change(tx: Tx, number: int, wanted: Mapping[str, Any]) -> Json:
    """Change what is present and not empty of a user's name, email and root role, and return the user, with the role as sent.

    Raises CallerError: 400, 403 for the last administrator's role, 404.
    """
    row = find(tx, number)
    texts = _checked_texts({key: wanted.get(key) for key in ("name", "email")})
    changed: dict[str, Any] = {key: text for key, text in texts.items() if text}
    if "email" in changed:
        _check_names_free(tx, {"username": None, "email": changed["email"]}, number)
    role = _as_sent(wanted.get("rootRole", 0))
    if role:
        wanted_role = _find_role(role)
        changed["rootRole"] = wanted_role["id"]
        _keep_an_administrator(tx, row, wanted_role["name"].lower())
    WRITER.put(tx, {"id": number} | changed)
    return {key: each for key, each in get(tx, number).items() if key != "rootRole"} | (
        {"rootRole": role} if "rootRole" in wanted else {}
    )


def remove(tx: Tx, number: int) -> None:
    """Delete a user with all personal tokens. Raises CallerError: 403 for the last administrator, 404."""
    row = find(tx, number)
    _keep_an_administrator(tx, row, None)
    WRITER.remove(tx, number)


def _keep_an_administrator(tx: Tx, row: Row[Any], role: str | None) -> None:
    """Raise CallerError (403) if a new role, or none, of a user would leave the server without an administrator."""
    if row.root_role == ADMINISTRATOR != role and count_administrators(tx) == 1:
        raise CallerError("InvalidOperationError", LAST_ADMINISTRATOR)


def _as_sent(role: str | int) -> str | int:
    """Return a root role as answers repeat it: a number in a text becomes one."""
    return int(role) if str(role).isdecimal() else role


def _checked_texts(wanted: Mapping[str, Any]) -> dict[str, str | None]:
    """Return name, username and email, None if absent or empty, with the email address in lower case. Raises CallerError."""
    names = {key: wanted.get(key) or None for key in ("name", "username", "email")}
    if names["email"] and not EMAIL.fullmatch(names["email"]):
        raise invalid(make_detail('"value" must be a valid email', names["email"]))
    problems = [text_problem(text, key, longest=MAX_LENGTH) for key, text in names.items() if text]
    raise_problems(next(filter(None, problems), None))
    return names | {"email": names["email"] and names["email"].lower()}


def _checked_names(wanted: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the names of a new user, with the email address in lower case. Raises CallerError."""
    if not wanted.get("username") and not wanted.get("email"):
        raise bad_data("You must specify username or email")
    if wanted.get("name") == "":
        raise invalid(make_detail('"value" is not allowed to be empty'))
    return _checked_texts(wanted)


def _check_names_free(tx: Tx, names: Mapping[str, str | None], number: int | None = None) -> None:
    """Raise CallerError for a username or an email address that another user than `number` has."""
    columns = {"username": users.c.username, "email": func.lower(users.c.email)}
    same = [column == names[key] for key, column in columns.items() if names[key]]
    others = users.c.id != number if number is not None else true()
    if tx.db.execute(select(users.c.id).where(or_(*same), others)).first():
        raise bad_data("User already exists")


def _find_role(given: str | int) -> Json:
    """Return a root role by its number, as integer or text, or by its name. Raises CallerError."""
    found = next((role for role in ROLES if str(given) in (str(role["id"]), role["name"])), None)
    if found is None:
        raise bad_data(f"Could not find rootRole={given}")
    return found


NO_PICTURE = ""
"""The real server answers the URL of a picture on another host; ours never refers to other hosts."""


def person_to_json(number: int, name: str | None) -> dict[str, Any]:
    """Return a user as the API answers it."""
    return {"id": number, "name": name or "unknown", "imageUrl": NO_PICTURE}


def names_of(tx: Tx, numbers: Iterable[int]) -> dict[int, str]:
    rows = rows_in(tx, select(users.c.id, users.c.name, users.c.username, users.c.email), users.c.id, numbers)
    return {row.id: row.name or row.username or row.email or "unknown" for row in rows}


def list_collaborators(tx: Tx, feature: str) -> list[dict[str, Any]]:
    """Return the users who changed a feature, the most recent first."""
    latest = func.max(events.c.id)
    query = (
        select(events.c.created_by_id, func.max(events.c.created_by))
        .where(events.c.feature == feature, events.c.created_by_id.is_not(None))
        .group_by(events.c.created_by_id)
        .order_by(latest.desc())
    )
    rows = [(number, name) for number, name in tx.db.execute(query)]
    known = names_of(tx, (number for number, _ in rows))
    return [person_to_json(number, known.get(number, name)) for number, name in rows]


ROLE_NAMES = {number: name for name, number in ROLE_NUMBERS.items()}
"""Number of a root role → the stored role."""
WRITER = Writer(
    table=users,
    show=lambda tx, rows: [shown(row) for row in rows],
    columns=lambda tx, whole: (
        {key: whole.get(key) for key in ("name", "username", "email")} | {"root_role": ROLE_NAMES[whole["rootRole"]]}
    ),
    created="user-created",
    updated="user-updated",
    deleted="user-deleted",
    unknown=NO_USER,
)
