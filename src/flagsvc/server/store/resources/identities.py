"""Persons that somebody else has authenticated: their users, and the roles of their groups (decision 0034).

An identity is an issuer and a subject there. It belongs to a user until it is unlinked: a name or an address that the issuer gives
to somebody else later opens nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable
from datetime import timedelta
from shlex import quote
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Row, delete, func, insert, or_, select, update

from flagsvc.core.errors import FlagsvcError
from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import CallerError, not_found
from flagsvc.server.store.keyring import BY_HEADER, BY_PROVIDER
from flagsvc.server.store.resources import project_access, sessions, users
from flagsvc.server.store.resources.users import ADMINISTRATOR, EMAIL, MAX_LENGTH
from flagsvc.server.store.schema import identities, project_roles, projects, used_answers
from flagsvc.server.store.schema import users as users_table
from flagsvc.server.store.store import Tx
from flagsvc.server.store.texts import shorten, utf16_length
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
NO_GROUP = "groupRoles names none of the groups of the person"
UNKNOWN = "There is no user for you here. Ask an administrator of this server for one."
TAKEN = "This user is linked to another account, or this account to another user. An administrator of this server can say more."
NOT_LINKED = (
    "The user with your name or address is an administrator, and is not linked to your account. Who runs this server links them:"
    " flagsvc server user link {user} --issuer {issuer} --subject {subject}"
)


class RefusedPersonError(FlagsvcError):
    """Somebody who is authenticated may not sign in. The message is a sentence for them, and `reason` is for the log."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


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
        return bool(self.root or self.projects)


def roles_of_groups(groups: Iterable[str], rules: GroupRoles) -> GivenRoles:
    """Return the roles that groups give, of the root roles the strongest."""
    held = set(groups)
    return read_roles({role for group, role in rules if group in held})


def read_roles(given: Collection[str]) -> GivenRoles:
    """Return roles that are written as `groupRoles` has them, of the root roles the strongest."""
    root = next((role for role in ROOT_ROLES if role in given), "")
    pairs = (role.partition(":")[::2] for role in given if ":" in role)
    return GivenRoles(root, frozenset((project, role) for role, project in pairs))


def sign_in(tx: Tx, person: Person, rules: GroupRoles, opened_by: str) -> str | None:
    """Return the secret of a new session of a person, with the roles that the groups give now.

    None if the groups give no role any more: then what they gave is taken, which must be committed, and the person is refused.

    Raises RefusedPersonError, and CallerError for conflicts; both have a sentence for the person. Then nothing changes.

    Without `rules`, and for a person without known groups, roles stay as they are, and only users sign in that exist already.
    """
    given = roles_of_groups(person.groups, rules) if rules and person.groups is not None else None
    if given is not None and not given:
        if take_roles(tx, person):
            return None
        raise RefusedPersonError(NO_ROLE, NO_GROUP)
    user = find_user(tx, person)
    if user is None and given is None:
        raise RefusedPersonError(UNKNOWN, "no user has the verified address or the name of the person")
    number = create_user(tx, person, given.root or LEAST) if user is None and given is not None else user
    assert number is not None
    if given is not None:
        set_roles(tx, number, given)
        note_given(tx, person, held_roles(tx, number))
    return sessions.open_session(tx, number, opened_by)


def take_roles(tx: Tx, person: Person) -> bool:
    """Take the roles that the groups of a person gave, and end the sessions of this way. Return whether there was any of them.

    Roles that somebody has given by hand since the last sign-in stay. The only administrator stays one.
    """
    account = tx.db.execute(select(identities).where(*_is_account_of(person))).first()
    if account is None:
        return False
    held = held_roles(tx, account.user_id)
    given = held if account.roles is None else held & set(account.roles)
    set_roles(tx, account.user_id, read_roles(held - given))
    note_given(tx, person, given & held_roles(tx, account.user_id))
    sessions.end_sessions_by(tx, account.user_id, way_of_issuer(person.issuer))
    return bool(tx.pending_events)


