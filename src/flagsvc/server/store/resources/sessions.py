"""Who is signed in at the pages: sessions, and the links that open one (decision 0053).

A session and a link are rows of the tokens: their secrets are stored hashed, the keyring knows them, and they end with their user.
"""

from __future__ import annotations

from datetime import timedelta
from secrets import token_urlsafe

from sqlalchemy import delete, insert, select

from flagsvc.server.store.actors import ALL
from flagsvc.server.store.keyring import LINK, SESSION, hash_secret
from flagsvc.server.store.schema import tokens, users
from flagsvc.server.store.store import Tx

RANDOM_BYTES = 32
SESSION_TIME = timedelta(days=7)
LINK_TIME = timedelta(minutes=15)
MAX_SESSIONS = 20
"""The most sessions of a user. A further one ends the oldest."""


def open_session(tx: Tx, user: int, way: str) -> str:
    """Return the secret of a new session of a user. `way` says how the user signed in."""
    mine = tokens.c.kind == SESSION, tokens.c.user_id == user
    newest = select(tokens.c.id).where(*mine).order_by(tokens.c.id.desc()).limit(MAX_SESSIONS - 1)
    kept = list(tx.db.execute(newest).scalars())
    tx.db.execute(delete(tokens).where(*mine, (tokens.c.id.not_in(kept)) | (tokens.c.expires_at <= tx.now)))
    return _insert(tx, SESSION, user, way, SESSION_TIME)


def close_session(tx: Tx, secret: str) -> None:
    """End a session."""
    tx.db.execute(delete(tokens).where(tokens.c.kind == SESSION, tokens.c.hash == hash_secret(secret)))


def create_link(tx: Tx, user: int) -> str:
    """Return the secret of a link that signs a user in once, within LINK_TIME. Links before it are void."""
    tx.db.execute(delete(tokens).where(tokens.c.kind == LINK, tokens.c.user_id == user))
    return _insert(tx, LINK, user, "link", LINK_TIME)


def use_link(tx: Tx, secret: str) -> str | None:
    """Use a link up, and return the secret of a session of its user; None if it is used up, too old or unknown."""
    link = (tokens.c.kind == LINK, tokens.c.hash == hash_secret(secret))
    row = tx.db.execute(select(tokens.c.user_id, tokens.c.expires_at).where(*link)).first()
    tx.db.execute(delete(tokens).where(*link))
    return None if row is None or row.expires_at <= tx.now else open_session(tx, row.user_id, "link")


def user_exists(tx: Tx, user: int) -> bool:
    """Return whether there is a user."""
    return tx.db.execute(select(users.c.id).where(users.c.id == user)).first() is not None


def _insert(tx: Tx, kind: str, user: int, name: str, lasts: timedelta) -> str:
    secret = token_urlsafe(RANDOM_BYTES)
    row = {"hash": hash_secret(secret), "hint": "", "kind": kind, "name": name, "projects": [ALL], "user_id": user}
    times = {"created_at": tx.now, "seen_at": tx.now, "expires_at": tx.now + lasts}
    tx.db.execute(insert(tokens).values(row | times))
    return secret
