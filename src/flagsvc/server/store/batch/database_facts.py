"""Reads the facts in the database that matter to a data set; a few queries for any size of set (import validation 4)."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import func, select

from flagsvc.server.store.batch.dataset import DataSet
from flagsvc.server.store.batch.facts import Facts, KnownContextField, KnownFeature, KnownSegment, TargetProject
from flagsvc.server.store.resources.features import find_all
from flagsvc.server.store.schema import (
    context_fields,
    environments,
    features,
    project_environments,
    projects,
    segments,
    strategies,
    strategy_types,
    tag_types,
)
from flagsvc.server.store.store import Tx
from flagsvc.server.store.upsert import chunks


def read_database_facts(tx: Tx, data: DataSet) -> Facts:
    """Return the facts that matter to a data set."""
    places = select(project_environments.c.environment).where(project_environments.c.project == data.project)
    types = select(strategy_types.c.name, strategy_types.c.built_in)
    fields = select(context_fields.c.name, context_fields.c.project, context_fields.c.legal_values)
    held = select(segments.c.name, segments.c.id, segments.c.project)
    there = select(environments.c.name).where(environments.c.name == data.environment)
    project = _read_project(tx, data.project)
    return Facts(
        features=read_features(tx, [*data.names, *data.parents]),
        project=project,
        environment=tx.db.execute(there).first() is not None,
        environments=() if project is None else tuple(tx.db.execute(places).scalars()),
        strategy_types={row.name: not row.built_in for row in tx.db.execute(types)},
        context_fields={
            row.name: KnownContextField(row.project, frozenset(each["value"] for each in row.legal_values or ()))
            for row in tx.db.execute(fields)
        },
        segments={row.name: KnownSegment(row.id, row.project) for row in tx.db.execute(held)},
        tag_types=frozenset(tx.db.execute(select(tag_types.c.name)).scalars()),
        has_strategies=not data.features or _has_strategies(tx, data.names, data.environment),
    )


def _read_project(tx: Tx, name: str) -> TargetProject | None:
    row = tx.db.execute(select(projects).where(projects.c.id == name)).one_or_none()
    if row is None:
        return None
    active = select(func.count()).where(features.c.project == name, features.c.archived_at.is_(None))
    return TargetProject(
        id=row.id,
        archived=row.archived_at is not None,
        limit=row.feature_limit,
        active=int(tx.db.execute(active).scalar_one()),
        pattern=row.naming_pattern or "",
        example=row.naming_example or "",
        description=row.naming_description or "",
        stickiness=row.default_stickiness or "default",
    )


def read_features(tx: Tx, names: Iterable[str]) -> dict[str, KnownFeature]:
    """Return the stored features of these names, in order of creation."""
    rows = find_all(tx, list(names))
    return {row.name: KnownFeature(row.project, archived=row.archived_at is not None) for row in rows}


def _has_strategies(tx: Tx, names: Iterable[str], environment: str) -> bool:
    query = select(strategies.c.id).where(strategies.c.environment == environment).limit(1)
    return any(
        tx.db.execute(query.where(strategies.c.feature.in_(chunk))).first() is not None
        for chunk in chunks(dict.fromkeys(names))
    )
