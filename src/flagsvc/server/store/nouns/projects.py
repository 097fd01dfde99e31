"""Projects as the admin API shows them (the real server's /api/admin/projects). They are made by the seed file."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, case, func, select

from flagsvc.server.store.checks import Json
from flagsvc.server.store.moments import shown
from flagsvc.server.store.nouns.feature_views import list_in
from flagsvc.server.store.refusals import not_found
from flagsvc.server.store.schema import (
    environments,
    events,
    features,
    project_environments,
    project_roles,
    projects,
    usage,
)
from flagsvc.server.store.store import Tx

FULL = 100
SYSTEM = [{"ownerType": "system"}]
"""What owns a project that no user owns."""


def list_all(tx: Tx, *, archived: bool = False) -> list[Json]:
    """Return the active projects, or the archived ones, by name."""
    which = projects.c.archived_at.is_not(None) if archived else projects.c.archived_at.is_(None)
    rows = tx.db.execute(select(projects).where(which).order_by(projects.c.name, projects.c.id)).all()
    flags, members = _flags(tx), _members(tx)
    changed, used = _changed(tx), _used(tx)
    return [
        {
            "name": row.name,
            "id": row.id,
            "description": row.description,
            **health(*flags.get(row.id, (0, 0))),
            "featureCount": flags.get(row.id, (0, 0))[0],
            "memberCount": members.get(row.id, 0),
            "createdAt": shown(row.created_at),
            "archivedAt": shown(row.archived_at),
            "mode": row.mode,
            "lastReportedFlagUsage": shown(used.get(row.id)),
            "lastUpdatedAt": shown(changed.get(row.id)),
            "owners": SYSTEM,
        }
        for row in rows
    ]


def health(count: int, stale: int) -> Json:
    """Return the health of a project, the share in percent of its features that are not stale, and what is left of it."""
    debt = int(FULL * stale / count + 0.5) if count else 0
    return {"health": FULL - debt, "technicalDebt": debt}


def _flags(tx: Tx) -> dict[str, tuple[int, int]]:
    """Return how many active features projects have, and how many of these are stale."""
    stale = func.sum(case((features.c.stale, 1), else_=0))
    query = select(features.c.project, func.count(), stale).where(features.c.archived_at.is_(None))
    return {project: (count, int(old)) for project, count, old in tx.db.execute(query.group_by(features.c.project))}


def _members(tx: Tx) -> dict[str, int]:
    """Return how many users have a role in projects."""
    count = func.count(project_roles.c.user_id.distinct())
    return {
        row[0]: row[1]
        for row in tx.db.execute(select(project_roles.c.project, count).group_by(project_roles.c.project))
    }


def _changed(tx: Tx) -> dict[str, Any]:
    """Return when something last happened in projects."""
    query = select(events.c.project, func.max(events.c.created_at)).where(events.c.project.is_not(None))
    return {row[0]: row[1] for row in tx.db.execute(query.group_by(events.c.project))}


def _used(tx: Tx) -> dict[str, Any]:
    """Return the last hour in which some feature of projects was evaluated."""
    joined = usage.join(features, features.c.name == usage.c.feature)
    query = select(features.c.project, func.max(usage.c.hour)).select_from(joined)
    return {row[0]: row[1] for row in tx.db.execute(query.group_by(features.c.project))}


def find(tx: Tx, project: str) -> Row[Any]:
    """Return a project's row, archived or not. Raises Refusal (404)."""
    row = tx.db.execute(select(projects).where(projects.c.id == project)).first()
    if row is None:
        raise not_found("No project found")
    return row


def overview(tx: Tx, project: str) -> Json:
    """Return a project with its environments and what features it has. Raises Refusal (404)."""
    row = find(tx, project)
    return _described(tx, row) | {"linkTemplates": [], "featureTypeCounts": _types(tx, project)}


def health_report(tx: Tx, project: str) -> Json:
    """Return a project with its active features and how many of them are stale. Raises Refusal (404)."""
    row = find(tx, project)
    count, stale = _flags(tx).get(project, (0, 0))
    counts = {"potentiallyStaleCount": 0, "activeCount": count - stale, "staleCount": stale}
    return _described(tx, row) | {"features": list_in(tx, project)} | counts


def _described(tx: Tx, row: Row[Any]) -> Json:
    naming = {"pattern": row.naming_pattern, "example": row.naming_example, "description": row.naming_description}
    gone = {} if row.archived_at is None else {"archivedAt": shown(row.archived_at)}
    return {
        "version": 1,
        "name": row.name,
        "description": row.description,
        "mode": row.mode,
        "featureLimit": row.feature_limit,
        "featureNaming": naming,
        "defaultStickiness": row.default_stickiness,
        **health(*_flags(tx).get(row.id, (0, 0))),
        "favorite": False,
        "updatedAt": shown(row.updated_at or row.created_at),
        **gone,
        "createdAt": shown(row.created_at),
        "environments": [{"environment": name} for name in environments_of(tx, row.id)],
        "members": _members(tx).get(row.id, 0),
    }


def environments_of(tx: Tx, project: str) -> list[str]:
    """Return the environments of a project, in their order."""
    joined = project_environments.join(environments, environments.c.name == project_environments.c.environment)
    query = select(environments.c.name).select_from(joined).where(project_environments.c.project == project)
    return list(tx.db.execute(query.order_by(environments.c.sort_order, environments.c.name)).scalars())


def _types(tx: Tx, project: str) -> list[Json]:
    here = features.c.project == project, features.c.archived_at.is_(None)
    query = select(features.c.type, func.count()).where(*here).group_by(features.c.type).order_by(features.c.type)
    return [{"type": kind, "count": count} for kind, count in tx.db.execute(query)]
