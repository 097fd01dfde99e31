"""Projects as the admin API answers them (the real server's /api/admin/projects); and which project an object belongs to."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, case, func, select

from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import bad_data, not_found
from flagsvc.server.store.members import shown
from flagsvc.server.store.resources.feature_views import list_in_project
from flagsvc.server.store.schema import (
    context_fields,
    environments,
    events,
    feature_environments,
    features,
    project_environments,
    project_roles,
    projects,
    segments,
)
from flagsvc.server.store.store import Tx
from flagsvc.server.store.timestamps import format_time
from flagsvc.server.store.upsert import count_rows

FULL_HEALTH = 100
NO_PROJECT = "No project found"
SYSTEM_OWNER = [{"ownerType": "system"}]
"""The owners of a project without an owner who is a user."""


def list_all(tx: Tx, *, archived: bool = False) -> list[Json]:
    """Return the active projects, or the archived ones, sorted by name."""
    which = projects.c.archived_at.is_not(None) if archived else projects.c.archived_at.is_(None)
    rows = tx.db.execute(select(projects).where(which).order_by(projects.c.name, projects.c.id)).all()
    flags, members = _count_features(tx), _count_members(tx)
    changed, used = _read_last_changes(tx), _read_last_usage(tx)
    return [
        {
            **shown(row, "name", "id", "description"),
            **health_to_json(*flags.get(row.id, (0, 0))),
            "featureCount": flags.get(row.id, (0, 0))[0],
            "memberCount": members.get(row.id, 0),
            **shown(row, "createdAt", "archivedAt", "mode"),
            "lastReportedFlagUsage": format_time(used.get(row.id)),
            "lastUpdatedAt": format_time(changed.get(row.id)),
            "owners": SYSTEM_OWNER,
        }
        for row in rows
    ]


def list_names(tx: Tx) -> list[Json]:
    """Return id and name of the active projects, sorted as `list_all` does. It counts nothing, so that it is cheap."""
    query = select(projects.c.id, projects.c.name).where(projects.c.archived_at.is_(None))
    rows = tx.db.execute(query.order_by(projects.c.name, projects.c.id))
    return [{"id": row.id, "name": row.name} for row in rows]


def count_flags(tx: Tx, project: str) -> int:
    """Return the number of active features of a project."""
    return count_rows(tx, features, features.c.project == project, features.c.archived_at.is_(None))


def health_to_json(count: int, stale: int) -> Json:
    """Return the health of a project, the percentage of its features that are not stale, and its debt, the rest to 100."""
    debt = int(FULL_HEALTH * stale / count + 0.5) if count else 0
    return {"health": FULL_HEALTH - debt, "technicalDebt": debt}


def _count_features(tx: Tx) -> dict[str, tuple[int, int]]:
    """Return the numbers of active features and of stale ones among them, by project."""
    stale = func.sum(case((features.c.stale, 1), else_=0))
    query = select(features.c.project, func.count(), stale).where(features.c.archived_at.is_(None))
    return {project: (count, int(old)) for project, count, old in tx.db.execute(query.group_by(features.c.project))}


def _count_members(tx: Tx) -> dict[str, int]:
    count = func.count(project_roles.c.user_id.distinct())
    return {row[0]: row[1] for row in tx.db.execute(select(project_roles.c.project, count).group_by(project_roles.c.project))}


def _read_last_changes(tx: Tx) -> dict[str, Any]:
    query = select(events.c.project, func.max(events.c.created_at)).where(events.c.project.is_not(None))
    return {row[0]: row[1] for row in tx.db.execute(query.group_by(events.c.project))}


def _read_last_usage(tx: Tx) -> dict[str, Any]:
    """Return when a feature was last evaluated, by project. The times of environments are fewer rows than hours of usage."""
    joined = feature_environments.join(features, features.c.name == feature_environments.c.feature)
    query = select(features.c.project, func.max(feature_environments.c.last_seen_at)).select_from(joined)
    return {row[0]: row[1] for row in tx.db.execute(query.group_by(features.c.project))}


def find(tx: Tx, project: str) -> Row[Any]:
    """Return a project's row, archived or not. Raises CallerError (404)."""
    row = tx.db.execute(select(projects).where(projects.c.id == project)).first()
    if row is None:
        raise not_found(NO_PROJECT)
    return row


