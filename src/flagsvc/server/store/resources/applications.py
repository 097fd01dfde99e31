"""The applications that use flags, and their running instances, as they report themselves (dialects: POST /api/client/register).

An application is deleted 30 days after its last report, an instance after one day.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Row, asc, bindparam, delete, desc, func, or_, select, true, update

from flagsvc.server.store.errors import not_found
from flagsvc.server.store.members import shown
from flagsvc.server.store.resources import strategy_types
from flagsvc.server.store.resources.features import find_all, metadata
from flagsvc.server.store.resources.usage import list_seen
from flagsvc.server.store.schema import application_instances as instances
from flagsvc.server.store.schema import application_usage, applications
from flagsvc.server.store.store import Tx
from flagsvc.server.store.timestamps import format_time
from flagsvc.server.store.upsert import count_rows, insert_into, rows_in, upsert

APPLICATION_DAYS = 30
INSTANCE_DAYS = 1
MAX_INSTANCES = 1000
"""The most instances in an answer."""
ALL = "*"
INSTANCE_KEY = ("app_name", "environment", "instance_id")
INSTANCE_FACTS = ("sdk_version", "sdk_type", "started", "client_ip")
"""What an instance reports of itself; what a report leaves out stays."""
SYSTEM_USER = "unleash_system_user"
"""The creator of an application that registered itself: the name that clients of the admin API expect."""


@dataclass(frozen=True)
class Registration:
    """What an instance of an application reports about itself; None if it reports nothing. `projects` are those of its token."""

    app_name: str
    environment: str
    instance_id: str = "default"
    projects: tuple[str, ...] = (ALL,)
    strategies: tuple[str, ...] | None = None
    sdk_version: str | None = None
    sdk_type: str | None = None
    started: datetime | None = None
    client_ip: str | None = None
    registered: bool = True

    def instance(self, now: datetime) -> dict[str, Any]:
        facts = {name: getattr(self, name) for name in (*INSTANCE_KEY, *INSTANCE_FACTS)}
        return facts | {"seen_at": now, "created_at": now}


def register(tx: Tx, registrations: Sequence[Registration]) -> None:
    """Store applications and their instances, and delete those without a recent report."""
    delete_unseen(tx)
    ordered = sorted(registrations, key=lambda each: (each.app_name, each.environment, each.instance_id))
    new = {each.app_name: SYSTEM_USER if each.registered else None for each in reversed(ordered)}
    fixed = {"created_at": tx.now, "seen_at": tx.now, "strategies": [], "announced": False}
    rows = [fixed | {"app_name": name, "created_by": new[name]} for name in sorted(new)]
    upsert(tx, applications, rows, ["seen_at"])
    _save_strategies(tx, {each.app_name: each.strategies for each in ordered if each.strategies is not None})
    merged = insert_into(tx, instances).excluded
    changes = {name: func.coalesce(merged[name], instances.c[name]) for name in INSTANCE_FACTS} | {"seen_at": tx.now}
    upsert(tx, instances, [each.instance(tx.now) for each in ordered], changes)
    read = {(each.app_name, name, each.environment) for each in ordered for name in each.projects or (ALL,)}
    _save_usage(tx, read)


def _save_strategies(tx: Tx, known: Mapping[str, Sequence[str]]) -> None:
    """Store the strategies of applications that exist, by application."""
    if known:
        changed = update(applications).where(applications.c.app_name == bindparam("which"))
        rows = [{"which": name, "known": list(names)} for name, names in known.items()]
        tx.db.execute(changed.values(strategies=bindparam("known")), rows)


def find_storable(tx: Tx, names: set[str], most: int) -> set[str]:
    """Return which applications may be stored: stored ones, and new ones until `most` applications have never registered."""
    column = applications.c.app_name
    stored = {name for (name,) in rows_in(tx, select(column), column, names)}
    if stored == names:
        return stored
    room = max(0, most - count_rows(tx, applications, applications.c.created_by.is_(None)))
    return stored | set(sorted(names - stored)[:room])


def create(tx: Tx, app_name: str, values: dict[str, Any]) -> None:
    """Create or change an application; `values` are `strategies`, `description`, `url`, `color`, `icon`."""
    values |= {"seen_at": tx.now}
    new = {"strategies": [], "announced": False, "app_name": app_name, "created_at": tx.now}
    upsert(tx, applications, [new | values], list(values))
    _save_usage(tx, [(app_name, ALL, ALL)])


def remove(tx: Tx, app_name: str) -> None:
    """Delete an application and its instances, if it exists."""
    for table in (instances, applications):
        tx.db.execute(delete(table).where(table.c.app_name == app_name))


def _save_usage(tx: Tx, read: Iterable[tuple[str, str, str]]) -> None:
    """Store which applications read which projects and environments: tuples of all three."""
    names = ("app_name", "project", "environment")
    upsert(tx, application_usage, [dict(zip(names, each, strict=True)) for each in sorted(read)], ())


def delete_unseen(tx: Tx) -> None:
    """Delete instances and applications without a recent report."""
    for table, days in ((instances, INSTANCE_DAYS), (applications, APPLICATION_DAYS)):
        tx.db.execute(delete(table).where(table.c.seen_at < tx.now - timedelta(days=days)))


def list_applications(
    tx: Tx, *, words: Sequence[str] = (), limit: int = 1000, offset: int = 0, descending: bool = False
) -> dict[str, Any]:
    """Return a page of applications by name, and their total number. With `words`, names must contain one of them."""
    named = name_condition(words)
    order = desc(applications.c.app_name) if descending else asc(applications.c.app_name)
    page = select(applications).where(named).order_by(order).limit(limit).offset(offset)
    rows = tx.db.execute(page).all()
    used = usage_of(tx, [row.app_name for row in rows])
    total = count_rows(tx, applications, named)
    return {"applications": [to_list_item(row, used[row.app_name]) for row in rows], "total": total if rows else 0}


def name_condition(words: Sequence[str]) -> ColumnElement[bool]:
    """Return the condition that a name contains one of the words, in any letter case."""
    found = [applications.c.app_name.icontains(word, autoescape=True) for word in words]
    return or_(*found) if found else true()


def usage_of(tx: Tx, names: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    """Return the projects of applications, and the environments of each project."""
    found: dict[str, dict[str, list[str]]] = {name: {} for name in names}
    table = application_usage
    query = select(table).order_by(table.c.project, table.c.environment)
    for row in rows_in(tx, query, table.c.app_name, names):
        found[row.app_name].setdefault(row.project, []).append(row.environment)
    return found


def to_list_item(row: Row[Any], used: dict[str, list[str]]) -> dict[str, Any]:
    project, environments = next(iter(used.items()), (None, [None]))
    facts = shown(row, "description", "strategies", "createdBy", "url", "color", "icon")
    return {
        **shown(row, "appName", "createdAt"),
        "updatedAt": format_time(row.seen_at),
        **facts,
        "project": project,
        "environment": environments[0],
        "usage": [{"project": name, "environments": each} for name, each in used.items()],
    }


def get(tx: Tx, app_name: str) -> dict[str, Any]:
    """Return an application with its strategies, its instances and the features that it evaluated. Raises `CallerError` (404)."""
    row = tx.db.execute(select(applications).where(applications.c.app_name == app_name)).one_or_none()
    if row is None:
        raise not_found(f"Could not find appName={app_name}")
    seen = list_seen(tx, "feature", app_name=app_name)
    active = [each for each in find_all(tx, seen) if each.archived_at is None]
    return {
        **shown(row, "appName", "createdAt", "description", "url", "color", "icon"),
        "strategies": list_found(strategy_types.WRITER.read(tx, row.strategies), row.strategies),
        "instances": instances_of(tx, app_name),
        "seenToggles": list_found({each.name: metadata(each) for each in active}, seen),
        "links": {"self": f"/api/applications/{row.app_name}"},
    }


def list_found(found: Mapping[str, dict[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return what was found of these names; any other name is marked as not found."""
    return [found.get(name, {"name": name, "notFound": True}) for name in names]


def instances_of(tx: Tx, app_name: str, environment: str | None = None) -> list[dict[str, Any]]:
    """Return the instances of an application that reported within a day, the most recent first."""
    here = true() if environment is None else instances.c.environment == environment
    recent = instances.c.seen_at >= tx.now - timedelta(days=INSTANCE_DAYS)
    rows = select(instances).where(instances.c.app_name == app_name, here, recent)
    order = (instances.c.seen_at.desc(), instances.c.instance_id)
    return [instance_to_json(row) for row in tx.db.execute(rows.order_by(*order).limit(MAX_INSTANCES))]


def instance_to_json(row: Row[Any]) -> dict[str, Any]:
    facts = shown(row, "appName", "instanceId", "sdkVersion", "sdkType", "clientIp")
    return facts | {"lastSeen": format_time(row.seen_at)} | shown(row, "createdAt", "environment")
