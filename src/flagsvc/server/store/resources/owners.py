"""Finds the projects of features, segments and context fields."""

from __future__ import annotations

from sqlalchemy import select

from flagsvc.server.store.errors import bad_data
from flagsvc.server.store.schema import context_fields, features, projects, segments
from flagsvc.server.store.store import Tx


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
