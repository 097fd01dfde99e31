"""The rules of a batch validation: errors and warnings about a data set (import validation 4.1; 4.2).

Pure: a rule gets the data set and the database's facts, and returns the affected items. The tables list the rules in the order
of the answer. A rule without items adds nothing to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from flagsvc.server.store.batch.database_facts import DatabaseFacts
from flagsvc.server.store.batch.dataset import DataSet, Json, find_repeated
from flagsvc.server.store.patterns import UncheckedNameError

Message: TypeAlias = Callable[[DataSet, DatabaseFacts], str]
Finder: TypeAlias = Callable[[DataSet, DatabaseFacts], Sequence[str] | None]


class Rule(NamedTuple):
    """A message, or a function that makes one, and a function that finds the items; None if the rule does not apply."""

    message: str | Message
    find: Finder


def apply(rules: Sequence[Rule], data: DataSet, known: DatabaseFacts) -> list[dict[str, Any]]:
    """Return the results of the rules that apply, in order, each with message and affectedItems."""
    found = ((rule, rule.find(data, known)) for rule in rules)
    return [
        {"message": _message(rule, data, known), "affectedItems": list(items)}
        for rule, items in found
        if items is not None
    ]


def _message(rule: Rule, data: DataSet, known: DatabaseFacts) -> str:
    return rule.message if isinstance(rule.message, str) else rule.message(data, known)


def none_if_empty(find: Callable[[DataSet, DatabaseFacts], Sequence[str]]) -> Finder:
    """Return a finder that returns None if `find` finds no item."""
    return lambda data, known: find(data, known) or None


def unknown_strategies(data: DataSet, known: DatabaseFacts) -> list[str]:
    """Return the names of strategies that this server does not know, with repeats (4.1, 1)."""
    return [each["name"] for each in data.strategies if each["name"] not in known.strategy_types]


def conflicting_context_fields(data: DataSet, known: DatabaseFacts) -> list[str]:
    """Return the context fields that have other legal values here, or belong to another project, with repeats (4.1, 2)."""
    return [each["name"] for each in data.context_fields if _conflicts(each, data.project, known)]


def _conflicts(field: Json, project: str, known: DatabaseFacts) -> bool:
    stored = known.context_fields.get(field["name"])
    if stored is None:
        return False
    foreign = bool(stored.project) and stored.project != project
    return foreign or any(each["value"] not in stored.values for each in field.get("legalValues", ()))


def foreign_features(data: DataSet, known: DatabaseFacts) -> list[str]:
    """Return the features of other projects, archived or not, each with its project (4.1, 3)."""
    named = set(data.names)
    return [
        f"{name} (in project {stored.project})"
        for name, stored in known.features.items()
        if name in named and stored.project != data.project
    ]


def repeated_features(data: DataSet, known: DatabaseFacts) -> list[str]:
    """Return the features that the data set contains more than once (4.1, 4)."""
    return find_repeated(data.names)


def misnamed_features(data: DataSet, known: DatabaseFacts) -> list[str]:
    """Return the names that do not match the project's naming pattern, sorted by UTF-16 code units (4.1, 5)."""
    return _sort_by_units(name for name, verdict in _naming_verdicts(data, known).items() if verdict is False)


def unchecked_features(data: DataSet, known: DatabaseFacts) -> list[str]:
    """Return the names that cannot be checked, in the same order (ours)."""
    return _sort_by_units(
        name for name, verdict in _naming_verdicts(data, known).items() if isinstance(verdict, UncheckedNameError)
    )


def _naming_verdicts(data: DataSet, known: DatabaseFacts) -> dict[str, bool | UncheckedNameError]:
    """Return for each name whether it matches the project's naming pattern."""
    return {} if known.project is None else {name: known.project.naming.verdict(name) for name in data.names}


def _sort_by_units(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: name.encode("utf-16-be", "surrogatepass"))


def new_features(data: DataSet, known: DatabaseFacts) -> set[str]:
    """Return the names that are not active features of the target project."""
    return set(data.names) - set(overwritten_features(data, known))


def too_many_features(data: DataSet, known: DatabaseFacts) -> list[str] | None:
    """Return an empty list where the project would exceed its feature limit, else None (4.1, 6)."""
    project = known.project
    if project is None or project.limit is None:
        return None
    return [] if project.active + len(new_features(data, known)) > project.limit else None


