"""Records what a seed changes: the sections of a database before and after it, compared (decision 0054)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import Row, Table, select

from flagsvc.server.store import schema
from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources import (
    api_tokens,
    context_fields,
    environments,
    personal_tokens,
    projects,
    segments,
    strategy_types,
    tag_types,
    users,
)
from flagsvc.server.store.resources.whole_features import read_whole
from flagsvc.server.store.store import Tx

State: TypeAlias = Mapping[str, Mapping[Any, Json]]
"""The entries of each section by their key."""
CHANGE_REQUESTS = "changeRequests"


class Section(NamedTuple):
    """A part of a database: the events of a new and of a changed entry, how to read the entries, and where an entry belongs."""

    created: str
    updated: str
    read: Callable[[Tx], Mapping[Any, Json]]
    place: Callable[[Json], dict[str, str | None]] = lambda entry: {}


def _reader(table: Table, show: Callable[[Row[Any]], Json], key: str = "name") -> Callable[[Tx], dict[Any, Json]]:
    """Return what reads every row of a table."""
    column = table.c[key]
    return lambda tx: {getattr(row, key): show(row) for row in tx.db.execute(select(table).order_by(column))}


def _read_projects(tx: Tx) -> dict[Any, Json]:
    rows = tx.db.execute(select(schema.projects).order_by(schema.projects.c.id)).all()
    return {row.id: projects.settings_to_json(tx, row) for row in rows}


def _read_features(tx: Tx) -> dict[Any, Json]:
    rows = tx.db.execute(select(schema.features).order_by(schema.features.c.position)).all()
    return dict(read_whole(tx, rows))


def _read_roles(tx: Tx) -> dict[Any, Json]:
    query = select(schema.project_roles, users.SEED_NAME.label("name")).join(schema.users)
    rows = tx.db.execute(query.order_by(schema.project_roles.c.user_id, schema.project_roles.c.project))
    return {
        (row.user_id, row.project, row.role): {"userId": row.user_id, "name": row.name, "project": row.project}
        | {"role": row.role}
        for row in rows
    }


def _read_tokens(personal: bool) -> Callable[[Tx], dict[Any, Json]]:
    show = personal_tokens.to_json if personal else api_tokens.shown
    kind = schema.tokens.c.kind == "personal" if personal else schema.tokens.c.kind != "personal"
    query = select(schema.tokens).where(kind).order_by(schema.tokens.c.id)
    return lambda tx: {row.id: show(row) for row in tx.db.execute(query)}


def _read_settings(tx: Tx) -> dict[Any, Json]:
    """Return the settings but for maintenance mode, which has its own event."""
    query = select(schema.state).where(schema.state.c.key == CHANGE_REQUESTS)
    return {row.key: {"id": row.key, "value": row.value} for row in tx.db.execute(query)}


SECTIONS: tuple[Section, ...] = (
    Section(
        "environment-created",
        "environment-updated",
        _reader(schema.environments, environments.to_json),
        lambda entry: {"environment": entry["name"]},
    ),
    Section("project-created", "project-updated", _read_projects, lambda entry: {"project": entry["id"]}),
    Section("context-field-created", "context-field-updated", _reader(schema.context_fields, context_fields.to_json)),
    Section("strategy-created", "strategy-updated", _reader(schema.strategy_types, strategy_types.to_json)),
    Section("tag-type-created", "tag-type-updated", _reader(schema.tag_types, tag_types.to_json)),
    Section(
        "segment-created",
        "segment-updated",
        _reader(schema.segments, segments.to_json, "id"),
        lambda entry: {"project": entry.get("project")},
    ),
    Section("user-created", "user-updated", _reader(schema.users, users.shown, "id")),
    Section("project-user-added", "", _read_roles, lambda entry: {"project": entry["project"]}),
    Section("api-token-created", "api-token-updated", _read_tokens(personal=False)),
    Section("pat-created", "", _read_tokens(personal=True)),
    Section(
        "feature-created", "", _read_features, lambda entry: {"project": entry["project"], "feature": entry["name"]}
    ),
    Section("setting-created", "setting-updated", _read_settings),
)


def read_state(tx: Tx) -> State:
    """Return all that a seed may change."""
    return {section.created: section.read(tx) for section in SECTIONS}


def record_changes(tx: Tx, before: State) -> None:
    """Record what is new or different since `before`. Maintenance mode and new environments of projects have their own events."""
    after = read_state(tx)
    for section in SECTIONS:
        held = before[section.created]
        for key, entry in after[section.created].items():
            kind = section.updated if key in held else section.created
            if kind:
                tx.record_event(kind, **section.place(entry), before=held.get(key), data=entry)
