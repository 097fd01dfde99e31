"""The personal tokens of a user, and what the real server's `/api/admin/user` tells of one (import validation 1, step 3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Row, delete, func, insert, select

from flagsvc.server.store.access import hash_of
from flagsvc.server.store.actors import ALL, Actor
from flagsvc.server.store.moments import read, shown
from flagsvc.server.store.refusals import Refusal, bad_data, not_found
from flagsvc.server.store.schema import tokens, users
from flagsvc.server.store.secrets import hint_of, new_personal_secret
from flagsvc.server.store.store import Tx
from flagsvc.server.store.texts import length

MOST = 10
LONGEST = 255
"""UTF-16 code units of a description; ours, the real server takes any."""
PERSONAL = "personal"


def list_tokens(tx: Tx, actor: Actor) -> list[dict[str, Any]]:
    """Return the user's tokens without their secrets. Raises Refusal (403) for who is no user."""
    _check_user(actor)
    mine = (tokens.c.kind == PERSONAL, tokens.c.user_id == actor.id)
    return [_listed(row) for row in tx.db.execute(select(tokens).where(*mine).order_by(tokens.c.id))]


def create(tx: Tx, actor: Actor, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Make a token of the user and return it with its secret, this one time.

    Raises Refusal: 400 without a description, for one too long and for an end that is past, 403 for a token too many,
    409 for a description twice.
    """
    _check_user(actor)
    expires = read(wanted["expiresAt"], tx.now)
    if not wanted["description"]:
        raise bad_data("PAT description cannot be empty.")
    if length(wanted["description"]) > LONGEST:
        raise bad_data(f"PAT description cannot be longer than {LONGEST} characters.")
    if expires < tx.now:
        raise bad_data("The expiry date should be in future.")
    _check_others(tx, actor, wanted["description"])
    secret = new_personal_secret()
    row = {"hash": hash_of(secret), "hint": hint_of(secret), "kind": PERSONAL, "name": wanted["description"]}
    row |= {"projects": [ALL], "user_id": actor.id, "created_at": tx.now, "expires_at": expires}
    made = tx.db.execute(insert(tokens).values(row).returning(tokens)).one()
    tx.event("pat-created", data=_listed(made))
    return _listed(made) | {"secret": secret}


def remove(tx: Tx, actor: Actor, number: int) -> None:
    """Delete a token of the user. Raises Refusal (404) where the user has none of that number."""
    _check_user(actor)
    mine = (tokens.c.kind == PERSONAL, tokens.c.user_id == actor.id, tokens.c.id == number)
    row = tx.db.execute(select(tokens).where(*mine)).first()
    if row is None:
        raise not_found("No PAT found.")
    tx.db.execute(delete(tokens).where(tokens.c.id == number))
    tx.event("pat-deleted", data=_listed(row))


def describe(tx: Tx, actor: Actor) -> dict[str, Any]:
    """Return who asks, and what they may do."""
    grants = sorted(actor.grants, key=lambda grant: (grant.permission, grant.project or "", grant.environment or ""))
    permissions = [_without_nothing(grant._asdict()) for grant in grants]
    return {"user": _described(tx, actor), "permissions": permissions, "feedback": [], "splash": {}}


def _described(tx: Tx, actor: Actor) -> dict[str, Any]:
    row = tx.db.execute(select(users).where(users.c.id == actor.id)).first() if actor.is_user else None
    if row is None:
        scope = {"environment": ALL, "type": "admin", "projects": [ALL], "internalAdminTokenUserId": actor.id}
        return {"username": actor.name, "permissions": ["ADMIN"], **scope}
    known = {"accountType": "User", "id": row.id, "name": row.name, "username": row.username, "email": row.email}
    times = {"seenAt": shown(row.seen_at), "createdAt": shown(row.created_at)}
    return _without_nothing(known) | {"loginAttempts": 0} | times


def _without_nothing(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _check_user(actor: Actor) -> None:
    if not actor.is_user:
        raise Refusal("ForbiddenError", "PATs require an authenticated user.", status=403)


def _check_others(tx: Tx, actor: Actor, description: str) -> None:
    """Raise Refusal where the user has enough tokens, or one of that description."""
    mine = (tokens.c.kind == PERSONAL, tokens.c.user_id == actor.id)
    if tx.db.execute(select(func.count()).select_from(tokens).where(*mine)).scalar_one() >= MOST:
        raise Refusal("OperationDeniedError", f"Too many PATs ({MOST}) already exist for this user.")
    if tx.db.execute(select(tokens.c.id).where(*mine, tokens.c.name == description)).first():
        raise Refusal("NameExistsError", "PAT description already exists.")


def _listed(row: Row[Any]) -> dict[str, Any]:
    times = {"createdAt": shown(row.created_at), "seenAt": shown(row.seen_at)}
    return {"id": row.id, "description": row.name, "expiresAt": shown(row.expires_at), "userId": row.user_id} | times