def get_overview(tx: Tx, project: str) -> Json:
    """Return a project with its environments and its numbers of features by type. Raises CallerError (404)."""
    row = find(tx, project)
    return _to_json(tx, row) | {"linkTemplates": [], "featureTypeCounts": _count_types(tx, project)}


def get_health_report(tx: Tx, project: str) -> Json:
    """Return a project with its active features and the number of stale ones. Raises CallerError (404)."""
    row = find(tx, project)
    count, stale = _count_features(tx).get(project, (0, 0))
    counts = {"potentiallyStaleCount": 0, "activeCount": count - stale, "staleCount": stale}
    return _to_json(tx, row) | {"features": list_in_project(tx, project)} | counts


def _to_json(tx: Tx, row: Row[Any]) -> Json:
    archived = {} if row.archived_at is None else {"archivedAt": format_time(row.archived_at)}
    return {
        "version": 1,
        **shown(row, "name", "description", "mode", "featureLimit"),
        "featureNaming": _naming_to_json(row),
        "defaultStickiness": row.default_stickiness,
        **health_to_json(*_count_features(tx).get(row.id, (0, 0))),
        "favorite": False,
        "updatedAt": format_time(row.updated_at or row.created_at),
        **archived,
        "createdAt": format_time(row.created_at),
        "environments": [{"environment": name} for name in environments_of(tx, row.id)],
        "members": _count_members(tx).get(row.id, 0),
    }


def _naming_to_json(row: Row[Any]) -> Json:
    return {"pattern": row.naming_pattern, "example": row.naming_example, "description": row.naming_description}


def settings_to_json(tx: Tx, row: Row[Any]) -> Json:
    """Return a project as events hold it, without its roles."""
    return {
        **shown(row, "id", "name", "description", "mode", "featureLimit"),
        "featureNaming": _naming_to_json(row),
        **shown(row, "defaultStickiness", "createdAt", "archivedAt"),
        "environments": environments_of(tx, row.id),
    }


def environments_of(tx: Tx, project: str) -> list[str]:
    joined = project_environments.join(environments, environments.c.name == project_environments.c.environment)
    query = select(environments.c.name).select_from(joined).where(project_environments.c.project == project)
    return list(tx.db.execute(query.order_by(environments.c.sort_order, environments.c.name)).scalars())


def _count_types(tx: Tx, project: str) -> list[Json]:
    here = features.c.project == project, features.c.archived_at.is_(None)
    query = select(features.c.type, func.count()).where(*here).group_by(features.c.type).order_by(features.c.type)
    return [{"type": kind, "count": count} for kind, count in tx.db.execute(query)]


def check_project_exists(tx: Tx, project: str | None) -> None:
    """Raise CallerError (400; ours: the real server answers 500) for a project that does not exist."""
    if project is not None and not tx.db.execute(select(projects.c.id).where(projects.c.id == project)).first():
        raise bad_data(f"Project '{project}' does not exist")


def project_of_feature(tx: Tx, feature: str) -> str | None:
    """Return the project of a feature, archived or not; None for one that does not exist."""
    return tx.db.execute(select(features.c.project).where(features.c.name == feature)).scalar_one_or_none()


def project_of_segment(tx: Tx, number: int) -> str | None:
    """Return the project of a segment; None for a segment of all projects, and for one that does not exist."""
    return tx.db.execute(select(segments.c.project).where(segments.c.id == number)).scalar_one_or_none()


def project_of_field(tx: Tx, name: str) -> str | None:
    """Return the project of a context field; None for a field of all projects, and for one that does not exist."""
    return tx.db.execute(select(context_fields.c.project).where(context_fields.c.name == name)).scalar_one_or_none()
