"""Writes the entries of a seed into a database, in the caller's transaction (import validation 0.3)."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, time
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import select

from flagsvc.core.errors import SeedError
from flagsvc.server.shapes.features import DESCRIPTION
from flagsvc.server.store import schema
from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.keyring import PERSONAL, hash_secret, make_hint
from flagsvc.server.store.resources import (
    api_tokens,
    context_fields,
    environments,
    personal_tokens,
    project_changes,
    segments,
    strategy_types,
    tag_types,
    users,
)
from flagsvc.server.store.resources.features import OFF
from flagsvc.server.store.resources.maintenance import set_maintenance
from flagsvc.server.store.resources.project_access import give_role
from flagsvc.server.store.resources.projects import environments_of
from flagsvc.server.store.resources.whole_features import insert_whole
from flagsvc.server.store.schema import CHANGE_REQUESTS
from flagsvc.server.store.seed.file import Seed, scope_of
from flagsvc.server.store.store import Tx
from flagsvc.server.store.timestamps import format_time
from flagsvc.server.store.upsert import upsert
from flagsvc.server.store.writer import Writer

Entry: TypeAlias = Mapping[str, Any]
PLACES = ("environments", "projects")
"""The sections that all others refer to."""
SEED = "seed"
"""Who creates what a seed names."""


def apply_seed(tx: Tx, seed: Seed) -> None:
    """Write a seed. Its features, segments, users and tokens must be new; other entries replace existing ones. Raises SeedError."""
    write_places(tx, seed)
    write_others(tx, seed)
    if seed.maintenance:
        set_maintenance(tx, True)
    write_change_requests(tx, seed)


def write_places(tx: Tx, seed: Seed) -> None:
    """Write environments, projects, and the environments of projects. Raises SeedError."""
    for section in PLACES:
        _write(tx, section, seed)
    for project, name in seed.joins:
        environments.add_to_project(tx, project, name)
    for index, each in enumerate(seed["projects"]):
        with refused_at(f"projects[{index}].environments"):
            set_environments(tx, each["id"], _environments_of_entry(tx, each))


def set_environments(tx: Tx, project: str, wanted: Sequence[str]) -> None:
    """Give a project these environments, and no other ones. Raises CallerError."""
    held = environments_of(tx, project)
    for name in dict.fromkeys(wanted):
        if name not in held:
            environments.add_to_project(tx, project, name)
    for name in held:
        if name not in wanted:
            environments.remove_from_project(tx, project, name)


def write_others(tx: Tx, seed: Seed) -> None:
    """Write the entries that are in environments and projects. Raises SeedError."""
    for section in WRITTEN:
        if section not in PLACES:
            _write(tx, section, seed)
    numbers = read_user_ids(tx)
    for each in seed["users"]:
        for role in each.get("projectRoles") or []:
            give_role(tx, numbers[each["name"]], each["name"], role["project"], role["role"])
    for each in seed["tokens"]:
        _write_token(tx, each, numbers)
    insert_whole(tx, _flags(tx, seed))


def write_change_requests(tx: Tx, seed: Seed) -> None:
    """Store where changes need a request, if the seed says so."""
    wanted, state = seed[CHANGE_REQUESTS], schema.state
    if not wanted:
        return
    before = tx.db.execute(select(state.c.value).where(state.c.key == CHANGE_REQUESTS)).scalar()
    upsert(tx, state, [{"key": CHANGE_REQUESTS, "value": wanted}], ["value"])
    held = None if before is None else {"id": CHANGE_REQUESTS, "value": before}
    kind = "setting-created" if held is None else "setting-updated"
    tx.record_event(kind, before=held, data={"id": CHANGE_REQUESTS, "value": wanted})


@contextmanager
def refused_at(place: str) -> Iterator[None]:
    """Turn the refusal of a store function into a SeedError that names a place in the file."""
    try:
        yield
    except CallerError as error:
        reasons = "; ".join(each["message"].rstrip(".") for each in error.details)
        raise SeedError([f"{place}: {reasons}"]) from None


class Section(NamedTuple):
    """The writer of a section's entries, and what makes the whole of an entry; it gets the place of the entry, from 1."""

    writer: Writer
    whole: Callable[[Tx, Entry, int], Json]


def _write(tx: Tx, section: str, seed: Seed) -> None:
    """Put the entries of a section. Raises SeedError."""
    writer, whole = WRITTEN[section]
    with refused_at(section):
        writer.put(tx, *(whole(tx, each, place) for place, each in enumerate(seed[section], 1)), tell=dict)


def _environment(tx: Tx, each: Entry, place: int) -> Json:
    kind = each.get("type", each["name"] if each["name"] in ("development", "production") else "test")
    flags = {"enabled": each.get("enabled", True), "protected": each.get("protected", False)}
    return {"name": each["name"], "type": kind, "sortOrder": each.get("sortOrder", place)} | flags


def _project(tx: Tx, each: Entry, place: int) -> Json:
    naming = each.get("featureNaming") or {}
    kept = {name: each.get(name, value) for name, value in project_changes.NEW.items()}
    return kept | {
        "id": each["id"],
        "name": each.get("name", each["id"]),
        "featureNaming": {name: naming.get(name) or None for name in project_changes.NAMING},
        "archivedAt": format_time(tx.now) if each.get("archived") else None,
        "environments": _environments_of_entry(tx, each),
    }


