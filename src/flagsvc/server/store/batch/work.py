"""What the steps of an import share (import validation 6.3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import bindparam, select, update

from flagsvc.server.store.actors import Actor
from flagsvc.server.store.batch.dataset import DataSet, Json
from flagsvc.server.store.batch.known import DatabaseFacts, StoredFeature, TargetProject, read_features
from flagsvc.server.store.nouns.features import no_feature
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
    """An import under way: the cleaned data set, what the database said before, and who imports.

    `features` are those that the data set names in any place, as they are once its features are written.
    """

    tx: Tx
    actor: Actor
    data: DataSet
    known: DatabaseFacts
    features: dict[str, StoredFeature] = field(default_factory=dict)

    @property
    def project(self) -> TargetProject:
        """The target project, with nothing set where it does not exist."""
        return self.known.project or TargetProject(self.data.project)

    def look_up(self) -> None:
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
        """Return a feature of the target project. Raises Refusal (404) where the project has none of that name."""
        stored = self.features.get(name)
        if stored is None or stored.project != self.data.project:
            raise no_feature(name, self.data.project, None if stored is None else stored.project)
        return stored

    def tell(self, kind: str, feature: str, data: Any = None, *, here: bool = False) -> None:
        """Tell that something happened to a feature; `here` in the target environment."""
        environment = self.data.environment if here else None
        self.tx.event(kind, project=self.data.project, environment=environment, feature=feature, data=data)


def read_places(work: ImportWork, names: Iterable[str]) -> dict[str, FeatureState]:
    """Return those of the features that are in the target environment."""
    state = feature_environments.c
    query = select(state.feature, state.enabled, state.variants).where(state.environment == work.data.environment)
    return {
        row.feature: FeatureState(row.enabled, row.variants or [])
        for some in chunks(dict.fromkeys(names))
        for row in work.tx.db.execute(query.where(state.feature.in_(some)))
    }


def change_places(work: ImportWork, column: str, values: dict[str, Any]) -> None:
    """Write a column of features in the target environment, by feature."""
    if not values:
        return
    state = feature_environments.c
    which = state.feature == bindparam("which"), state.environment == work.data.environment
    statement = update(feature_environments).where(*which).values({column: bindparam("value")})
    work.tx.db.execute(statement, [{"which": name, "value": value} for name, value in values.items()])
