"""API tokens: list, create, change expiry, delete; as on the real server's `/api/admin/api-tokens`.

Only `create` returns the secret. Later answers contain the masked secret (decision 0025), which also identifies the token in
requests.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, delete, insert, select, update

from flagsvc.server.store.actors import Actor
from flagsvc.server.store.checks import Json, raise_problems
from flagsvc.server.store.errors import Detail, bad_data, not_found
from flagsvc.server.store.keyring import IS_TOKEN, OF_USERS, PERSONAL, hash_secret, make_hint, new_secret
from flagsvc.server.store.resources import personal_tokens
from flagsvc.server.store.resources.projects import find as find_project
from flagsvc.server.store.resources.users import SEED_NAME
from flagsvc.server.store.schema import environments, projects, tokens, users
from flagsvc.server.store.store import Tx
from flagsvc.server.store.texts import text_problem
from flagsvc.server.store.timestamps import format_time, parse_time

ALL = "*"
MAX_NAME_LENGTH = 255
"""UTF-16 code units; ours, the real server accepts any length."""
DEFAULT_ENVIRONMENT = "development"
MASK = "***"
MASKED = re.compile(r"\*\*\*([0-9]{1,18})$", re.ASCII)
READ_PERMISSIONS = {
    "admin": "ADMIN",
    "backend": "READ_CLIENT_API_TOKEN",
    "client": "READ_CLIENT_API_TOKEN",
    "frontend": "READ_FRONTEND_API_TOKEN",
}
"""Type of a token → the permission to read it."""
TITLES = {"backend": "Client", "client": "Client", "frontend": "Frontend"}


def list_tokens(tx: Tx, actor: Actor, name: str | None = None) -> list[dict[str, Any]]:
    """Return the tokens that an actor may read, all or those with a name, in order of creation."""
    kinds = [kind for kind, permission in READ_PERMISSIONS.items() if actor.may(permission)]
    query = select(tokens).where(tokens.c.kind.in_(kinds)).order_by(tokens.c.id)
    rows = tx.db.execute(query if name is None else query.where(tokens.c.name == name))
    return [_to_json(row) for row in rows]


def list_for_project(tx: Tx, project: str) -> list[dict[str, Any]]:
    """Return the backend and frontend tokens that name a project, in order of creation. Raises CallerError (404)."""
    find_project(tx, project)
    return [_to_json(row) for row in _rows_of_project(tx, project)]


def _rows_of_project(tx: Tx, project: str) -> list[Row[Any]]:
    of_clients = tokens.c.kind.not_in(("admin", *OF_USERS))
    rows = tx.db.execute(select(tokens).where(of_clients).order_by(tokens.c.id)).all()
    return [row for row in rows if project in row.projects]


def create(tx: Tx, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Create a token and return it with its secret, which no other function returns.

    `wanted` has tokenName and type, and may have environment, projects and expiresAt. Raises CallerError (400).
    """
    _check(tx, wanted)
    kind = str(wanted["type"]).lower()
    environment, named = _requested_scope(wanted)
    secret = new_secret(named, environment)
    row = {"hash": hash_secret(secret), "hint": make_hint(secret), "kind": kind, "name": wanted["tokenName"]}
    row |= {"environment": environment, "projects": named, "created_at": tx.now}
    expires = wanted.get("expiresAt")
    row["expires_at"] = None if expires is None else parse_time(expires, tx.now)
    created = {"tokenName": row["name"], "environment": environment, "projects": named, "secret": secret, "type": kind}
    created |= {"alias": None, "project": ",".join(named), "createdAt": format_time(tx.now)}
    created |= {} if expires is None else {"expiresAt": format_time(row["expires_at"])}
    add(tx, row, _without_secret(created))
    return created


def add(tx: Tx, row: Mapping[str, Any], event: Mapping[str, Any] | None = None) -> None:
    """Store a token. Its event holds the token without its secret, or is `event`."""
    stored = tx.db.execute(insert(tokens).values(row).returning(tokens)).one()
    _record(tx, "api-token-created", stored, data=event or shown(stored))


def set_expiry(tx: Tx, token: str, expires_at: str) -> None:
    """Change when a token expires. `token` is its secret or masked secret; an unknown one changes nothing."""
    row = _find(tx, token)
    if row is not None:
        change(tx, row, {"expires_at": parse_time(expires_at, tx.now)})


def remove(tx: Tx, token: str) -> None:
    """Delete a token. `token` is its secret or masked secret; an unknown one changes nothing."""
    row = _find(tx, token)
    if row is not None:
        _remove(tx, row)


def remove_of_project(tx: Tx, project: str, token: str) -> None:
    """Delete a token of a project, given by its secret or masked secret.

    Raises CallerError: 404 if the project has no such token, 400 if the token reads other projects, too.
    """
    row = _find(tx, token)
    if row is None or project not in row.projects:
        raise not_found(f"There is no such token in project {project}")
    if row.projects != [project]:
        others = ", ".join(each for each in row.projects if each != project)
        raise bad_data(f"The token reads other projects, too: {others}")
    _remove(tx, row)


