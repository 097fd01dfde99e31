"""Persons that somebody else has authenticated: which user each one is, and the roles that their groups give (decision 0061).

An identity is an issuer and a subject there. It belongs to a user until it is unlinked: a name or an address that the issuer gives
to somebody else later opens nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import timedelta
from shlex import quote
from typing import Any, NamedTuple

from sqlalchemy import Row, delete, func, insert, or_, select

from flagsvc.core.errors import FlagsvcError
from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import CallerError, not_found
from flagsvc.server.store.keyring import BY_HEADER, BY_PROVIDER
from flagsvc.server.store.resources import project_access, sessions, users
from flagsvc.server.store.resources.users import ADMINISTRATOR, EMAIL, MAX_LENGTH
from flagsvc.server.store.schema import identities, project_roles, projects, used_answers
from flagsvc.server.store.schema import users as users_table
from flagsvc.server.store.store import Tx
from flagsvc.server.store.timestamps import format_time
from flagsvc.server.store.upsert import insert_into
from flagsvc.settings.kinds import printable
from flagsvc.settings.roles import ROOT_ROLES, GroupRoles

HEADER = "header"
"""The issuer of the persons that a proxy in front names."""
ID_LENGTH = 16
LEAST = "viewer"
"""The root role of those whose groups give roles in projects only."""

NO_ROLE = "None of your groups has a role here. Ask an administrator of this server which group gives one."
UNKNOWN = "There is no user for you here. Ask an administrator of this server for one."
TAKEN = "This user is linked to another account, or this account to another user. An administrator of this server can say more."
NOT_LINKED = (
    "The user with your name or address is an administrator, and is not linked to your account. Who runs this server links them:"
    " flagsvc server user link {user} --issuer {issuer} --subject {subject}"
)


class RefusedPersonError(FlagsvcError):
    """Somebody who is authenticated may not sign in. The message is a sentence for them."""


class Person(NamedTuple):
    """Somebody who is authenticated. `email` is a verified address, or empty; `username` may name an existing user.

    `groups` is None if the person's groups are not told.
    """

    issuer: str
    subject: str
    email: str = ""
    username: str = ""
    name: str = ""
    groups: tuple[str, ...] | None = None


class GivenRoles(NamedTuple):
    """The roles that groups give: `root` is empty for none, `projects` are pairs of a project and a role there."""

    root: str
    projects: frozenset[tuple[str, str]]

    def __bool__(self) -> bool:
        """Return whether there is a role."""
        return bool(self.root or self.projects)


def roles_of_groups(groups: Iterable[str], rules: GroupRoles) -> GivenRoles:
    """Return the roles that groups give, of the root roles the strongest."""
    held = set(groups)
    given = [role for group, role in rules if group in held]
    root = next((role for role in ROOT_ROLES if role in given), "")
    pairs = (role.partition(":")[::2] for role in given if ":" in role)
    return GivenRoles(root, frozenset((project, role) for role, project in pairs))


def sign_in(tx: Tx, person: Person, rules: GroupRoles, opened_by: str) -> str:
    """Return the secret of a new session of a person, with the roles that the groups give now.

    Raises RefusedPersonError, and CallerError for odd names and conflicts; both have a sentence for the person.

    Without `rules`, and for a person without known groups, roles stay as they are, and only users sign in that exist already.
    """
    given = roles_of_groups(person.groups, rules) if rules and person.groups is not None else None
    if given is not None and not given:
        raise RefusedPersonError(NO_ROLE)
    user = find_user(tx, person)
    if user is None and given is None:
        raise RefusedPersonError(UNKNOWN)
    number = create_user(tx, person, given.root or LEAST) if user is None and given is not None else user
    assert number is not None
    if given is not None:
        set_roles(tx, number, given)
    return sessions.open_session(tx, number, opened_by)


def find_user(tx: Tx, person: Person) -> int | None:
    """Return the user of a person, and link one with the same address or name that is no administrator; None without one.

    Raises RefusedPersonError for an administrator, and CallerError (409) for a user with another account at the issuer.
    """
    own = identities.c.issuer == person.issuer, identities.c.subject == person.subject
    known = tx.db.execute(select(identities.c.user_id).where(*own)).scalar()
    if known is not None:
        return int(known)
    found = find_namesake(tx, person)
    if found is None:
        return None
    if found.root_role == ADMINISTRATOR:
        words = {"user": found.username or found.email, "issuer": person.issuer, "subject": person.subject}
        raise RefusedPersonError(NOT_LINKED.format(**{name: quote(word) for name, word in words.items()}))
    link(tx, found, person.issuer, person.subject)
    return int(found.id)


def find_namesake(tx: Tx, person: Person) -> Row[Any] | None:
    """Return the user with the verified address or the username of a person; an administrator before others.

    Only an address in ASCII counts: in lower case other letters may become those of another one's address.
    """
    same = [func.lower(users_table.c.email) == person.email.lower()] if person.email.isascii() and person.email else []
    same += [users_table.c.username == person.username] if person.username else []
    if not same:
        return None
    order = users_table.c.root_role != ADMINISTRATOR, users_table.c.id
    return tx.db.execute(select(users_table).where(or_(*same)).order_by(*order)).first()


def link(tx: Tx, user: Row[Any], issuer: str, subject: str) -> None:
    """Link a user to an account at an issuer. Raises CallerError (409) if one of both is linked there already."""
    taken = or_(identities.c.user_id == user.id, identities.c.subject == subject)
    if tx.db.execute(select(identities).where(identities.c.issuer == issuer, taken)).first():
        raise CallerError("ConflictError", TAKEN)
    row = {"issuer": issuer, "subject": subject, "user_id": user.id, "created_at": tx.now}
    tx.db.execute(insert(identities).values(row))
    tx.record_event("user-linked", data=users.shown(user) | {"issuer": issuer, "subject": subject})


def account_id(issuer: str, subject: str) -> str:
    """Return the id of an account: a part of the digest of both texts, so that it is one segment of any path."""
    return hashlib.sha256(json.dumps([issuer, subject]).encode()).hexdigest()[:ID_LENGTH]


def list_accounts(tx: Tx, user: int) -> list[Json]:
    """Return the accounts that a user is linked to, by issuer. Raises CallerError (404) for an unknown user."""
    return [
        {"id": account_id(row.issuer, row.subject), "issuer": row.issuer, "subject": row.subject}
        | {"createdAt": format_time(row.created_at)}
        for row in _read_accounts(tx, users.find(tx, user))
    ]


def _read_accounts(tx: Tx, user: Row[Any]) -> list[Row[Any]]:
    query = select(identities).where(identities.c.user_id == user.id).order_by(identities.c.issuer)
    return list(tx.db.execute(query))


def unlink(tx: Tx, user: int, account: str) -> None:
    """Unlink a user from the account with an id. Raises CallerError (404)."""
    whose = users.find(tx, user)
    found = [row for row in _read_accounts(tx, whose) if account_id(row.issuer, row.subject) == account]
    if not found:
        raise not_found("No account found.")
    _unlink(tx, whose, found[0])


def unlink_at(tx: Tx, user: Row[Any], issuer: str) -> str:
    """Unlink a user from the account at an issuer, and return its subject. Raises CallerError (404)."""
    accounts = {row.issuer: row for row in _read_accounts(tx, user)}
    if issuer not in accounts:
        known = f"linked are those at {', '.join(f'`{each}`' for each in accounts)}" if accounts else "none is linked"
        name = printable(user.username or user.email)
        raise not_found(f"The user `{name}` has no account at `{printable(issuer)}`; {known}")
    _unlink(tx, user, accounts[issuer])
    return str(accounts[issuer].subject)


def _unlink(tx: Tx, user: Row[Any], account: Row[Any]) -> None:
    """Delete a link, and end the sessions of the user that were opened in its way."""
    own = identities.c.issuer == account.issuer, identities.c.subject == account.subject
    tx.db.execute(delete(identities).where(*own))
    before = users.shown(user) | {"issuer": account.issuer, "subject": account.subject}
    tx.record_event("user-unlinked", before=before)
    sessions.end_sessions_by(tx, user.id, BY_HEADER if account.issuer == HEADER else BY_PROVIDER)


def use_answer(tx: Tx, digest: str, seconds: float) -> bool:
    """Note that an answer of a provider is used, for `seconds`, after which it is too old. False if it was used before."""
    tx.db.execute(delete(used_answers).where(used_answers.c.expires_at <= tx.now))
    row = {"hash": digest, "expires_at": tx.now + timedelta(seconds=seconds)}
    statement = insert_into(tx, used_answers).values(row).on_conflict_do_nothing().returning(used_answers.c.hash)
    return tx.db.execute(statement).first() is not None


def create_user(tx: Tx, person: Person, role: str) -> int:
    """Create the user of a person with a root role, link it, and return its id. Raises CallerError (400) for an odd name."""
    names = (
        {"email": person.email} if EMAIL.fullmatch(person.email) else {"username": person.username or person.subject}
    )
    made = users.create(tx, {**names, "name": person.name[:MAX_LENGTH] or None, "rootRole": role.title()})
    link(tx, users.find(tx, made["id"]), person.issuer, person.subject)
    return int(made["id"])


def set_roles(tx: Tx, user: int, given: GivenRoles) -> None:
    """Set the roles of a user to those that the groups give, in the projects that there are. The only administrator stays one."""
    row = users.find(tx, user)
    root = given.root or LEAST
    is_last = row.root_role == ADMINISTRATOR and users.count_administrators(tx) == 1
    if row.root_role != root and not is_last:
        users.change(tx, user, {"rootRole": root.title()})
    held = tx.db.execute(select(project_roles.c.project).where(project_roles.c.user_id == user)).scalars().all()
    wanted = {project for project, _ in given.projects}
    present = tx.db.execute(select(projects.c.id).where(projects.c.id.in_({*held, *wanted}))).scalars().all()
    for project in present:
        roles = [project_access.NUMBERS[role] for place, role in given.projects if place == project]
        project_access.replace(tx, project, user, roles)
