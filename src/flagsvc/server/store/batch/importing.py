"""Batch validation and import of a data set into a project (import validation 4; 6), in the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import select

from flagsvc.server.store.actors import Actor
from flagsvc.server.store.batch.dataset import DataSet, Json, clean_data_set, read_data_set
from flagsvc.server.store.batch.facts import (
    CheckedDataSet,
    Facts,
    KnownContextField,
    KnownSegment,
    TargetProject,
)
from flagsvc.server.store.batch.rules import list_findings, refuse
from flagsvc.server.store.batch.steps import STEPS, ImportWork, read_features
from flagsvc.server.store.errors import bad_data, not_found
from flagsvc.server.store.resources.features import not_active
from flagsvc.server.store.resources.projects import count_flags
from flagsvc.server.store.schema import (
    context_fields,
    environments,
    project_environments,
    projects,
    segments,
    strategies,
    strategy_types,
    tag_types,
)
from flagsvc.server.store.store import Tx
from flagsvc.server.store.upsert import chunks

USER_REQUIRED = (
    "You can't use an admin token to import features. Please use either a personal access token "
    "(https://docs.getunleash.io/concepts/api-tokens-and-client-keys#personal-access-tokens) or a service account "
    "(https://docs.getunleash.io/concepts/service-accounts)."
)


def check_importer(actor: Actor) -> None:
    """Raise CallerError (400) for an admin token: only users may import."""
    if not actor.is_user:
        raise bad_data(USER_REQUIRED)


def validate(tx: Tx, actor: Actor, body: Mapping[str, Any], sent: Mapping[str, Any]) -> Json:
    """Return the `errors`, `warnings` and missing `permissions` of an import of the body by the actor.

    `body` has the shape of importTogglesSchema and texts that the database can store. `sent` is the same body with its original
    texts; the rules use it. Raises CallerError (404) if the project or the environment does not exist, or the
    project is archived: the specification lists that answer (the real server does not give it).
    """
    data = read_data_set(sent)
    facts = read_database_facts(tx, read_data_set(body))
    check_target(data, facts)
    return list_findings(CheckedDataSet(data, facts, actor))


def check_target(data: DataSet, facts: Facts) -> None:
    """Raise CallerError (404) unless the target project and environment exist and the project is active."""
    if facts.project is None:
        raise not_found(f"Could not find project with id {data.project}")
    if facts.project.archived:
        raise not_active(data.project)
    if not facts.environment:
        raise not_found(f"Could not find environment with name {data.environment}")


def import_data(tx: Tx, actor: Actor, body: Mapping[str, Any], sent: Mapping[str, Any]) -> None:
    """Import the data set of a body, which has the shape of importTogglesSchema and texts that the database can store.

    `sent` is the same body with its original texts; the checks before the first write use it.
    Raises CallerError (400, 403, 404, 409); the transaction must then be rolled back, as `Store.writing` does.
    """
    data = read_data_set(body)
    known = read_database_facts(tx, data)
    archived = set(CheckedDataSet(data, known).archived)
    clean = clean_data_set(data, archived)
    if len(clean.features) < len(data.features):
        known = read_database_facts(tx, clean)
    refuse(CheckedDataSet(clean_data_set(read_data_set(sent), archived), known, actor))
    work = ImportWork(tx, actor, clean, known)
    for step in STEPS:
        step(work)
    tx.record_event("features-imported", project=data.project, environment=data.environment)


def read_database_facts(tx: Tx, data: DataSet) -> Facts:
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
    return TargetProject(
        id=row.id,
        archived=row.archived_at is not None,
        limit=row.feature_limit,
        active=count_flags(tx, name),
        pattern=row.naming_pattern or "",
        example=row.naming_example or "",
        description=row.naming_description or "",
        stickiness=row.default_stickiness or "default",
    )


def _has_strategies(tx: Tx, names: Iterable[str], environment: str) -> bool:
    query = select(strategies.c.id).where(strategies.c.environment == environment).limit(1)
    return any(
        tx.db.execute(query.where(strategies.c.feature.in_(chunk))).first() is not None for chunk in chunks(dict.fromkeys(names))
    )