def missing_segments(data: DataSet, known: DatabaseFacts) -> list[str]:
    """Return the segments that the project cannot use, with repeats (4.1, 7)."""
    return [each["name"] for each in data.segments if not _is_usable(each["name"], data.project, known)]


def _is_usable(segment: str, project: str, known: DatabaseFacts) -> bool:
    stored = known.segments.get(segment)
    return stored is not None and (not stored.project or stored.project == project)


def missing_parents(data: DataSet, known: DatabaseFacts) -> list[str]:
    """Return the parents that are neither in the data set nor stored, with repeats (4.1, 8)."""
    named = set(data.names)
    return [name for name in data.parents if name not in named and name not in known.features]


def custom_strategies(data: DataSet, known: DatabaseFacts) -> list[str]:
    """Return the custom strategies that are used, in order of first use (4.2, 1)."""
    names = dict.fromkeys(each["name"] for each in data.strategies)
    return [name for name in names if known.strategy_types.get(name)]


def archived_features(data: DataSet, known: DatabaseFacts) -> list[str]:
    """Return the features of the data set that are archived, in any project (4.2, 2)."""
    named = set(data.names)
    return [name for name, stored in known.features.items() if name in named and stored.archived]


def overwritten_features(data: DataSet, known: DatabaseFacts) -> list[str]:
    """Return the features of the data set that are active in the target project (4.2, 3)."""
    named = set(data.names)
    return [
        name
        for name, stored in known.features.items()
        if name in named and not stored.archived and stored.project == data.project
    ]


def foreign_message(data: DataSet, known: DatabaseFacts) -> str:
    """Return the message about features of other projects."""
    return (
        "You cannot import a features that already exist in other projects. You already have the following features defined "
        f"outside of project {data.project}:"
    )


def naming_message(data: DataSet, known: DatabaseFacts) -> str:
    """Return the message about names that do not match the project's pattern."""
    project = known.project
    pattern, example, description = (
        (project.pattern, project.example, project.description) if project is not None else ("", "", "")
    )
    return (
        f'Features imported into this project must match the project\'s feature naming pattern: "{pattern}".'
        + (f' For example: "{example}".' if example else "")
        + (f' The pattern is described as follows: "{description}"' if description else "")
        + " The following features do not match the pattern:"
    )


def unchecked_message(data: DataSet, known: DatabaseFacts) -> str:
    """Return why names were not checked, and what to do; the first such name decides."""
    assert known.project is not None
    why = next(each for each in _naming_verdicts(data, known).values() if isinstance(each, UncheckedNameError))
    return (
        f'The project\'s feature naming pattern "{known.project.naming.short_text}" cannot be checked for all features: '
        f"{why.reason}. To import them, {why.remedy}. The following features were not checked:"
    )


def limit_message(data: DataSet, known: DatabaseFacts) -> str:
    """Return the message about a project that would have too many features."""
    active, limit = (known.project.active, known.project.limit) if known.project is not None else (0, None)
    return (
        f"We detected you want to create {len(new_features(data, known))} new features to a project that already has "
        f"{active} existing features, exceeding the maximum limit of {limit}."
    )


ERRORS = (
    Rule(
        "We detected the following custom strategy that needs to be created first:",
        none_if_empty(unknown_strategies),
    ),
    Rule(
        "We detected the following context fields that do not have matching legal values with the imported ones:",
        none_if_empty(conflicting_context_fields),
    ),
    Rule(foreign_message, none_if_empty(foreign_features)),
    Rule(
        "We detected the following features are duplicate in your import data:",
        none_if_empty(repeated_features),
    ),
    Rule(naming_message, none_if_empty(misnamed_features)),
    Rule(unchecked_message, none_if_empty(unchecked_features)),
    Rule(limit_message, too_many_features),
    Rule("We detected the following segments that need to be created first:", none_if_empty(missing_segments)),
    Rule("We detected the following dependencies that need to be created first:", none_if_empty(missing_parents)),
)
"""Rules whose items prevent an import."""

WARNINGS = (
    Rule(
        "The following strategy types will be used in import. Please make sure the strategy type parameters are configured as in "
        "source environment:",
        none_if_empty(custom_strategies),
    ),
    Rule(
        "The following features will not be imported as they are currently archived. To import them, please unarchive them first:",
        none_if_empty(archived_features),
    ),
    Rule(
        "The following features already exist in this project and will be overwritten:",
        none_if_empty(overwritten_features),
    ),
)
"""Rules about what to know before an import."""
