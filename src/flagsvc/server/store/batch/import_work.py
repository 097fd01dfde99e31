"""The state that the steps of an import share (import validation 6.3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from flagsvc.server.store.actors import Actor
from flagsvc.server.store.batch.database_facts import read_features
from flagsvc.server.store.batch.dataset import DataSet
from flagsvc.server.store.batch.facts import Facts, KnownFeature, TargetProject
from flagsvc.server.store.resources.features import no_feature
from flagsvc.server.store.resources.strategies import StrategyPlace
from flagsvc.server.store.store import Tx


@dataclass
class ImportWork:
    """A running import: the cleaned data set, the database's facts before it, and the actor.

    `features` are all those that the data set names, as stored after the first step.
    """

    tx: Tx
    actor: Actor
    data: DataSet
    known: Facts
    features: dict[str, KnownFeature] = field(default_factory=dict)

    @property
    def project(self) -> TargetProject:
        """The target project; one with default values where it does not exist."""
        return self.known.project or TargetProject(self.data.project)

    def load_features(self) -> None:
        """Read every feature that the data set names."""
        self.features = read_features(self.tx, self.data.all_names)

    def require(self, name: str) -> KnownFeature:
        """Return a feature of the target project. Raises CallerError (404) if the project does not have it."""
        stored = self.features.get(name)
        if stored is None or stored.project != self.data.project:
            raise no_feature(name, self.data.project, None if stored is None else stored.project)
        return stored

    def place_of(self, feature: str) -> StrategyPlace:
        """Return the place of a feature in the target environment."""
        return StrategyPlace(self.data.project, feature, self.data.environment)

    def record_event(self, kind: str, feature: str, *, before: Any = None, data: Any = None) -> None:
        """Record an event of a feature."""
        self.tx.record_event(kind, project=self.data.project, feature=feature, before=before, data=data)