def held_roles(tx: Tx, user: int) -> set[str]:
    """Return the roles of a user, written as `groupRoles` has them."""
    rows = tx.db.execute(select(project_roles).where(project_roles.c.user_id == user))
    return {users.find(tx, user).root_role, *(f"{row.role}:{row.project}" for row in rows)}


def note_given(tx: Tx, person: Person, roles: Collection[str]) -> None:
    """Note with the account of a person which roles of the user its groups gave."""
    tx.db.execute(update(identities).where(*_is_account_of(person)).values(roles=sorted(roles)))


def _is_account_of(person: Person) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return identities.c.issuer == person.issuer, identities.c.subject == person.subject


def way_of_issuer(issuer: str) -> str:
    """Return what opens the sessions of the accounts at an issuer."""
    return BY_HEADER if issuer == HEADER else BY_PROVIDER


def find_user(tx: Tx, person: Person) -> int | None:
    """Return the user of a person, and link one with the same address or name that is no administrator; None without one.

    Raises RefusedPersonError for an administrator, and CallerError (409) for a user with another account at the issuer.
    """
    known = tx.db.execute(select(identities.c.user_id).where(*_is_account_of(person))).scalar()
    if known is not None:
        return int(known)
    found = find_namesake(tx, person)
    if found is None:
        return None
    if found.root_role == ADMINISTRATOR:
        words = {"user": found.username or found.email, "issuer": person.issuer, "subject": person.subject}
        sentence = NOT_LINKED.format(**{name: quote(word) for name, word in words.items()})
        raise RefusedPersonError(sentence, "the user with the address or the name is an administrator, and is not linked")
    link(tx, found, person.issuer, person.subject)
    return int(found.id)


def find_namesake(tx: Tx, person: Person) -> Row[Any] | None:
    """Return the user with the verified address or the username of a person; an administrator before others.

    Only an address in ASCII counts. In lower case, other letters may become the address of another user.
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
    row = {"issuer": issuer, "subject": subject, "user_id": user.id, "created_at": tx.now, "roles": []}
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
    sessions.end_sessions_by(tx, user.id, way_of_issuer(account.issuer))


def use_answer(tx: Tx, digest: str, seconds: float) -> bool:
    """Note that an answer of a provider is used, for `seconds`, after which it is too old. False if it was used before."""
    tx.db.execute(delete(used_answers).where(used_answers.c.expires_at <= tx.now))
    row = {"hash": digest, "expires_at": tx.now + timedelta(seconds=seconds)}
    statement = insert_into(tx, used_answers).values(row).on_conflict_do_nothing().returning(used_answers.c.hash)
    return tx.db.execute(statement).first() is not None


def create_user(tx: Tx, person: Person, role: str) -> int:
    """Create the user of a person with a root role, link it, and return its id. Raises CallerError (400) for a taken address."""
    names = {"email": person.email} if is_address(person.email) else {"username": username_of(tx, person)}
    created = users.create(tx, {**names, "name": shorten(person.name, MAX_LENGTH) or None, "rootRole": role.title()})
    link(tx, users.find(tx, created["id"]), person.issuer, person.subject)
    return int(created["id"])


def is_address(email: str) -> bool:
    """Return whether a user may have an address. With other letters than ASCII it must be in lower case already.

    Else lower case could make it the address of somebody else.
    """
    same = email.isascii() or email == email.lower()
    return same and utf16_length(email) <= MAX_LENGTH and EMAIL.fullmatch(email) is not None


def username_of(tx: Tx, person: Person) -> str:
    """Return the username of a new user without an address: the name in the header, else the subject.

    A subject that could be an address, or is the name of another user, is none; the id of the account stands for it.
    """
    subject = person.subject if person.subject.isascii() and "@" not in person.subject else ""
    found = person.username or subject
    taken = tx.db.execute(select(users_table.c.id).where(users_table.c.username == found)).first()
    fits = found and utf16_length(found) <= MAX_LENGTH and taken is None
    return found if fits else account_id(person.issuer, person.subject)


def set_roles(tx: Tx, user: int, given: GivenRoles) -> None:
    """Give a user the roles of the groups, in projects that exist. The only administrator stays an administrator."""
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
