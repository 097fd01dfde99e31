"""What the checks of an import ask of a server, and what they find: values that need no database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from flagsvc.server.store.batch.dataset import DataSet


class ServerFlag(NamedTuple):
    """A flag that a server has: its project, whether it is archived, in the environment, has parents, has children."""

    project: str
    archived: bool = False
    here: bool = True
    has_parents: bool = False
    has_children: bool = False


@dataclass(frozen=True)
class Facts:
    """What a server says about a data set. `flags` are those that the data names.

    What is None is not known, and what depends on it is not checked. `environments` are those of the project, `context_fields` the
    legal values by field. `narrow`: the server cannot store half a surrogate pair within JSON, nor a sort order with a fraction.
    """

    flags: Mapping[str, ServerFlag]
    environments: frozenset[str] | None = None
    tag_types: frozenset[str] | None = None
    context_fields: Mapping[str, Sequence[str]] | None = None
    narrow: bool = False


class ImportProblem(NamedTuple):
    """One thing that keeps a data set from being imported: the flag it is about, where in it, and what is wrong.

    `rule` is a word for programs. `flag` is empty where no flag uses what is wrong.
    """

    rule: str
    flag: str
    place: str
    message: str


@dataclass(frozen=True)
class CheckedDataSet:
    """A cleaned data set beside what the server says, as the checks see them."""

    data: DataSet
    facts: Facts

    @cached_property
    def flags(self) -> dict[str, ServerFlag]:
        """The flags as they are once those of the data set are written."""
        here = self.facts.environments is None or self.data.environment in self.facts.environments
        found = dict(self.facts.flags)
        for each in self.data.features:
            flag = found.get(each["name"], ServerFlag(self.data.project, here=here))
            if flag.project == self.data.project:
                found[each["name"]] = flag._replace(archived=bool(each.get("archived")))
        return found

    @cached_property
    def legal(self) -> dict[str, list[str]]:
        """The legal values by context field, once the new fields are written; none where they are not known."""
        if self.facts.context_fields is None:
            return {}
        new = {
            each["name"]: [value["value"] for value in each.get("legalValues") or ()]
            for each in self.data.context_fields
        }
        return new | {name: list(values) for name, values in self.facts.context_fields.items()}