def _remove(tx: Tx, row: Row[Any]) -> None:
    tx.db.execute(delete(tokens).where(tokens.c.id == row.id))
    _record(tx, "api-token-deleted", row, before=shown(row))


def remove_project(tx: Tx, project: str) -> None:
    """Take a project from all tokens; delete those that read no other one."""
    for row in _rows_of_project(tx, project):
        left = [each for each in row.projects if each != project]
        if left:
            change(tx, row, {"projects": left})
        else:
            _remove(tx, row)


def reads_project(tx: Tx, project: str) -> bool:
    """Return whether a token names a project in its scope."""
    return bool(_rows_of_project(tx, project))


def change(tx: Tx, row: Row[Any], columns: Mapping[str, Any]) -> None:
    tx.db.execute(update(tokens).where(tokens.c.id == row.id).values(columns))
    changed = tx.db.execute(select(tokens).where(tokens.c.id == row.id)).one()
    _record(tx, "api-token-updated", row, before=shown(row), data=shown(changed))


def _record(tx: Tx, kind: str, row: Row[Any], **sides: Any) -> None:
    tx.record_event(kind, project=",".join(row.projects), environment=row.environment, **sides)


def mask_secret(hint: str, number: int) -> str:
    """Return what answers contain in place of a secret: its hint and the token's id."""
    return f"{hint}{MASK}{number}"


def _find(tx: Tx, token: str) -> Row[Any] | None:
    """Return the token of a secret or of a masked secret, whose hint must match too. Personal tokens are not found."""
    found = MASKED.search(token)
    same: ColumnElement[bool] = tokens.c.hash == hash_secret(token)
    if found:
        same = same | and_(tokens.c.id == int(found[1]), tokens.c.hint == token[: found.start()])
    return tx.db.execute(select(tokens).where(same, tokens.c.kind.not_in(OF_USERS))).first()


def _to_json(row: Row[Any]) -> dict[str, Any]:
    """Return a token as lists contain it. The real server's lists say `client` for every backend token."""
    return {
        "secret": mask_secret(row.hint, row.id),
        "tokenName": row.name,
        "type": "client" if row.kind == "backend" else row.kind,
        "project": ",".join(row.projects),
        "projects": row.projects,
        "environment": row.environment or ALL,
        "expiresAt": format_time(row.expires_at),
        "createdAt": format_time(row.created_at),
        "alias": row.alias,
        "seenAt": format_time(row.seen_at),
    }


def shown(row: Row[Any]) -> dict[str, Any]:
    """Return a token as events hold it. No event brings back a secret."""
    return _without_secret(_to_json(row))


def _without_secret(token: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in token.items() if key != "secret"}


def _requested_scope(wanted: Mapping[str, Any]) -> tuple[str, list[str]]:
    named = list(dict.fromkeys(wanted.get("projects", [ALL])))
    return wanted.get("environment", DEFAULT_ENVIRONMENT), [ALL] if ALL in named else named


def _check(tx: Tx, wanted: Mapping[str, Any]) -> None:
    """Raise CallerError for an invalid token, with the first reason in the real server's order."""
    raise_problems(*_problems(wanted))
    environment, named = _requested_scope(wanted)
    if environment == ALL:
        raise bad_data(f"{TITLES[str(wanted['type']).lower()]} token cannot be scoped to all environments")
    if tx.db.execute(select(environments.c.name).where(environments.c.name == environment)).first() is None:
        raise bad_data(f"Environment={environment} does not exist")
    known = set(tx.db.execute(select(projects.c.id)).scalars()) | {ALL}
    unknown = next((name for name in named if name not in known), None)
    if unknown is not None:
        raise bad_data(f"Project={unknown or 'invalid'} does not exist")


def _problems(wanted: Mapping[str, Any]) -> Iterable[Detail | None]:
    """Yield what the body's shape accepts and the real server does not."""
    yield text_problem(wanted["tokenName"], "tokenName", longest=MAX_NAME_LENGTH)
    if wanted.get("projects") == []:
        yield {"message": '"projects" must contain at least 1 items. You provided [].'}
    if wanted.get("environment") == "":
        yield {"message": '"environment" is not allowed to be empty.'}


def list_all(tx: Tx) -> list[Json]:
    """Return every token of clients and users without its secret, in order of creation, for commands on the database."""
    query = select(tokens, SEED_NAME.label("user")).join(users, users.c.id == tokens.c.user_id, isouter=True)
    return [_to_row(tx, row) for row in tx.db.execute(query.where(IS_TOKEN).order_by(tokens.c.id))]


def _to_row(tx: Tx, row: Row[Any]) -> Json:
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
        remove(tx, mask_secret(found["beginsWith"], number))
    return found
