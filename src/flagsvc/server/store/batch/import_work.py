"""The state that the steps of an import share (import validation 6.3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import bindparam, select, update

from flagsvc.server.store.actors import Actor
from flagsvc.server.store.batch.database_facts import DatabaseFacts, StoredFeature, TargetProject, read_features
from flagsvc.server.store.batch.dataset import DataSet, Json
from flagsvc.server.store.resources.features import no_feature
from flagsvc.server.store.schema import feature_environments
from flagsvc.server.store.store import Tx
from flagsvc.server.store.upsert import chunks


@dataclass(frozen=True)
class FeatureState:
    """A feature in the target environment: whether it is on, and its variants."""

    enabled: bool
    variants: list[Json]


@dataclass
class ImportWork:
    """A running import: the cleaned data set, the database's facts before it, and the actor.

    `features` are all those that the data set names, as stored after the first step.
    """

    tx: Tx
    actor: Actor
    data: DataSet
    known: DatabaseFacts
    features: dict[str, StoredFeature] = field(default_factory=dict)

    @property
    def project(self) -> TargetProject:
        """The target project; one with default values where it does not exist."""
        return self.known.project or TargetProject(self.data.project)

    def load_features(self) -> None:
        """Read every feature that the data set names."""
        data = self.data
        named = [
            *data.names,
            *data.parents,
            *(each["featureName"] for each in (*data.strategies, *data.environments, *data.tags)),
            *(each["name"] for each in data.environments),
            *(each["feature"] for each in data.links),
        ]
        self.features = read_features(self.tx, named)

    def require(self, name: str) -> StoredFeature:
        """Return a feature of the target project. Raises CallerError (404) if the project does not have it."""
        stored = self.features.get(name)
        if stored is None or stored.project != self.data.project:
            raise no_feature(name, self.data.project, None if stored is None else stored.project)
        return stored

    def record_event(
        self, kind: str, feature: str, *, before: Any = None, data: Any = None, here: bool = False
    ) -> None:
        """Record an event of a feature; `here` adds the target environment."""
        place = {"project": self.data.project, "environment": self.data.environment if here else None}
        self.tx.record_event(kind, **place, feature=feature, before=before, data=data)


def read_states(work: ImportWork, names: Iterable[str]) -> dict[str, FeatureState]:
    """Return the states of the features that are in the target environment."""
    state = feature_environments.c
    query = select(state.feature, state.enabled, state.variants).where(state.environment == work.data.environment)
    return {
        row.feature: FeatureState(row.enabled, row.variants or [])
        for chunk in chunks(dict.fromkeys(names))
        for row in work.tx.db.execute(query.where(state.feature.in_(chunk)))
    }


def update_states(work: ImportWork, column: str, values: dict[str, Any]) -> None:
    """Set a column of features in the target environment; `values` is by feature."""
    if not values:
        return
    state = feature_environments.c
    which = state.feature == bindparam("which"), state.environment == work.data.environment
    statement = update(feature_environments).where(*which).values({column: bindparam("value")})
    work.tx.db.execute(statement, [{"which": name, "value": value} for name, value in values.items()])
