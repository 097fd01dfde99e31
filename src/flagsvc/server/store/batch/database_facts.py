"""The facts in the database that matter to a data set; a few queries read them for any size of set (import validation 4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from sqlalchemy import Row, func, select

from flagsvc.server.store.batch.dataset import DataSet
from flagsvc.server.store.naming_pattern import NamingPattern
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


@dataclass(frozen=True)
class TargetProject:
    """The target project. `limit` is the most active features it may have, `active` how many it has. Empty texts are unset."""

    id: str
    archived: bool = False
    limit: int | None = None
    active: int = 0
    pattern: str = ""
    example: str = ""
    description: str = ""
    stickiness: str = "default"
    environments: tuple[str, ...] = ()

    @cached_property
    def naming(self) -> NamingPattern:
        """The naming pattern, with a limit of time for this request."""
        return NamingPattern(self.pattern, self.example, self.description)


@dataclass(frozen=True)
class StoredFeature:
    """A feature that is stored, active or archived."""

    project: str
    archived_at: datetime | None = None

    @property
    def archived(self) -> bool:
        """Whether it is archived."""
        return self.archived_at is not None


@dataclass(frozen=True)
class KnownContextField:
    """A context field: its project, None for all, and its legal values."""

    project: str | None
    values: frozenset[str]


@dataclass(frozen=True)
class KnownSegment:
    """A segment: its id, and its project, None for all."""

    id: int
    project: str | None


@dataclass(frozen=True)
class DatabaseFacts:
    """Everything that the rules need from the database.

    `project` is None if it does not exist; `environment` tells whether it exists. `features` are those of the data set and its
    parents, by name, in order of creation. `strategy_types` maps each type to whether it is custom. `has_strategies` tells whether
    a feature of the data set has a strategy in the target environment, or the data set has no feature.
    """

    project: TargetProject | None
    environment: bool
    features: Mapping[str, StoredFeature]
    strategy_types: Mapping[str, bool]
    context_fields: Mapping[str, KnownContextField]
    segments: Mapping[str, KnownSegment]
    tag_types: frozenset[str]
    has_strategies: bool


def read_database_facts(tx: Tx, data: DataSet) -> DatabaseFacts:
    """Read the facts that matter to a data set."""
    types = tx.db.execute(select(strategy_types.c.name, strategy_types.c.built_in))
    return DatabaseFacts(
        project=read_project(tx, data.project),
        environment=has_environment(tx, data.environment),
        features=read_features(tx, [*data.names, *data.parents]),
        strategy_types={row.name: not row.built_in for row in types},
        context_fields=_read_context_fields(tx),
        segments=_read_segments(tx),
        tag_types=frozenset(tx.db.execute(select(tag_types.c.name)).scalars()),
        has_strategies=not data.features or _has_strategies(tx, data.names, data.environment),
    )


def read_project(tx: Tx, name: str) -> TargetProject | None:
    """Return a project; None if it does not exist."""
    row = tx.db.execute(select(projects).where(projects.c.id == name)).one_or_none()
    if row is None:
        return None
    query = select(project_environments.c.environment).where(project_environments.c.project == name)
    return _project(row, _count_active(tx, name), tuple(tx.db.execute(query).scalars()))


def _project(row: Row[Any], active: int, places: tuple[str, ...]) -> TargetProject:
    return TargetProject(
        id=row.id,
        archived=row.archived_at is not None,
        limit=row.feature_limit,
        active=active,
        pattern=row.naming_pattern or "",
        example=row.naming_example or "",
        description=row.naming_description or "",
        stickiness=row.default_stickiness or "default",
        environments=places,
    )


def _count_active(tx: Tx, project: str) -> int:
    query = select(func.count()).select_from(features)
    return int(tx.db.execute(query.where(features.c.project == project, features.c.archived_at.is_(None))).scalar_one())


def has_environment(tx: Tx, name: str) -> bool:
    """Return whether an environment exists."""
    return tx.db.execute(select(environments.c.name).where(environments.c.name == name)).first() is not None


def read_features(tx: Tx, names: Iterable[str]) -> dict[str, StoredFeature]:
    """Return the stored features of these names, in order of creation."""
    query = select(features.c.name, features.c.project, features.c.archived_at, features.c.position)
    found: list[tuple[int, str, StoredFeature]] = []
    for chunk in chunks(dict.fromkeys(names)):
        for row in tx.db.execute(query.where(features.c.name.in_(chunk))):
            found.append((row.position, row.name, StoredFeature(row.project, row.archived_at)))
    return {name: stored for _, name, stored in sorted(found, key=lambda each: each[0])}


def _read_context_fields(tx: Tx) -> dict[str, KnownContextField]:
    query = select(context_fields.c.name, context_fields.c.project, context_fields.c.legal_values)
    return {
        row.name: KnownContextField(row.project, frozenset(each["value"] for each in row.legal_values or ()))
        for row in tx.db.execute(query)
    }


def _read_segments(tx: Tx) -> dict[str, KnownSegment]:
    rows = tx.db.execute(select(segments.c.name, segments.c.id, segments.c.project))
    return {row.name: KnownSegment(row.id, row.project) for row in rows}


def _has_strategies(tx: Tx, names: Iterable[str], environment: str) -> bool:
    query = select(strategies.c.id).where(strategies.c.environment == environment).limit(1)
    return any(
        tx.db.execute(query.where(strategies.c.feature.in_(chunk))).first() is not None
        for chunk in chunks(dict.fromkeys(names))
    )