def _environments_of_entry(tx: Tx, each: Entry) -> Sequence[str]:
    """Return the environments of a project's entry: all, if it names none."""
    if "environments" in each:
        return list(dict.fromkeys(each["environments"]))
    return list(tx.db.execute(select(schema.environments.c.name)).scalars())


def _members(**defaults: Any) -> Callable[[Tx, Entry, int], Json]:
    """Return what makes a whole of the name of an entry and of these members, which have defaults."""
    return lambda tx, each, place: {"name": each["name"]} | {key: each.get(key, defaults[key]) for key in defaults}


def _user(tx: Tx, each: Entry, place: int) -> Json:
    role = users.ROLE_NUMBERS[each.get("rootRole", "viewer")]
    return {"username": each["name"], "name": each["name"], "email": each.get("email"), "rootRole": role}


WRITTEN: Mapping[str, Section] = {
    "environments": Section(environments.WRITER, _environment),
    "projects": Section(project_changes.WRITER, _project),
    "contextFields": Section(
        context_fields.WRITER,
        _members(description=None, stickiness=False, sortOrder=10, legalValues=[], project=None),
    ),
    "segments": Section(segments.WRITER, _members(description=None, project=None, constraints=[], createdBy=SEED)),
    "strategyTypes": Section(strategy_types.WRITER, _members(title=None, description=None, deprecated=False, parameters=[])),
    "tagTypes": Section(tag_types.WRITER, _members(description=None, icon=None, color=None)),
    "users": Section(users.WRITER, _user),
}
"""Section of a seed → how its entries are written, in this order."""


def read_user_ids(tx: Tx) -> dict[str, int]:
    """Return the id of each user by user name; by mail address for a user without one."""
    query = select(users.SEED_NAME, schema.users.c.id).order_by(schema.users.c.username.is_not(None))
    return {row[0]: row[1] for row in tx.db.execute(query)}


def _write_token(tx: Tx, each: Entry, numbers: Mapping[str, int]) -> None:
    row = token_row(tx, each, numbers)
    if row["kind"] == PERSONAL:
        personal_tokens.add(tx, row["user_id"], each["secret"], row["name"], row["expires_at"])
    else:
        api_tokens.add(tx, row | {"created_at": tx.now})


def token_row(tx: Tx, each: Entry, numbers: Mapping[str, int]) -> Json:
    """Return the row of a token; `numbers` are the ids of users by name.

    It has only the hash of the secret, and the part that may be shown.
    """
    environment, projects = scope_of(each)
    client = each["type"] in ("backend", "frontend")
    return {
        "hash": hash_secret(each["secret"]),
        "hint": make_hint(each["secret"]),
        "kind": each["type"],
        "name": each.get("name") or each.get("user") or each["type"],
        "environment": environment if client else None,
        "projects": (["*"] if "*" in projects else projects) if client else ["*"],
        "user_id": numbers[each["user"]] if each["type"] == PERSONAL else None,
        "expires_at": _parse_time(each.get("expiresAt")),
    }


def _parse_time(value: str | date | None) -> datetime | None:
    """Return the time of a text or of a value that YAML has parsed; UTC without a time zone."""
    if value is None:
        return None
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    moment = value if isinstance(value, datetime) else datetime.combine(value, time())
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _flags(tx: Tx, seed: Seed) -> list[Json]:
    positions = tx.positions(schema.features, len(seed["features"]))
    rules = _strategies(tx, seed)
    return [
        {
            "name": each["name"],
            "project": each.get("project", "default"),
            **{member: each[member] for member in DESCRIPTION if member in each},
            "createdBy": SEED,
            "createdById": None,
            "archived": each.get("archived", False),
            "position": position,
            "environments": {name: OFF | {"enabled": True} for name in each.get("enabled", ())},
            "strategies": rules.get(each["name"], {}),
            "tags": [],
            "links": [],
        }
        for each, position in zip(seed["features"], positions, strict=True)
    ]


def _strategies(tx: Tx, seed: Seed) -> dict[str, dict[str, list[Json]]]:
    """Return the strategies of a seed by feature and environment, each with a new id."""
    numbers = {row.name: row.id for row in tx.db.execute(select(schema.segments.c.name, schema.segments.c.id))}
    positions = tx.positions(schema.strategies, len(seed["strategies"]))
    orders: Counter[tuple[str, str]] = Counter()
    found: dict[str, dict[str, list[Json]]] = {}
    for each, position in zip(seed["strategies"], positions, strict=True):
        place = each["feature"], each["environment"]
        whole = whole_strategy(each, numbers) | {"id": str(uuid.uuid4()), "position": position}
        whole["sortOrder"] = each.get("sortOrder", orders[place])
        orders[place] += 1
        found.setdefault(place[0], {}).setdefault(place[1], []).append(whole)
    return found


def whole_strategy(entry: Entry, segments: Mapping[str, int]) -> Json:
    """Return a strategy of a seed as events hold one, without its id and its place; `segments` are the ids of segments by name."""
    lists = {name: entry.get(name) or [] for name in ("constraints", "variants")}
    used = [segments[name] for name in dict.fromkeys(entry.get("segments") or [])]
    texts = {"name": entry["name"], "title": entry.get("title"), "parameters": entry.get("parameters") or {}}
    return texts | lists | {"disabled": entry.get("disabled", False), "segments": used, "sortOrder": entry.get("sortOrder")}
