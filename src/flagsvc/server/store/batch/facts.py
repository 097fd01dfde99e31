"""The facts about a server that the rules of an import need, and the problems that rules find. Plain values, no database.

`importing.py` reads all facts that a database has. Commands read from another server's API what the token may read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from flagsvc.server.store.actors import Actor
from flagsvc.server.store.batch.dataset import DataSet

if TYPE_CHECKING:
    from flagsvc.server.store.naming_pattern import NamingPattern
    from flagsvc.server.store.patterns import UncheckedNameError


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

    @cached_property
    def naming(self) -> NamingPattern:
        """The naming pattern, with a limit of time for this request."""
        from flagsvc.server.store.naming_pattern import NamingPattern  # commands need no patterns

        return NamingPattern(self.pattern, self.example, self.description)


class KnownFeature(NamedTuple):
    """A feature of a server: its project; whether it is archived, in the target environment, a child, a parent.

    Of a database the last three have their defaults, because an import reads them at the step that needs them.
    """

    project: str
    archived: bool = False
    in_environment: bool = True
    has_parents: bool = False
    has_children: bool = False


class KnownContextField(NamedTuple):
    """A context field: its project, None for all, and its legal values."""

    project: str | None
    values: Set[str]


class KnownSegment(NamedTuple):
    """A segment: its id, and its project, None for all."""

    id: int
    project: str | None


@dataclass(frozen=True)
class Facts:
    """The facts about a server that matter to a data set. Rules that need one of the `unknown` fields are skipped.

    `features` are those that the data set names, of a database in order of creation. `project` is None if it does not exist;
    `environment` tells whether the target environment exists, `environments` are those of the project. `strategy_types` maps each
    type to whether it is custom. `has_strategies` tells whether a feature of the data set has a strategy in the target
    environment, or the data set has no feature. `limited_storage`: the server can store neither half a surrogate pair in JSON nor
    a fractional sort order.
    """

    features: Mapping[str, KnownFeature]
    project: TargetProject | None = None
    environment: bool = True
    environments: Collection[str] = ()
    strategy_types: Mapping[str, bool] = field(default_factory=dict)
    context_fields: Mapping[str, KnownContextField] = field(default_factory=dict)
    segments: Mapping[str, KnownSegment] = field(default_factory=dict)
    tag_types: Set[str] = frozenset()
    has_strategies: bool = False
    limited_storage: bool = False
    unknown: Set[str] = frozenset()


@dataclass(frozen=True)
class CheckedDataSet:
    """A data set and the facts about the server, as the rules use them. Without an actor, permissions are not checked."""

    data: DataSet
    facts: Facts
    actor: Actor | None = None

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(self.data.names)

    @cached_property
    def existing(self) -> dict[str, KnownFeature]:
        """The features of the data set that the server has, of any project."""
        return {name: known for name, known in self.facts.features.items() if name in self.names}

    @property
    def archived(self) -> list[str]:
        """The features of the data set that are archived, in any project."""
        return [name for name, known in self.existing.items() if known.archived]

    @property
    def overwritten(self) -> list[str]:
        """The features of the data set that are active in the target project."""
        project = self.data.project
        return [name for name, known in self.existing.items() if not known.archived and known.project == project]

    @property
    def project(self) -> TargetProject:
        """The target project; one with default values where it does not exist."""
        return self.facts.project or TargetProject(self.data.project)

    @cached_property
    def verdicts(self) -> dict[str, bool | UncheckedNameError]:
        """Whether each name matches the project's naming pattern, or why that cannot be checked."""
        return {name: self.project.naming.verdict(name) for name in self.data.names}

    @cached_property
    def features(self) -> dict[str, KnownFeature]:
        """The features as they would be after the import."""
        here = "environments" in self.facts.unknown or self.data.environment in self.facts.environments
        new = KnownFeature(self.data.project, in_environment=here)
        found = dict(self.facts.features)
        for each in self.data.features:
            known = found.get(each["name"], new)
            if known.project == self.data.project:
                found[each["name"]] = known._replace(archived=bool(each.get("archived")))
        return found

    @cached_property
    def legal(self) -> dict[str, Collection[str]]:
        """The legal values by context field, as they would be after the import; empty if they are unknown."""
        if "context_fields" in self.facts.unknown:
            return {}
        new: dict[str, Collection[str]] = {
            each["name"]: [value["value"] for value in each.get("legalValues") or ()] for each in self.data.context_fields
        }
        return new | {name: known.values for name, known in self.facts.context_fields.items()}


class ImportProblem(NamedTuple):
    """One reason why a data set cannot be imported: the flag, the place within the flag, and the message.

    `rule` is an identifier for programs. `flag` is empty if no flag uses the faulty entry.
    """

    rule: str
    flag: str
    place: str
    message: str
