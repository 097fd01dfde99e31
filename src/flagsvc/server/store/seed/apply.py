"""Writes a seed into a database, in the caller's transaction (import validation 0.3)."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from typing import Any, TypeAlias

from sqlalchemy import Table, delete, insert, select

from flagsvc.server.store import schema
from flagsvc.server.store.keyring import hash_secret, make_hint
from flagsvc.server.store.resources.environments import add_to_project
from flagsvc.server.store.resources.maintenance import set_maintenance
from flagsvc.server.store.resources.users import SEED_NAME
from flagsvc.server.store.seed.file import Seed, parse_seed, read_seed, scope_of
from flagsvc.server.store.store import Tx
from flagsvc.server.store.upsert import upsert

__all__ = ["Seed", "apply_seed", "parse_seed", "read_seed"]

Entry: TypeAlias = Mapping[str, Any]
CHANGE_REQUESTS = "changeRequests"


def apply_seed(tx: Tx, seed: Seed) -> None:
    """Write a seed. Its features, segments, users and tokens must be new; other entries replace existing ones."""
    _write_environments_and_projects(tx, seed)
    _write_fields_types_and_segments(tx, seed)
    _write_people(tx, seed)
    _write_features(tx, seed)
    _write_strategies(tx, seed)
    if seed.maintenance:
        set_maintenance(tx, True)
    if seed[CHANGE_REQUESTS]:
        upsert(tx, schema.state, [{"key": CHANGE_REQUESTS, "value": seed[CHANGE_REQUESTS]}], ["value"])


def _write(tx: Tx, table: Table, rows: list[dict[str, Any]]) -> None:
    """Insert rows, or update those that every database has."""
    key = {column.name for column in table.primary_key}
    upsert(tx, table, rows, [name for name in rows[0] if name not in key] if rows else [])


def _write_environments_and_projects(tx: Tx, seed: Seed) -> None:
    """Write environments, projects, and the environments of projects."""
    _write(
        tx, schema.environments, [environment_row(each, order) for order, each in enumerate(seed["environments"], 1)]
    )
    _write(tx, schema.projects, [project_row(each, tx.now) for each in seed["projects"]])
    everywhere = list(tx.db.execute(select(schema.environments.c.name)).scalars())
    for each in seed["projects"]:
        links = schema.project_environments
        tx.db.execute(delete(links).where(links.c.project == each["id"]))
        names = dict.fromkeys(each.get("environments", everywhere))
        if names:
            tx.db.execute(insert(links), [{"project": each["id"], "environment": name} for name in names])
    for project, name in seed.joins:
        add_to_project(tx, project, name)


def environment_row(each: Entry, order: int) -> dict[str, Any]:
    """Return the row of an environment, `order` by default its sort order."""
    kind = each.get("type", each["name"] if each["name"] in ("development", "production") else "test")
    flags = {"enabled": each.get("enabled", True), "protected": each.get("protected", False)}
    return {"name": each["name"], "type": kind, "sort_order": each.get("sortOrder", order)} | flags


def project_row(each: Entry, now: datetime) -> dict[str, Any]:
    """Return the row of a project."""
    naming = each.get("featureNaming") or {}
    return {
        "id": each["id"],
        "name": each.get("name", each["id"]),
        "description": each.get("description"),
        "mode": each.get("mode", "open"),
        "default_stickiness": each.get("defaultStickiness", "default"),
        "feature_limit": each.get("featureLimit"),
        "naming_pattern": naming.get("pattern") or None,
        "naming_example": naming.get("example") or None,
        "naming_description": naming.get("description") or None,
        "created_at": now,
        "updated_at": now,
        "archived_at": now if each.get("archived") else None,
    }


def _write_fields_types_and_segments(tx: Tx, seed: Seed) -> None:
    """Write context fields, strategy types, tag types and segments."""
    now = {"created_at": tx.now}
    _write(tx, schema.context_fields, [context_field_row(each) | now for each in seed["contextFields"]])
    _write(tx, schema.strategy_types, [strategy_type_row(each) | now for each in seed["strategyTypes"]])
    _write(tx, schema.tag_types, [tag_type_row(each) | now for each in seed["tagTypes"]])
    if seed["segments"]:
        tx.db.execute(insert(schema.segments), [segment_row(each) | now for each in seed["segments"]])


def context_field_row(each: Entry) -> dict[str, Any]:
    """Return the row of a context field, without its time."""
    row = {"name": each["name"], "description": each.get("description"), "stickiness": each.get("stickiness", False)}
    values = each.get("legalValues") or []
    return row | {"sort_order": each.get("sortOrder", 10), "legal_values": values, "project": each.get("project")}


def strategy_type_row(each: Entry) -> dict[str, Any]:
    """Return the row of a strategy type, without its time."""
    row = {"name": each["name"], "title": each.get("title"), "description": each.get("description")}
    flags = {"built_in": False, "deprecated": each.get("deprecated", False), "sort_order": 9999}
    return row | flags | {"parameters": each.get("parameters") or []}


def tag_type_row(each: Entry) -> dict[str, Any]:
    """Return the row of a tag type, without its time."""
    row = {"name": each["name"], "description": each.get("description")}
    return row | {"icon": each.get("icon"), "color": each.get("color")}


def segment_row(each: Entry) -> dict[str, Any]:
    """Return the row of a segment, without its time."""
    row = {"name": each["name"], "description": each.get("description"), "project": each.get("project")}
    return row | {"constraints": each.get("constraints") or [], "created_by": "seed"}


def _write_people(tx: Tx, seed: Seed) -> None:
    """Write users, their roles and all tokens."""
    for each in seed["users"]:
        tx.db.execute(insert(schema.users).values(user_row(each) | {"created_at": tx.now}))
    numbers = read_user_ids(tx)
    roles = [
        {"user_id": numbers[each["name"]], "project": role["project"], "role": role["role"]}
        for each in seed["users"]
        for role in each.get("projectRoles") or []
    ]
    _write(tx, schema.project_roles, roles)
    rows = [token_row(each, numbers, tx.now) for each in seed["tokens"]]
    if rows:
        tx.db.execute(insert(schema.tokens), rows)


def read_user_ids(tx: Tx) -> dict[str, int]:
    """Return the id of each user by user name; by mail address for a user without one."""
    query = select(SEED_NAME, schema.users.c.id).order_by(schema.users.c.username.is_not(None))
    return {row[0]: row[1] for row in tx.db.execute(query)}


def user_row(each: Entry) -> dict[str, Any]:
    """Return the row of a user, without its time."""
    row = {"username": each["name"], "name": each["name"], "email": each.get("email")}
    return row | {"root_role": each.get("rootRole", "viewer")}


def token_row(each: Entry, users: Mapping[str, int], now: datetime) -> dict[str, Any]:
    """Return the row of a token. It has only the hash of the secret, and the part that may be shown."""
    environment, projects = scope_of(each)
    client = each["type"] in ("backend", "frontend")
    return {
        "hash": hash_secret(each["secret"]),
        "hint": make_hint(each["secret"]),
        "kind": each["type"],
        "name": each.get("name") or each.get("user") or each["type"],
        "environment": environment if client else None,
        "projects": (["*"] if "*" in projects else projects) if client else ["*"],
        "user_id": users[each["user"]] if each["type"] == "personal" else None,
        "created_at": now,
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


def _write_features(tx: Tx, seed: Seed) -> None:
    """Write features, each in all environments of its project. Archived ones are off everywhere."""
    if not seed["features"]:
        return
    positions = tx.positions(schema.features, len(seed["features"]))
    rows = [_feature(each, position, tx.now) for each, position in zip(seed["features"], positions, strict=True)]
    tx.db.execute(insert(schema.features), rows)
    where = _environments_of_projects(tx)
    states = [
        {"feature": each["name"], "environment": name, "enabled": name in each.get("enabled", ()), "variants": []}
        for each in seed["features"]
        for name in where.get(each.get("project", "default"), ())
    ]
    if states:
        tx.db.execute(insert(schema.feature_environments), states)


def _environments_of_projects(tx: Tx) -> dict[str, list[str]]:
    links = schema.project_environments.c
    found: dict[str, list[str]] = {}
    for project, environment in tx.db.execute(select(links.project, links.environment)):
        found.setdefault(project, []).append(environment)
    return found


def _feature(each: Entry, position: int, now: datetime) -> dict[str, Any]:
    return {
        "name": each["name"],
        "project": each.get("project", "default"),
        "type": each.get("type", "release"),
        "description": each.get("description"),
        "stale": each.get("stale", False),
        "impression_data": each.get("impressionData", False),
        "created_by": "seed",
        "created_at": now,
        "archived_at": now if each.get("archived") else None,
        "position": position,
    }


def _write_strategies(tx: Tx, seed: Seed) -> None:
    """Write the strategies of features, and the segments that they use."""
    if not seed["strategies"]:
        return
    segments = {row.name: row.id for row in tx.db.execute(select(schema.segments.c.name, schema.segments.c.id))}
    positions = tx.positions(schema.strategies, len(seed["strategies"]))
    orders = _counter()
    rows, uses = [], []
    for each, position in zip(seed["strategies"], positions, strict=True):
        row = strategy_row(each, position, orders((each["feature"], each["environment"])), tx.now)
        rows.append(row)
        for index, name in enumerate(dict.fromkeys(each.get("segments") or [])):
            uses.append({"strategy_id": row["id"], "segment_id": segments[name], "position": index})
    tx.db.execute(insert(schema.strategies), rows)
    if uses:
        tx.db.execute(insert(schema.strategy_segments), uses)


def _counter() -> Callable[[object], int]:
    """Return a function that counts from 0 for each key."""
    counts: dict[object, int] = {}

    def following(key: object) -> int:
        counts[key] = counts.get(key, -1) + 1
        return counts[key]

    return following


def strategy_row(each: Entry, position: int, order: int, now: datetime) -> dict[str, Any]:
    """Return the row of a strategy with a new id."""
    return {
        "id": str(uuid.uuid4()),
        "feature": each["feature"],
        "environment": each["environment"],
        "name": each["name"],
        "title": each.get("title"),
        "parameters": each.get("parameters") or {},
        "constraints": each.get("constraints") or [],
        "variants": each.get("variants") or [],
        "disabled": each.get("disabled", False),
        "sort_order": each.get("sortOrder", order),
        "created_at": now,
        "position": position,
    }
