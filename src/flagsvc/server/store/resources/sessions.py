"""Who is signed in at the pages: sessions, and the links that open one (decision 0053).

A session and a link are rows of the tokens: their secrets are stored hashed, the keyring knows them, and they end with their user.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from secrets import token_urlsafe
from typing import Any

from sqlalchemy import Row, delete, insert, select

from flagsvc.server.store.actors import ALL
from flagsvc.server.store.keyring import LINK, PERSONAL, SESSION, hash_secret
from flagsvc.server.store.schema import tokens
from flagsvc.server.store.store import Tx

RANDOM_BYTES = 32
SESSION_TIME = timedelta(days=7)
LINK_TIME = timedelta(minutes=15)
FOREVER = datetime.max.replace(tzinfo=UTC)
MAX_SESSIONS = 20
"""The most sessions of a user. A further one ends the oldest."""


def can_sign_in(tx: Tx, secret: str) -> bool:
    """Return whether a secret is that of a personal token or a link that has not expired. It changes nothing."""
    return _find(tx, secret) is not None


def _find(tx: Tx, secret: str) -> Row[Any] | None:
    query = select(tokens).where(tokens.c.hash == hash_secret(secret), tokens.c.kind.in_((PERSONAL, LINK)))
    row = tx.db.execute(query).first()
    return None if row is None or (row.expires_at is not None and row.expires_at <= tx.now) else row


def sign_in(tx: Tx, secret: str) -> str | None:
    """Return the secret of a new session for a personal token or a link; None if that is unknown or has expired.

    A link is used up by this. The session ends with the token that opened it.
    """
    row = _find(tx, secret)
    if row is None:
        return None
    if row.kind == LINK:
        tx.db.execute(delete(tokens).where(tokens.c.id == row.id))
        return _open_session(tx, row.user_id, LINK, tx.now + SESSION_TIME)
    return _open_session(tx, row.user_id, opened_by(row.id), min(tx.now + SESSION_TIME, row.expires_at or FOREVER))


def opened_by(token: int) -> str:
    """Return the name of the sessions that a personal token has opened."""
    return f"token {token}"


def close_sessions_of_token(tx: Tx, token: int) -> None:
    """End the sessions that a personal token has opened."""
    tx.db.execute(delete(tokens).where(tokens.c.kind == SESSION, tokens.c.name == opened_by(token)))


def _open_session(tx: Tx, user: int, name: str, expires: datetime) -> str:
    """Return the secret of a new session of a user. The oldest ones over MAX_SESSIONS end."""
    mine = tokens.c.kind == SESSION, tokens.c.user_id == user
    newest = select(tokens.c.id).where(*mine).order_by(tokens.c.id.desc()).limit(MAX_SESSIONS - 1)
    kept = list(tx.db.execute(newest).scalars())
    tx.db.execute(delete(tokens).where(*mine, (tokens.c.id.not_in(kept)) | (tokens.c.expires_at <= tx.now)))
    return _insert(tx, SESSION, user, name, expires)


def close_session(tx: Tx, secret: str) -> None:
    """End a session."""
    tx.db.execute(delete(tokens).where(tokens.c.kind == SESSION, tokens.c.hash == hash_secret(secret)))


def create_link(tx: Tx, user: int) -> str:
    """Return the secret of a link that signs a user in once, within LINK_TIME. Links before it are void."""
    tx.db.execute(delete(tokens).where(tokens.c.kind == LINK, tokens.c.user_id == user))
    return _insert(tx, LINK, user, LINK, tx.now + LINK_TIME)


def _insert(tx: Tx, kind: str, user: int, name: str, expires: datetime) -> str:
    secret = token_urlsafe(RANDOM_BYTES)
    row = {"hash": hash_secret(secret), "hint": "", "kind": kind, "name": name, "projects": [ALL], "user_id": user}
    tx.db.execute(insert(tokens).values(row | {"created_at": tx.now, "seen_at": tx.now, "expires_at": expires}))
    return secret
