"""The personal tokens of users, and the answer of the real server's `/api/admin/user` (import validation 1, step 3)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Row, delete, insert, select

from flagsvc.server.store.actors import ALL, Actor
from flagsvc.server.store.errors import CallerError, bad_data, not_found
from flagsvc.server.store.keyring import hash_secret, make_hint, new_personal_secret
from flagsvc.server.store.members import shown
from flagsvc.server.store.resources.sessions import close_sessions_of_token
from flagsvc.server.store.schema import tokens, users
from flagsvc.server.store.store import Tx
from flagsvc.server.store.texts import utf16_length
from flagsvc.server.store.timestamps import parse_time
from flagsvc.server.store.upsert import count_rows

MAX_TOKENS = 10
MAX_DESCRIPTION_LENGTH = 255
"""UTF-16 code units of a description; ours, the real server accepts any length."""
PERSONAL = "personal"


def user_of(actor: Actor) -> int:
    """Return the id of the user who calls. Raises CallerError (403) for an admin token."""
    if not actor.is_user:
        raise CallerError("ForbiddenError", "PATs require an authenticated user.", status=403)
    return actor.id


def list_tokens(tx: Tx, user: int) -> list[dict[str, Any]]:
    """Return the tokens of a user without their secrets."""
    mine = (tokens.c.kind == PERSONAL, tokens.c.user_id == user)
    return [to_json(row) for row in tx.db.execute(select(tokens).where(*mine).order_by(tokens.c.id))]


def create(tx: Tx, user: int, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Create a token of a user and return it with its secret, which no other function returns.

    Without `expiresAt` it does not expire. Raises CallerError: 400 for an empty or too long description and for an expiry in the
    past, 403 for too many tokens, 409 for a repeated description.
    """
    given = wanted.get("expiresAt")
    expires = None if given is None else parse_time(given, tx.now)
    if not wanted["description"]:
        raise bad_data("PAT description cannot be empty.")
    if utf16_length(wanted["description"]) > MAX_DESCRIPTION_LENGTH:
        raise bad_data(f"PAT description cannot be longer than {MAX_DESCRIPTION_LENGTH} characters.")
    if expires is not None and expires < tx.now:
        raise bad_data("The expiry date should be in future.")
    _check_others(tx, user, wanted["description"])
    secret = new_personal_secret()
    return add(tx, user, secret, wanted["description"], expires) | {"secret": secret}


def add(tx: Tx, user: int, secret: str, description: str, expires: datetime | None = None) -> dict[str, Any]:
    """Store a token of a user, and return it without its secret."""
    row: dict[str, Any] = {
        "hash": hash_secret(secret),
        "hint": make_hint(secret),
        "kind": PERSONAL,
        "name": description,
    }
    row |= {"projects": [ALL], "user_id": user, "created_at": tx.now, "expires_at": expires}
    created = to_json(tx.db.execute(insert(tokens).values(row).returning(tokens)).one())
    tx.record_event("pat-created", data=created)
    return created


def remove(tx: Tx, user: int, number: int) -> None:
    """Delete a token of a user. Raises CallerError (404) if the user does not have it."""
    mine = (tokens.c.kind == PERSONAL, tokens.c.user_id == user, tokens.c.id == number)
    row = tx.db.execute(select(tokens).where(*mine)).first()
    if row is None:
        raise not_found("No PAT found.")
    tx.db.execute(delete(tokens).where(tokens.c.id == number))
    close_sessions_of_token(tx, number)
    tx.record_event("pat-deleted", before=to_json(row))


def describe(tx: Tx, actor: Actor) -> dict[str, Any]:
    """Return the actor and the actor's permissions."""
    grants = sorted(actor.grants, key=lambda grant: (grant.permission, grant.project or "", grant.environment or ""))
    permissions = [_without_none(grant._asdict()) for grant in grants]
    return {"user": _describe_user(tx, actor), "permissions": permissions, "feedback": [], "splash": {}}


def _describe_user(tx: Tx, actor: Actor) -> dict[str, Any]:
    row = tx.db.execute(select(users).where(users.c.id == actor.id)).first() if actor.is_user else None
    if row is None:
        scope = {"environment": ALL, "type": "admin", "projects": [ALL], "internalAdminTokenUserId": actor.id}
        return {"username": actor.name, "permissions": ["ADMIN"], **scope}
    known = {"accountType": "User", "id": row.id, "name": row.name, "username": row.username, "email": row.email}
    return _without_none(known) | {"loginAttempts": 0} | shown(row, "seenAt", "createdAt")


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _check_others(tx: Tx, user: int, description: str) -> None:
    """Raise CallerError if the user has too many tokens, or one with this description."""
    mine = (tokens.c.kind == PERSONAL, tokens.c.user_id == user)
    if count_rows(tx, tokens, *mine) >= MAX_TOKENS:
        raise CallerError("OperationDeniedError", f"Too many PATs ({MAX_TOKENS}) already exist for this user.")
    if tx.db.execute(select(tokens.c.id).where(*mine, tokens.c.name == description)).first():
        raise CallerError("NameExistsError", "PAT description already exists.")


def to_json(row: Row[Any]) -> dict[str, Any]:
    """Return a token as the API answers it, without its secret."""
    names = {"id": row.id, "description": row.name}
    return names | shown(row, "expiresAt", "userId", "createdAt", "seenAt")
