"""Makes a database what a seed says: a seed file as the wanted state (decision 0059).

What the seed does not name stays: entries, and keys of entries. Null clears a value that may be missing. A list that an entry
names is whole. A plan is the same work in a
transaction that is rolled back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any, NamedTuple

from sqlalchemy import Table, select, update

from flagsvc.core.errors import SeedError
from flagsvc.server.store import schema
from flagsvc.server.store.actors import Actor
from flagsvc.server.store.event_kinds import kind_of, list_changes, words_of
from flagsvc.server.store.keyring import PERSONAL
from flagsvc.server.store.resources.environments import add_to_project, remove_from_project
from flagsvc.server.store.resources.maintenance import is_in_maintenance, set_maintenance
from flagsvc.server.store.resources.project_access import NUMBERS, replace
from flagsvc.server.store.resources.projects import environments_of
from flagsvc.server.store.resources.segments import check_users
from flagsvc.server.store.resources.users import ADMINISTRATOR, LAST_ADMINISTRATOR, SEED_NAME
from flagsvc.server.store.seed import apply
from flagsvc.server.store.seed.apply import CHANGE_REQUESTS, Entry, apply_seed, read_user_ids
from flagsvc.server.store.seed.events import SECTIONS as COMPARED
from flagsvc.server.store.seed.events import read_state, record_changes
from flagsvc.server.store.seed.file import Seed
from flagsvc.server.store.seed.keys import IDENTITY, SECTIONS
from flagsvc.server.store.seed.once import COLUMNS, missing, name_of, remember_seed
from flagsvc.server.store.seed.wanted_flags import change_flags, refused_at, without_defaults
from flagsvc.server.store.store import Store, Tx
from flagsvc.server.store.upsert import upsert

MakeRow = Callable[[Tx, Entry], Mapping[str, Any]]
PLACES = ("environments", "projects")
"""The sections that all others refer to."""
SPREAD = {"featureNaming": ("naming_pattern", "naming_example", "naming_description"), "archived": ("archived_at",)}
"""Key of an entry → its columns, where they do not have the name of the key."""
KINDS = tuple(section.created for section in COMPARED)
FLAG = "feature-created"
"""The kind of event for which every flag is read before and after: that takes time, and is done only if one is new."""
BY = "the seed"
"""Who makes the changes, in the sentences of a plan."""


class Change(NamedTuple):
    """A change that a seed makes: a sentence, and the members of what it changes with their values before and after."""

    words: str
    members: list[dict[str, Any]]


class Columns(NamedTuple):
    """The columns of an entry's row: as the seed would write them, as they are, and those that are to change."""

    wanted: Mapping[str, Any]
    held: Mapping[str, Any]
    changed: Mapping[str, Any]


class Rows(NamedTuple):
    """How the entries of a section are rows of a table."""

    table: Table
    row: MakeRow


ROWS: Mapping[str, Rows] = {
    "environments": Rows(schema.environments, lambda tx, each: apply.environment_row(each, 0)),
    "projects": Rows(schema.projects, lambda tx, each: apply.project_row(each, tx.now)),
    "contextFields": Rows(schema.context_fields, lambda tx, each: apply.context_field_row(each)),
    "segments": Rows(schema.segments, lambda tx, each: apply.segment_row(each)),
    "strategyTypes": Rows(schema.strategy_types, lambda tx, each: apply.strategy_type_row(each)),
    "tagTypes": Rows(schema.tag_types, lambda tx, each: apply.tag_type_row(each)),
    "users": Rows(schema.users, lambda tx, each: apply.user_row(each)),
    "tokens": Rows(schema.tokens, lambda tx, each: apply.token_row(each, read_user_ids(tx), tx.now)),
}
"""Section → its rows. Features and strategies are changed one by one (wanted_flags.py)."""


def plan_seed(store: Store, seed: Seed, actor: Actor) -> list[Change]:
    """Return the changes that a seed would make, and make none. Raises SeedError for what the database does not allow."""
    with store.dry_run(actor) as tx:
        make_wanted(tx, seed)
        return [describe(event) for event in tx.pending_events]


def apply_wanted(store: Store, seed: Seed, actor: Actor) -> list[Change]:
    """Make the changes of a seed in one transaction, and return them. Without changes there is no new revision.

    Raises SeedError for what the database does not allow; then nothing has changed.
    """
    if not plan_seed(store, seed, actor):
        return []
    with store.writing(actor, "seed") as tx:
        make_wanted(tx, seed)
        remember_seed(tx, seed.digest)
        return [describe(event) for event in tx.pending_events]


def describe(event: Mapping[str, Any]) -> Change:
    """Return an event that a transaction will store as a change."""
    place = {name: event[name] for name in ("feature", "environment", "project")} | {"by": BY}
    before, data = event["before"], event["data"]
    words = words_of(kind_of(event["type"]), place, before, data)
    return Change(words.replace("**", "").removeprefix(f"{BY} "), list_changes(before, data))


def make_wanted(tx: Tx, seed: Seed) -> None:
    """Make the database what a seed says. Raises SeedError."""
    rest = missing(tx, seed)
    administrators = _administrators(tx)
    _write_sections(tx, seed, rest, PLACES)
    for project, name in rest.joins:
        add_to_project(tx, project, name)
    for index, each in _existing("projects", seed, rest):
        with refused_at(f"projects[{index}].environments"):
            _set_environments(tx, each)
    _write_sections(tx, seed, rest, [name for name in SECTIONS if name not in PLACES])
    for index, each in _existing("users", seed, rest):
        with refused_at(f"users[{index}].projectRoles"):
            _set_roles(tx, each)
    _keep_an_administrator(tx, seed, administrators)
    change_flags(tx, seed, {each["name"] for each in rest["features"]})
    if seed.maintenance not in (None, is_in_maintenance(tx)):
        set_maintenance(tx, bool(seed.maintenance))


