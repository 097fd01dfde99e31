"""A data set as validation and import read it, and its cleaning (import validation 2; 6.1).

Everything here works on a body that has its shape already, and changes nothing of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

Json: TypeAlias = dict[str, Any]

LISTS = {
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
    """What is to be imported, and into which project and environment; a list that was not sent is empty."""

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
        """The names of the features, repeats kept."""
        return [each["name"] for each in self.features]

    @property
    def parents(self) -> list[str]:
        """The parents that dependencies name, repeats kept."""
        return [parent["feature"] for each in self.dependencies for parent in each["dependencies"]]

    def with_variants(self) -> Iterator[Json]:
        """Give the entries of featureEnvironments that bring variants."""
        return (each for each in self.environments if each.get("variants"))


class RequestedDependency(NamedTuple):
    """A dependency that is to be: the child, the project its entry names, and what it asks of the parent."""

    child: str
    project: str
    asked: Json


def read_data_set(body: Mapping[str, Any]) -> DataSet:
    """Return the data set of a body, coerced to the shape of importTogglesSchema."""
    lists = {field: list(body["data"].get(member, ())) for field, member in LISTS.items()}
    return DataSet(project=body["project"], environment=body["environment"], **lists)


def cleaned(data: DataSet, archived: Collection[str]) -> DataSet:
    """Return a data set without what is not imported: archived features with what is theirs, entries without a feature, and
    tag types that no tag left has. Links and dependencies stay (import validation 6.1).
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


def _of_features(entries: list[Json], archived: Collection[str]) -> list[Json]:
    return [each for each in entries if each.get("featureName") and each["featureName"] not in archived]


def wishes_of(data: DataSet) -> list[RequestedDependency]:
    """Return the dependencies of children that are in the data set with a project; others are passed over."""
    entries: dict[str, Json] = {}
    for each in data.features:
        entries.setdefault(each["name"], each)
    owners = {name: each["project"] for name, each in entries.items() if each.get("project")}
    return [
        RequestedDependency(each["feature"], owners[each["feature"]], asked)
        for each in data.dependencies
        if each["feature"] in owners
        for asked in each["dependencies"]
    ]


def repeated(names: list[str]) -> list[str]:
    """Return the names that come more than once, each once, in the order of their second occurrence."""
    seen: set[str] = set()
    found: dict[str, None] = {}
    for name in names:
        if name in seen:
            found[name] = None
        seen.add(name)
    return list(found)
