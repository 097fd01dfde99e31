"""All tokens of a database, of clients and of users, for commands on the database. Sessions and sign-in links are no tokens."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, select

from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import not_found
from flagsvc.server.store.keyring import IS_TOKEN, PERSONAL
from flagsvc.server.store.resources import api_tokens, personal_tokens
from flagsvc.server.store.resources.users import SEED_NAME
from flagsvc.server.store.schema import tokens, users
from flagsvc.server.store.store import Tx
from flagsvc.server.store.timestamps import format_time


def list_all(tx: Tx) -> list[Json]:
    """Return every token without its secret, in order of creation."""
    query = select(tokens, SEED_NAME.label("user")).join(users, users.c.id == tokens.c.user_id, isouter=True)
    return [_to_json(tx, row) for row in tx.db.execute(query.where(IS_TOKEN).order_by(tokens.c.id))]


def _to_json(tx: Tx, row: Row[Any]) -> Json:
    return {
        "id": row.id,
        "type": row.kind,
        "name": row.name,
        "user": row.user,
        "environment": row.environment,
        "projects": row.projects,
        "beginsWith": row.hint,
        "createdAt": format_time(row.created_at),
        "expiresAt": format_time(row.expires_at),
        "expired": row.expires_at is not None and row.expires_at <= tx.now,
        "seenAt": format_time(row.seen_at),
    }


def revoke(tx: Tx, number: int) -> Json:
    """Delete a token, and the sessions that it opened; return what it was. Raises CallerError (404)."""
    found = next((each for each in list_all(tx) if each["id"] == number), None)
    if found is None:
        raise not_found(f"There is no token {number}")
    if found["type"] == PERSONAL:
        owner = tx.db.execute(select(tokens.c.user_id).where(tokens.c.id == number)).scalar_one()
        personal_tokens.remove(tx, owner, number)
    else:
        api_tokens.remove(tx, api_tokens.mask_secret(found["beginsWith"], number))
    return found
