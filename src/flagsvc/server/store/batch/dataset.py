"""The data set of an import, as validation and import read it, and its cleaning (import validation 2; 6.1).

The functions expect a body whose shape was checked, and do not change it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

Json: TypeAlias = dict[str, Any]

DATA_MEMBERS = {
    "features": "features",
    "strategies": "featureStrategies",
    "environments": "featureEnvironments",
    "context_fields": "contextFields",
    "tags": "featureTags",
    "segments": "segments",
    "tag_types": "tagTypes",
    "dependencies": "dependencies",
    "links": "links",
}
"""Field of a data set → member of the body's `data`."""


@dataclass(frozen=True)
class DataSet:
    """What to import, and into which project and environment; a list that was not sent is empty."""

    project: str
    environment: str
    features: list[Json]
    strategies: list[Json]
    environments: list[Json]
    context_fields: list[Json]
    tags: list[Json]
    segments: list[Json]
    tag_types: list[Json]
    dependencies: list[Json]
    links: list[Json]

    @property
    def names(self) -> list[str]:
        """The names of the features, with repeats."""
        return [each["name"] for each in self.features]

    @property
    def parents(self) -> list[str]:
        """The parents that dependencies name, with repeats."""
        return [parent["feature"] for each in self.dependencies for parent in each["dependencies"]]

    @property
    def all_names(self) -> list[str]:
        """The names of all features in the data set, once each."""
        found = [*self.names, *self.parents, *(each["name"] for each in self.environments)]
        found += (each.get("featureName", "") for each in (*self.strategies, *self.environments, *self.tags))
        found += (each["feature"] for each in (*self.links, *self.dependencies))
        return list(dict.fromkeys(found))

    def with_variants(self) -> Iterator[Json]:
        """Return the entries of featureEnvironments that have variants."""
        return (each for each in self.environments if each.get("variants"))


class RequestedDependency(NamedTuple):
    """A dependency to import: the child, the project of the child's entry, and the required state of the parent."""

    child: str
    project: str
    requirement: Json


def read_data_set(body: Mapping[str, Any]) -> DataSet:
    """Return the data set of a body that has the shape of importTogglesSchema."""
    lists = {field: list(body["data"].get(member, ())) for field, member in DATA_MEMBERS.items()}
    return DataSet(project=body["project"], environment=body["environment"], **lists)


def clean_data_set(data: DataSet, archived: Set[str]) -> DataSet:
    """Return a data set without archived features and their entries, entries without a feature, and unused tag types.
    Links and dependencies stay (import validation 6.1).
    """
    tags = [each for each in data.tags if each["featureName"] not in archived]
    used = {each.get("tagType") for each in tags}
    return replace(
        data,
        features=[each for each in data.features if each["name"] not in archived],
        environments=_of_features(data.environments, archived),
        strategies=_of_features(data.strategies, archived),
        tags=tags,
        tag_types=[each for each in data.tag_types if each["name"] in used],
    )


def _of_features(entries: list[Json], archived: Set[str]) -> list[Json]:
    return [each for each in entries if each.get("featureName") and each["featureName"] not in archived]


def list_requested_dependencies(data: DataSet) -> list[RequestedDependency]:
    """Return the dependencies whose children are in the data set with a project; others are skipped."""
    entries: dict[str, Json] = {}
    for each in data.features:
        entries.setdefault(each["name"], each)
    owners = {name: each["project"] for name, each in entries.items() if each.get("project")}
    return [
        RequestedDependency(each["feature"], owners[each["feature"]], requirement)
        for each in data.dependencies
        if each["feature"] in owners
        for requirement in each["dependencies"]
    ]


def find_repeated(names: list[str]) -> list[str]:
    """Return each repeated name once, in the order of its second occurrence."""
    seen: set[str] = set()
    found: dict[str, None] = {}
    for name in names:
        if name in seen:
            found[name] = None
        seen.add(name)
    return list(found)
