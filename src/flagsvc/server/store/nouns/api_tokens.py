"""API tokens: listed, made, given another end, deleted, as on the real server's `/api/admin/api-tokens`.

A secret is given once, by `create`. Afterwards a token shows its masked secret, which is as good as the secret
wherever a token is named (decision 0017).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, delete, insert, select, update

from flagsvc.server.store.access import hash_of
from flagsvc.server.store.actors import Actor
from flagsvc.server.store.checks import INVALID
from flagsvc.server.store.moments import read, shown
from flagsvc.server.store.refusals import Detail, Refusal, bad_data
from flagsvc.server.store.schema import environments, projects, tokens
from flagsvc.server.store.secrets import hint_of, new_secret
from flagsvc.server.store.store import Tx
from flagsvc.server.store.texts import text_problem

ALL = "*"
LONGEST_NAME = 255
"""UTF-16 code units; ours, the real server takes any."""
DEFAULT_ENVIRONMENT = "development"
MASK = "***"
MASKED = re.compile(r"\*\*\*([0-9]{1,18})$", re.ASCII)
READERS = {
    "admin": "ADMIN",
    "backend": "READ_CLIENT_API_TOKEN",
    "client": "READ_CLIENT_API_TOKEN",
    "frontend": "READ_FRONTEND_API_TOKEN",
}
"""Type of a token → the permission to see it."""
TITLES = {"backend": "Client", "client": "Client", "frontend": "Frontend"}


def list_tokens(tx: Tx, actor: Actor, name: str | None = None) -> list[dict[str, Any]]:
    """Return the tokens that an actor may see, of one name or all, in the order of creation."""
    kinds = [kind for kind, permission in READERS.items() if actor.may(permission)]
    query = select(tokens).where(tokens.c.kind.in_(kinds)).order_by(tokens.c.id)
    rows = tx.db.execute(query if name is None else query.where(tokens.c.name == name))
    return [_listed(row) for row in rows]


def create(tx: Tx, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Make a token and return it with its secret, this one time.

    `wanted` has tokenName and type, and may have environment, projects and expiresAt. Raises Refusal (400) for what cannot be.
    """
    _check(tx, wanted)
    kind = str(wanted["type"]).lower()
    environment, named = _scope(wanted)
    secret = new_secret(named, environment)
    row = {"hash": hash_of(secret), "hint": hint_of(secret), "kind": kind, "name": wanted["tokenName"]}
    row |= {"environment": environment, "projects": named, "created_at": tx.now}
    expires = wanted.get("expiresAt")
    row["expires_at"] = None if expires is None else read(expires, tx.now)
    tx.db.execute(insert(tokens).values(row))
    made = {"tokenName": row["name"], "environment": environment, "projects": named, "secret": secret, "type": kind}
    made |= {"alias": None, "project": ",".join(named), "createdAt": shown(tx.now)}
    made |= {} if expires is None else {"expiresAt": shown(row["expires_at"])}
    tx.event("api-token-created", data=_told(made), environment=environment, project=made["project"])
    return made


def set_expiry(tx: Tx, token: str, expires_at: str) -> None:
    """Change when a token ends. `token` is its secret or its masked secret; of one that nobody knows nothing happens."""
    row = _find(tx, token)
    if row is None:
        return
    tx.db.execute(update(tokens).where(tokens.c.id == row.id).values(expires_at=read(expires_at, tx.now)))
    changed = tx.db.execute(select(tokens).where(tokens.c.id == row.id)).one()
    tx.event("api-token-updated", data=_told(_listed(changed)), environment=row.environment)


def remove(tx: Tx, token: str) -> None:
    """Delete a token. `token` is its secret or its masked secret; of one that nobody knows nothing happens."""
    row = _find(tx, token)
    if row is None:
        return
    tx.db.execute(delete(tokens).where(tokens.c.id == row.id))
    tx.event("api-token-deleted", data=_told(_listed(row)), environment=row.environment)


def masked(hint: str, number: int) -> str:
    """Return what is shown in place of a secret: its beginning, and a number that tells the token from all others."""
    return f"{hint}{MASK}{number}"


def _find(tx: Tx, token: str) -> Row[Any] | None:
    """Return the token of a secret, or of a masked secret whose beginning is right as well; personal ones are not found."""
    found = MASKED.search(token)
    same: ColumnElement[bool] = tokens.c.hash == hash_of(token)
    if found:
        same = same | and_(tokens.c.id == int(found[1]), tokens.c.hint == token[: found.start()])
    return tx.db.execute(select(tokens).where(same, tokens.c.kind != "personal")).first()


def _listed(row: Row[Any]) -> dict[str, Any]:
    """Return a token as lists show it. The real server's lists say `client` for every backend token."""
    return {
        "secret": masked(row.hint, row.id),
        "tokenName": row.name,
        "type": "client" if row.kind == "backend" else row.kind,
        "project": ",".join(row.projects),
        "projects": row.projects,
        "environment": row.environment or ALL,
        "expiresAt": shown(row.expires_at),
        "createdAt": shown(row.created_at),
        "alias": row.alias,
        "seenAt": shown(row.seen_at),
    }


def _told(token: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in token.items() if key != "secret"}


def _scope(wanted: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return the environment and the projects that a token is wanted for."""
    named = list(dict.fromkeys(wanted.get("projects", [ALL])))
    return wanted.get("environment", DEFAULT_ENVIRONMENT), [ALL] if ALL in named else named


def _check(tx: Tx, wanted: Mapping[str, Any]) -> None:
    """Raise Refusal for a token that cannot be, with the first reason of the real server's order."""
    problems = list(_problems(wanted))
    if problems:
        raise Refusal("BadDataError", INVALID, problems)
    environment, named = _scope(wanted)
    if environment == ALL:
        raise bad_data(f"{TITLES[str(wanted['type']).lower()]} token cannot be scoped to all environments")
    if tx.db.execute(select(environments.c.name).where(environments.c.name == environment)).first() is None:
        raise bad_data(f"Environment={environment} does not exist")
    known = set(tx.db.execute(select(projects.c.id)).scalars()) | {ALL}
    unknown = next((name for name in named if name not in known), None)
    if unknown is not None:
        raise bad_data(f"Project={unknown or 'invalid'} does not exist")


def _problems(wanted: Mapping[str, Any]) -> Iterable[Detail]:
    """Give what the shape of the body lets pass and the real server does not."""
    problem = text_problem(wanted["tokenName"], "tokenName", longest=LONGEST_NAME)
    if problem is not None:
        yield problem
    if wanted.get("projects") == []:
        yield {"message": '"projects" must contain at least 1 items. You provided [].'}
    if wanted.get("environment") == "":
        yield {"message": '"environment" is not allowed to be empty.'}
