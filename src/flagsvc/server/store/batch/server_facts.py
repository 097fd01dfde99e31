"""The facts about a server that the checks of an import need, and the problems they find. Plain values, no database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from flagsvc.server.store.batch.dataset import DataSet


class ServerFlag(NamedTuple):
    """A flag of a server: its project; whether it is archived, in the target environment, a child, a parent."""

    project: str
    archived: bool = False
    in_environment: bool = True
    has_parents: bool = False
    has_children: bool = False


@dataclass(frozen=True)
class ServerFacts:
    """The facts about a server that matter to a data set. `flags` are those that the data names.

    None means unknown: checks that need that fact are skipped. `environments` are the project's; `context_fields` maps fields to
    legal values. `limited_storage`: the server can store neither half a surrogate pair in JSON nor a fractional sort order.
    """

    flags: Mapping[str, ServerFlag]
    environments: frozenset[str] | None = None
    tag_types: frozenset[str] | None = None
    context_fields: Mapping[str, Sequence[str]] | None = None
    limited_storage: bool = False


class ImportProblem(NamedTuple):
    """One reason why a data set cannot be imported: the flag, the place within the flag, and the message.

    `rule` is an identifier for programs. `flag` is empty if no flag uses the faulty entry.
    """

    rule: str
    flag: str
    place: str
    message: str


@dataclass(frozen=True)
class CheckedDataSet:
    """A cleaned data set and the facts about the server, as the checks use them."""

    data: DataSet
    facts: ServerFacts

    @cached_property
    def flags(self) -> dict[str, ServerFlag]:
        """The flags as they would be after the import."""
        in_environment = self.facts.environments is None or self.data.environment in self.facts.environments
        found = dict(self.facts.flags)
        for each in self.data.features:
            flag = found.get(each["name"], ServerFlag(self.data.project, in_environment=in_environment))
            if flag.project == self.data.project:
                found[each["name"]] = flag._replace(archived=bool(each.get("archived")))
        return found

    @cached_property
    def legal(self) -> dict[str, list[str]]:
        """The legal values by context field, as they would be after the import; empty if they are unknown."""
        if self.facts.context_fields is None:
            return {}
        new = {
            each["name"]: [value["value"] for value in each.get("legalValues") or ()]
            for each in self.data.context_fields
        }
        return new | {name: list(values) for name, values in self.facts.context_fields.items()}
