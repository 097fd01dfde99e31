"""The first start of a flag server: it creates a user's token, because an admin token may not import."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import Row, func, select

from flagsvc.server.store.keyring import IS_TOKEN, PERSONAL, new_personal_secret
from flagsvc.server.store.resources.personal_tokens import add
from flagsvc.server.store.resources.sessions import create_link
from flagsvc.server.store.resources.users import ROLE_NUMBERS, WRITER, find
from flagsvc.server.store.schema import tokens, users
from flagsvc.server.store.store import Store, Tx

ADMINISTRATOR = "admin"
FIRST_TOKEN = "made at the first start"  # noqa: S105  (a name, no secret)


class FirstSecrets(NamedTuple):
    """The secrets of a first start: of the administrator's token, and of the link that signs in at the pages. `user` has both."""

    token: str
    link: str
    user: str


def create_first_token(store: Store) -> FirstSecrets | None:
    """Create a token and a sign-in link of an administrator where no token exists, and return their secrets; else return None.

    The secrets cannot be read again. The administrator is created too, unless there is one. Of several servers that start at the
    same time, only one creates the token.
    """
    with store.reading() as tx:
        if _has_tokens(tx):
            return None
    with store.writing(None, "start") as tx:
        return None if _has_tokens(tx) else _first_token(tx)


def _has_tokens(tx: Tx) -> bool:
    return bool(tx.db.execute(select(func.count()).select_from(tokens).where(IS_TOKEN)).scalar_one())


def is_first_token(tx: Tx) -> bool:
    """Return whether the only token of a database is that of a first start."""
    return tx.db.execute(select(tokens.c.kind, tokens.c.name).where(IS_TOKEN)).first() == (PERSONAL, FIRST_TOKEN)


def _first_token(tx: Tx) -> FirstSecrets:
    secret = new_personal_secret()
    administrator = _administrator(tx)
    add(tx, administrator.id, secret, FIRST_TOKEN)
    name = administrator.username or administrator.email or str(administrator.id)
    return FirstSecrets(secret, create_link(tx, administrator.id), name)


def _administrator(tx: Tx) -> Row[Any]:
    """Return an administrator; create one where there is none."""
    found = tx.db.execute(select(users).where(users.c.root_role == "admin").order_by(users.c.id)).first()
    if found is not None:
        return found
    taken = set(tx.db.execute(select(users.c.username)).scalars())
    names = (ADMINISTRATOR, *(f"{ADMINISTRATOR}-{number}" for number in range(2, len(taken) + 3)))
    name = next(each for each in names if each not in taken)
    made = WRITER.put(tx, {"username": name, "name": name, "rootRole": ROLE_NUMBERS["admin"]})[0]
    return find(tx, made["id"])