def _existing(section: str, seed: Seed, rest: Seed) -> Iterable[tuple[int, Entry]]:
    """Return the entries of a section that the database had, with their place in the file."""
    new = {id(each) for each in rest[section]}
    return [(index, each) for index, each in enumerate(seed[section]) if id(each) not in new]


def _write_sections(tx: Tx, seed: Seed, rest: Seed, names: Iterable[str]) -> None:
    """Write the entries of sections that are missing, change the rows of the others, and record both."""
    before = read_state(tx, [kind for kind in KINDS if kind != FLAG or (rest["features"] and "features" in names)])
    apply_seed(tx, Seed({name: rest[name] for name in names}))
    for name in names:
        for index, each in _existing(name, seed, rest) if name in ROWS else ():
            _change_row(tx, name, index, each)
    if CHANGE_REQUESTS in names and seed[CHANGE_REQUESTS]:
        upsert(tx, schema.state, [{"key": CHANGE_REQUESTS, "value": seed[CHANGE_REQUESTS]}], ["value"])
    record_changes(tx, before)


def _change_row(tx: Tx, section: str, index: int, entry: Entry) -> None:
    """Set the columns of an entry's row that it names and that have another value."""
    table, make_row = ROWS[section]
    here = COLUMNS[section] == name_of(section, entry)
    held = dict(tx.db.execute(select(table).where(here)).one()._mapping)
    wanted = make_row(tx, entry)
    named = [name for key in entry if key != IDENTITY[section] for name in columns_of(key) if name in wanted]
    changed = {name: wanted[name] for name in named if not is_same(name, wanted[name], held[name])}
    CHECKS.get(section, _check_nothing)(tx, index, Columns(wanted, held, changed))
    if changed:
        tx.db.execute(update(table).where(here).values(changed))


def columns_of(key: str) -> tuple[str, ...]:
    """Return the names of the columns that a key of an entry sets; a table need not have them."""
    return SPREAD.get(key, (re.sub("(?=[A-Z])", "_", key).lower(),))


def is_same(name: str, wanted: Any, held: Any) -> bool:
    """Return whether two values of a column mean the same: none and the empty text do, and any two times of archiving."""
    if isinstance(wanted, list):
        return bool(without_defaults(wanted) == without_defaults(held))
    if name == "archived_at":
        return (wanted is None) == (held is None)
    return wanted == held or (wanted in (None, "") and held in (None, ""))


def _check_nothing(tx: Tx, index: int, columns: Columns) -> None:
    """Do nothing: most entries may change in any way."""


def _check_segment(tx: Tx, index: int, columns: Columns) -> None:
    """Raise SeedError if a segment is to belong to a project, and strategies of others use it."""
    with refused_at(f"segments[{index}].project"):
        check_users(tx, columns.held["id"], columns.changed.get("project"))


def _check_token(tx: Tx, index: int, columns: Columns) -> None:
    """Raise SeedError if a token with this secret is of another type or user, or if a personal one is to change."""
    wanted, held, changed = columns
    if any(wanted[name] != held[name] for name in ("kind", "user_id")) or (changed and held["kind"] == PERSONAL):
        text = f"the {held['kind']} token with this secret cannot become this one: use a new secret"
        raise SeedError([f"tokens[{index}]: {text}"])


def _check_user(tx: Tx, index: int, columns: Columns) -> None:
    """Raise SeedError if a user without a user name is to lose the mail address, by which the file names them."""
    if columns.held["username"] is None and columns.changed.get("email", "") is None:
        raise SeedError([f"users[{index}].email: the user has no user name, so the address cannot be cleared"])


CHECKS: Mapping[str, Callable[[Tx, int, Columns], None]] = {
    "segments": _check_segment,
    "tokens": _check_token,
    "users": _check_user,
}
"""Section → what an entry that the database has must not become."""


def _set_environments(tx: Tx, entry: Entry) -> None:
    """Give a project the environments that its entry names, and no other ones."""
    if "environments" not in entry:
        return
    held, wanted = environments_of(tx, entry["id"]), entry["environments"]
    for name in dict.fromkeys(wanted):
        if name not in held:
            add_to_project(tx, entry["id"], name)
    for name in held:
        if name not in wanted:
            remove_from_project(tx, entry["id"], name)


def _set_roles(tx: Tx, entry: Entry) -> None:
    """Give a user the roles that the entry names, and no other ones."""
    if "projectRoles" not in entry:
        return
    user = read_user_ids(tx)[entry["name"]]
    held = tx.db.execute(select(schema.project_roles.c.project).where(schema.project_roles.c.user_id == user)).scalars()
    wanted: dict[str, set[int]] = {project: set() for project in held}
    for each in entry["projectRoles"] or []:
        wanted.setdefault(each["project"], set()).add(NUMBERS[each["role"]])
    for project, roles in sorted(wanted.items()):
        replace(tx, project, user, sorted(roles))


def _administrators(tx: Tx) -> set[str]:
    """Return the names of the administrators, as a seed names users."""
    return set(tx.db.execute(select(SEED_NAME).where(schema.users.c.root_role == ADMINISTRATOR)).scalars())


def _keep_an_administrator(tx: Tx, seed: Seed, before: Set[str]) -> None:
    """Raise SeedError if there was an administrator and none is left. A file may give the role to another user."""
    if before and not _administrators(tx):
        lost = [index for index, each in enumerate(seed["users"]) if each["name"] in before]
        raise SeedError([f"users[{index}].rootRole: {LAST_ADMINISTRATOR}" for index in lost])
