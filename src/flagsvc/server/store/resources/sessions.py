"""Who is signed in at the pages: sessions, and the links that open one (decision 0032).

A session and a link are rows of the tokens: their secrets are stored hashed, the keyring knows them, and they end with their user.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from secrets import token_urlsafe
from typing import Any

from sqlalchemy import Row, delete, insert, select, update

from flagsvc.server.store.actors import ALL
from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import not_found
from flagsvc.server.store.keyring import BY_TOKEN, IDLE_S, LINK, PERSONAL, SESSION, hash_secret
from flagsvc.server.store.members import shown
from flagsvc.server.store.resources import users
from flagsvc.server.store.schema import tokens
from flagsvc.server.store.schema import users as users_table
from flagsvc.server.store.store import Tx
from flagsvc.server.store.timestamps import format_time

RANDOM_BYTES = 32
SESSION_TIME = timedelta(days=7)
LINK_TIME = timedelta(minutes=15)
FOREVER = datetime.max.replace(tzinfo=UTC)
MAX_SESSIONS = 20
"""The most sessions of a user. A further one ends the oldest."""
UNUSED_TIME = timedelta(seconds=IDLE_S) + timedelta(minutes=5)
"""A session that was not used so long has ended. The database knows the last use some minutes late."""


def can_sign_in(tx: Tx, secret: str) -> bool:
    """Return whether a secret is that of a personal token or a link that has not expired. It changes nothing."""
    return _find(tx, secret) is not None


def _find(tx: Tx, secret: str) -> Row[Any] | None:
    query = select(tokens).where(tokens.c.hash == hash_secret(secret), tokens.c.kind.in_((PERSONAL, LINK)))
    row = tx.db.execute(query).first()
    return None if row is None or (row.expires_at is not None and row.expires_at <= tx.now) else row


def sign_in(tx: Tx, secret: str) -> str | None:
    """Return the secret of a new session for a personal token or a link; None if that is unknown or has expired.

    A link is used up by this, a token is used. The session ends with the token that opened it.
    """
    row = _find(tx, secret)
    if row is None:
        return None
    if row.kind == LINK:
        tx.db.execute(delete(tokens).where(tokens.c.id == row.id))
        return open_session(tx, row.user_id, LINK)
    tx.db.execute(update(tokens).where(tokens.c.id == row.id).values(seen_at=tx.now))
    return open_session(tx, row.user_id, opened_by(row.id), row.expires_at or FOREVER)


def opened_by(token: int) -> str:
    """Return the name of the sessions that a personal token has opened."""
    return f"{BY_TOKEN} {token}"


def close_sessions_of_token(tx: Tx, token: int) -> None:
    """End the sessions that a personal token has opened."""
    tx.db.execute(delete(tokens).where(tokens.c.kind == SESSION, tokens.c.name == opened_by(token)))


def open_session(tx: Tx, user: int, name: str, expires: datetime = FOREVER) -> str:
    """Return the secret of a new session of a user, who is seen now. The oldest ones over MAX_SESSIONS end.

    `name` says what has opened it. It ends after SESSION_TIME, or when that expires.
    """
    mine = tokens.c.kind == SESSION, tokens.c.user_id == user
    newest = select(tokens.c.id).where(*mine).order_by(tokens.c.id.desc()).limit(MAX_SESSIONS - 1)
    kept = list(tx.db.execute(newest).scalars())
    tx.db.execute(delete(tokens).where(*mine, (tokens.c.id.not_in(kept)) | (tokens.c.expires_at <= tx.now)))
    tx.db.execute(update(users_table).where(users_table.c.id == user).values(seen_at=tx.now))
    return _insert(tx, SESSION, user, name, min(tx.now + SESSION_TIME, expires))


def close_session(tx: Tx, secret: str) -> None:
    tx.db.execute(delete(tokens).where(tokens.c.kind == SESSION, tokens.c.hash == hash_secret(secret)))


def list_sessions(tx: Tx, user: int, secret: str = "") -> list[Json]:
    """Return the sessions of a user that have not ended, the newest first. `secret` is that of the current one."""
    query = select(tokens).where(*_of_user(user), tokens.c.expires_at > tx.now).order_by(tokens.c.id.desc())
    opening = select(tokens.c.id, tokens.c.name).where(tokens.c.kind == PERSONAL, tokens.c.user_id == user)
    names = {opened_by(row.id): row.name for row in tx.db.execute(opening)}
    rows = tx.db.execute(query).all()
    return [_to_json(row, names, secret) for row in rows if row.seen_at > tx.now - UNUSED_TIME]


def _of_user(user: int) -> tuple[Any, ...]:
    return tokens.c.kind == SESSION, tokens.c.user_id == user


def _to_json(row: Row[Any], names: Mapping[str, str], secret: str) -> Json:
    """Return a session; `tokenName` is the name of the token that opened it, else null."""
    how = {"openedBy": way_of(row.name), "tokenName": names.get(row.name)}
    return shown(row, "id", "createdAt", "seenAt", "expiresAt") | how | {"current": row.hash == hash_secret(secret)}


def end_sessions(tx: Tx, user: int, number: int | None = None, keep: str = "") -> None:
    """End one session of a user, or all but the one of the secret `keep`. Raises CallerError (404)."""
    whose = users.shown(users.find(tx, user))
    query = select(tokens.c.id).where(*_of_user(user), tokens.c.hash != hash_secret(keep))
    found = tx.db.execute(query if number is None else query.where(tokens.c.id == number)).scalars().all()
    if number is not None and not found:
        raise not_found("No session found.")
    _end(tx, whose, found)


def end_sessions_by(tx: Tx, user: int, way: str) -> None:
    """End the sessions of a user that were opened in a way: BY_HEADER or BY_PROVIDER. Raises CallerError (404)."""
    rows = tx.db.execute(select(tokens.c.id, tokens.c.name).where(*_of_user(user))).all()
    _end(tx, users.shown(users.find(tx, user)), [row.id for row in rows if way_of(row.name) == way])


def _end(tx: Tx, whose: Json, numbers: Sequence[int]) -> None:
    """End the sessions with these numbers. `whose` is their user as events hold it."""
    tx.db.execute(delete(tokens).where(tokens.c.id.in_(numbers)))
    if numbers:
        tx.record_event("user-sessions-ended", before=whose | {"sessions": len(numbers)})


def way_of(name: str) -> str:
    """Return what has opened a session with a name: its first word."""
    return name.partition(" ")[0]


def invite(tx: Tx, user: int) -> Json:
    """Create a link for a user, and return its code and when it ends. Only this shows the code. Raises CallerError (404)."""
    whose = users.shown(users.find(tx, user))
    code = create_link(tx, user)
    tx.record_event("user-link-created", data=whose)
    return {"code": code, "expiresAt": format_time(tx.now + LINK_TIME)}


def create_link(tx: Tx, user: int) -> str:
    """Return the secret of a link that signs a user in once, within LINK_TIME. Links before it are void."""
    tx.db.execute(delete(tokens).where(tokens.c.kind == LINK, tokens.c.user_id == user))
    return _insert(tx, LINK, user, LINK, tx.now + LINK_TIME)


def _insert(tx: Tx, kind: str, user: int, name: str, expires: datetime) -> str:
    secret = token_urlsafe(RANDOM_BYTES)
    row = {"hash": hash_secret(secret), "hint": "", "kind": kind, "name": name, "projects": [ALL], "user_id": user}
    tx.db.execute(insert(tokens).values(row | {"created_at": tx.now, "seen_at": tx.now, "expires_at": expires}))
    return secret
