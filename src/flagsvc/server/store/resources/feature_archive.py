"""Archives, revives and deletes features (the real server's archive endpoints)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Row, bindparam, delete, select, update

from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import CallerError, not_found
from flagsvc.server.store.resources.dependencies import (
    children_of,
    find_related,
    parents_of_others,
    remove_dependencies,
)
from flagsvc.server.store.resources.features import (
    NO_FLAG,
    find,
    find_all,
    require,
    require_active_project,
    require_project,
)
from flagsvc.server.store.resources.whole_features import read_whole
from flagsvc.server.store.schema import feature_environments, features
from flagsvc.server.store.store import Tx
from flagsvc.server.store.timestamps import format_time, read_time
from flagsvc.server.store.upsert import chunks, rows_in

DEPENDED_ON = {
    False: "You can not archive/delete this feature since other features depend on it.",
    True: "You can not archive/delete those features since other features depend on them.",
}
"""Whether the request names several features → the message when others depend on them."""


def archive(tx: Tx, project: str, name: str) -> None:
    """Archive a feature. Raises CallerError (403 where others depend on it, 404)."""
    if find(tx, name) is None:
        raise not_found(NO_FLAG)
    row = require(tx, project, name)
    _check_without_children(tx, name)
    _archive(tx, project, [row])


def archive_all(tx: Tx, project: str, names: Sequence[str]) -> None:
    """Archive features; unknown names are ignored. Raises CallerError (403)."""
    rows = find_all(tx, names)
    require_project(project, rows)
    _check_orphans(tx, names)
    _archive(tx, project, rows)


def validate_archiving(tx: Tx, names: Sequence[str]) -> Json:
    """Return how archiving features would affect dependencies."""
    return {
        "parentsWithChildFeatures": parents_of_others(tx, names),
        "hasDeletedDependencies": bool(find_related(tx, names)),
    }


def revive_all(tx: Tx, project: str, names: Sequence[str]) -> None:
    """Revive features, switched off in all environments; active ones do not change. Raises CallerError (403, 404)."""
    require_active_project(tx, project)
    rows = find_all(tx, names)
    require_project(project, rows)
    _revive(tx, [row for row in rows if row.archived_at is not None])


def revive(tx: Tx, name: str) -> None:
    """Revive a feature, switched off in all environments. Raises CallerError (404)."""
    row = find(tx, name)
    if row is None:
        raise not_found(NO_FLAG)
    require_active_project(tx, row.project)
    _revive(tx, [row])


def remove_all(tx: Tx, project: str, names: Sequence[str]) -> None:
    """Delete the archived ones among these features. Raises CallerError (403)."""
    rows = find_all(tx, names)
    require_project(project, rows)
    _check_orphans(tx, names)
    remove_rows(tx, [row for row in rows if row.archived_at is not None])


def remove(tx: Tx, name: str) -> None:
    """Delete a feature if it is archived. Raises CallerError (403, 404)."""
    _check_without_children(tx, name)
    row = find(tx, name)
    if row is None:
        raise not_found(NO_FLAG)
    remove_rows(tx, [row] if row.archived_at is not None else [])


def _check_without_children(tx: Tx, name: str) -> None:
    if children_of(tx, [name]):
        raise CallerError("InvalidOperationError", DEPENDED_ON[False])


def _check_orphans(tx: Tx, names: Sequence[str]) -> None:
    if parents_of_others(tx, names):
        raise CallerError("InvalidOperationError", DEPENDED_ON[len(names) > 1])


def _archive(tx: Tx, project: str, rows: Sequence[Row[Any]]) -> None:
    names = [row.name for row in rows]
    for chunk in chunks(names):
        tx.db.execute(update(features).where(features.c.name.in_(chunk)).values(archived_at=tx.now))
    remove_dependencies(tx, project, names)
    after = {"archivedAt": format_time(tx.now)}
    for row in rows:
        before = {"archivedAt": format_time(row.archived_at)}
        tx.record_event("feature-archived", project=row.project, feature=row.name, before=before, data=after)


def _revive(tx: Tx, rows: Sequence[Row[Any]]) -> None:
    before = archive_states(tx, rows)
    for chunk in chunks(row.name for row in rows):
        tx.db.execute(update(features).where(features.c.name.in_(chunk)).values(archived_at=None))
        states = update(feature_environments).where(feature_environments.c.feature.in_(chunk))
        tx.db.execute(states.values(enabled=False))
    after: Json = {"archivedAt": None, "enabledIn": []}
    for row in rows:
        tx.record_event("feature-revived", project=row.project, feature=row.name, before=before[row.name], data=after)


def archive_states(tx: Tx, rows: Sequence[Row[Any]]) -> dict[str, Json]:
    """Return since when features are archived, and in which environments they are on, as events hold it, by name."""
    found: dict[str, Json] = {row.name: {"archivedAt": format_time(row.archived_at), "enabledIn": []} for row in rows}
    state = feature_environments.c
    query = select(state.feature, state.environment).where(state.enabled).order_by(state.environment)
    for name, environment in rows_in(tx, query, state.feature, list(found)):
        found[name]["enabledIn"].append(environment)
    return found


def put_back_states(tx: Tx, held: Mapping[str, Mapping[str, Any]]) -> None:
    """Archive or revive features as events hold it, by name. Without `enabledIn` switches stay. Raises CallerError (404)."""
    rows = {row.name: row for row in find_all(tx, list(held))}
    if len(rows) < len(held):
        raise not_found(NO_FLAG)
    for project in dict.fromkeys(row.project for row in rows.values()):
        require_active_project(tx, project)
    before = archive_states(tx, list(rows.values()))
    after = {name: before[name] | dict(each) for name, each in held.items()}
    _write_states(tx, after)
    for name in held:
        kind = "feature-revived" if after[name]["archivedAt"] is None else "feature-archived"
        sides: Json = {"before": before[name], "data": after[name]}
        tx.record_event(kind, project=rows[name].project, feature=name, **sides)


def _write_states(tx: Tx, wanted: Mapping[str, Json]) -> None:
    """Store since when features are archived, and in which environments they are on, by name."""
    times = [{"which": name, "time": read_time(each["archivedAt"])} for name, each in wanted.items()]
    on = [{"which": name, "place": place} for name, each in wanted.items() for place in each["enabledIn"]]
    state = feature_environments.c
    flag = update(features).where(features.c.name == bindparam("which"))
    here = update(feature_environments).where(state.feature == bindparam("which"))
    if times:
        tx.db.execute(flag.values(archived_at=bindparam("time")), times)
        tx.db.execute(here.values(enabled=False), [{"which": name} for name in wanted])
    if on:
        tx.db.execute(here.where(state.environment == bindparam("place")).values(enabled=True), on)


def remove_rows(tx: Tx, rows: Sequence[Row[Any]]) -> None:
    """Delete features, archived or not, with their dependencies."""
    for project in dict.fromkeys(row.project for row in rows):
        remove_dependencies(tx, project, [row.name for row in rows if row.project == project])
    before = read_whole(tx, rows)
    for chunk in chunks(row.name for row in rows):
        tx.db.execute(delete(features).where(features.c.name.in_(chunk)))
    for row in rows:
        tx.record_event("feature-deleted", project=row.project, feature=row.name, before=before[row.name])
