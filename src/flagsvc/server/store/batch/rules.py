"""The rules of an import in one table (import validation 4; 6). Pure: a rule sees a data set and the facts about a server.

A validation lists all findings. An import raises the first that it refuses before its first write. The rest it checks while it
writes, in the real server's order and with its messages; commands find that with the rules of `problems`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from flagsvc.http.shapes.text import number_text
from flagsvc.server.store.batch.dataset import (
    DATA_MEMBERS,
    DataSet,
    Json,
    clean_data_set,
    find_repeated,
    list_requested_dependencies,
)
from flagsvc.server.store.batch.facts import CheckedDataSet, Facts, ImportProblem
from flagsvc.server.store.checks import (
    INVALID,
    check_segment_count,
    make_detail,
    make_link,
    name_problem,
    prepare_imported_variants,
    prepare_variants,
)
from flagsvc.server.store.constraints import check_legal_values, check_limits, check_values
from flagsvc.server.store.errors import CallerError, Detail, bad_data, permission_refusal, refusal_text
from flagsvc.server.store.texts import contains, tag_problems, text_problem


class Rule(NamedTuple):
    """A rule: its name, the group of its findings, a function that finds them, and the message about them.

    Findings are affected items, in order and with repeats; None concerns no item. `refusal` makes the error that an import raises
    before its first write; without it an import does not check, or checks while it writes. A row of `problems` is no part of a
    validation: commands ask it before they send an import to another server, and its findings are an `ImportProblem` each. They ask
    no other row. If the fact `needs` is unknown, they do not ask the row, and say what `skipped` says.
    """

    name: str
    group: str
    find: Callable[[CheckedDataSet], Iterable[Any]]
    message: str | Callable[[CheckedDataSet], str] = ""
    refusal: Callable[[list[str]], CallerError] | None = None
    needs: str = ""
    skipped: str = ""


def list_findings(checked: CheckedDataSet) -> dict[str, list[Json]]:
    """Return the `errors`, `warnings` and missing `permissions` of a data set, each with its message and affectedItems."""
    found: dict[str, list[Json]] = {"errors": [], "warnings": [], "permissions": []}
    for rule in RULES:
        if rule.group in found and (items := list(rule.find(checked))):
            message = rule.message if isinstance(rule.message, str) else rule.message(checked)
            affected = [each for each in items if each is not None]
            found[rule.group].append({"message": message, "affectedItems": affected})
    return found


def refuse(checked: CheckedDataSet) -> None:
    """Raise CallerError (400, 403) if a cleaned data set cannot be imported by the actor."""
    for rule in RULES:
        if rule.refusal is not None and (items := list(rule.find(checked))):
            raise rule.refusal(items)


def find_problems(data: DataSet, facts: Facts) -> tuple[list[ImportProblem], list[str]]:
    """Return the problems that a validation does not find, and descriptions of the checks that were skipped."""
    checked = CheckedDataSet(clean_data_set(data, set(CheckedDataSet(data, facts).archived)), facts)
    rules = [rule for rule in RULES if rule.group == "problems"]
    found = [each for rule in rules if rule.needs not in facts.unknown for each in rule.find(checked)]
    return list(dict.fromkeys(found)), [rule.skipped for rule in rules if rule.needs in facts.unknown]


def unsupported(names: Sequence[str]) -> CallerError:
    messages = [f"{name} is not supported." for name in names]
    return CallerError("BadDataError", INVALID, [{"description": each, "message": each} for each in messages])


def conflicts(field: Json, checked: CheckedDataSet) -> bool:
    """Return whether a context field has other legal values on the server, or belongs to another project."""
    known = checked.facts.context_fields.get(field["name"])
    if known is None:
        return False
    foreign = bool(known.project) and known.project != checked.data.project
    return foreign or any(each["value"] not in known.values for each in field.get("legalValues", ()))


def is_usable(segment: str, checked: CheckedDataSet) -> bool:
    """Return whether the project can use a segment."""
    known = checked.facts.segments.get(segment)
    return known is not None and (not known.project or known.project == checked.data.project)


def sort_by_units(names: Iterable[str]) -> list[str]:
    """Return names sorted by UTF-16 code units."""
    return sorted(names, key=lambda name: name.encode("utf-16-be", "surrogatepass"))


def naming_message(checked: CheckedDataSet) -> str:
    """Return the message about names that do not match the project's pattern."""
    project = checked.project
    return (
        f'Features imported into this project must match the project\'s feature naming pattern: "{project.pattern}".'
        + (f' For example: "{project.example}".' if project.example else "")
        + (f' The pattern is described as follows: "{project.description}"' if project.description else "")
        + " The following features do not match the pattern:"
    )


def unchecked_message(checked: CheckedDataSet) -> str:
    """Return why names were not checked, and what to do; the first such name decides."""
    why = next(each for each in checked.verdicts.values() if not isinstance(each, bool))
    return (
        f'The project\'s feature naming pattern "{checked.project.naming.short_text}" cannot be checked for all features: '
        f"{why.reason}. To import them, {why.remedy}. The following features were not checked:"
    )


def count_new(checked: CheckedDataSet) -> int:
    """Return the number of names that are not active features of the target project."""
    return len(checked.names) - len(checked.overwritten)


def exceeds_limit(checked: CheckedDataSet) -> bool:
    """Return whether the project would have more features than its limit."""
    project = checked.project
    return project.limit is not None and project.active + count_new(checked) > project.limit


class RequiredPermission(NamedTuple):
    """A permission, the name that people see, and a function that tells whether a data set requires it."""

    permission: str
    name: str
    is_required: Callable[[CheckedDataSet], bool]


REQUIRED_PERMISSIONS = (
    RequiredPermission(
        "CREATE_CONTEXT_FIELD",
        "Create context fields",
        lambda it: any(field["name"] not in it.facts.context_fields for field in it.data.context_fields),
    ),
    RequiredPermission("CREATE_FEATURE_STRATEGY", "Create activation strategies", lambda it: bool(it.data.strategies)),
    RequiredPermission("DELETE_FEATURE_STRATEGY", "Delete activation strategies", lambda it: it.facts.has_strategies),
    RequiredPermission("UPDATE_FEATURE_ENVIRONMENT_VARIANTS", "Update variants", lambda it: any(it.data.with_variants())),
    RequiredPermission("CREATE_FEATURE", "Create feature flags", lambda it: len(it.existing) < len(it.data.features)),
    RequiredPermission("UPDATE_FEATURE", "Update feature flags", lambda it: True),
    RequiredPermission(
        "CREATE_TAG_TYPE",
        "Create tag types",
        lambda it: any(kind["name"] not in it.facts.tag_types for kind in it.data.tag_types),
    ),
)
"""In the order of the answer."""
PERMISSIONS: Final[Mapping[str, str]] = {each.name: each.permission for each in REQUIRED_PERMISSIONS}
"""The name that people see → the permission."""
MISSING_PERMISSIONS = "We detected you are missing the following permissions:"


def missing_permissions(checked: CheckedDataSet) -> list[str]:
    """Return the names of the required permissions that the actor does not have."""
    actor, data = checked.actor, checked.data
    return [
        required.name
        for required in REQUIRED_PERMISSIONS
        if actor is not None
        and required.is_required(checked)
        and not actor.may(required.permission, data.project, data.environment)
    ]


def flag_problems(
    checked: CheckedDataSet, name: str, place: str, owner: str = "server", *, here: bool = False, active: bool = False
) -> Iterator[ImportProblem]:
    """Yield why a flag cannot have an entry at `place`: neither the owner, `server` or `project`, nor the data has it.

    Or else it is archived (if `active`), or not in the target environment (if `here`).
    """
    flag = checked.features.get(name)
    if flag is None or (owner == "project" and flag.project != checked.data.project):
        yield ImportProblem("unknown-flag", name, place, f"neither the {owner} nor the data has a flag `{name}`")
    elif active and flag.archived:
        yield ImportProblem("archived-flag", name, place, "an archived flag cannot be switched")
    elif here and not flag.in_environment:
        text = f"the flag is not in the environment `{checked.data.environment}`"
        yield ImportProblem("environment", name, place, text)


def refused(rule: str, flag: str, place: str, check: Callable[..., object], *args: object) -> Iterator[ImportProblem]:
    """Yield the refusal of a check that raises CallerError as a problem; nothing if it passes."""
    message = refusal_text(check, *args)
    if message:
        yield ImportProblem(rule, flag, place, message)


def find_name_problems(checked: CheckedDataSet) -> Iterator[ImportProblem]:
    """Yield problems of new flags with an invalid name."""
    for name in dict.fromkeys(checked.data.names):
        problem = None if name in checked.facts.features else name_problem(name)
        if problem is not None:
            yield ImportProblem("name", name, "", problem["message"])


def find_state_problems(checked: CheckedDataSet) -> Iterator[ImportProblem]:
    """Yield problems of flags that cannot be switched in the environment."""
    for each in checked.data.environments:
        yield from flag_problems(checked, each["name"], "environments", "project", here=True, active=True)


def find_variant_problems(checked: CheckedDataSet) -> Iterator[ImportProblem]:
    for each in checked.data.with_variants():
        name, place = each["featureName"], "environment variants"
        yield from refused("variants", name, place, prepare_imported_variants, each["variants"])
        yield from flag_problems(checked, name, place, here=True)


def find_tag_problems(checked: CheckedDataSet) -> Iterator[ImportProblem]:
    for each in checked.data.tags:
        if each.get("tagType"):
            name, place = each["featureName"], f"tag {each['tagType']}:{each['tagValue']}"
            for detail in tag_problems(each["tagType"], each["tagValue"]):
                yield ImportProblem("tag", name, place, detail["message"])
            yield from flag_problems(checked, name, place)


def find_tag_type_problems(checked: CheckedDataSet) -> Iterator[ImportProblem]:
    """Yield problems of tags whose type neither the server nor the data set has."""
    known = {each["name"] for each in checked.data.tag_types} | checked.facts.tag_types
    for each in checked.data.tags:
        kind = each.get("tagType")
        if kind and kind not in known:
            text = f"neither the server nor the data has a tag type `{kind}`"
            yield ImportProblem("tag-type", each["featureName"], f"tag {kind}:{each['tagValue']}", text)


def find_context_field_problems(checked: CheckedDataSet) -> Iterator[ImportProblem]:
    """Yield problems of new context fields, with the flags that use them."""
    new = [each for each in checked.data.context_fields if each["name"] not in checked.facts.context_fields]
    counts = Counter(each["name"] for each in new)
    flags: dict[str, dict[str, None]] = {}
    for strategy in checked.data.strategies:
        for field in constrained_fields(strategy):
            flags.setdefault(field, {})[strategy["featureName"]] = None
    for each in new:
        users, place = ", ".join(flags.get(each["name"], ())), f"context field {each['name']}"
        for detail in context_field_problems(each):
            yield ImportProblem("context-field", users, place, detail["message"])
        if counts[each["name"]] > 1:
            yield ImportProblem("context-field", users, place, "the data has more than one context field of that name")


def constrained_fields(strategy: Json) -> set[str]:
    return {each["contextName"] for each in strategy.get("constraints") or ()}


def find_link_problems(checked: CheckedDataSet) -> Iterator[ImportProblem]:
    """Yield problems of links: unknown flags, invalid URLs, or too many links."""
    counts: Counter[str] = Counter()
    for entry in checked.data.links:
        name = entry["feature"]
        flag = checked.features.get(name)
        for each in entry["links"]:
            place = f"link {each['url']}"
            if flag is None or flag.archived:
                text = f"neither the server nor the data has an active flag `{name}`"
                yield ImportProblem("unknown-flag", name, place, text)
            yield from refused("link", name, place, make_link, name, each["url"], each.get("title"), counts[name])
            counts[name] += 1


def find_dependency_problems(checked: CheckedDataSet) -> Iterator[ImportProblem]:
    for child, _, requirement in list_requested_dependencies(checked.data):
        parent = requirement["feature"]
        message = dependency_problem(child, parent, checked)
        if message:
            yield ImportProblem("dependency", child, f"parent {parent}", message)


def dependency_problem(child: str, parent: str, checked: CheckedDataSet) -> str:
    """Return why a flag cannot have a parent; empty if it can."""
    stored, flag = checked.facts.features.get(child), checked.features.get(parent)
    if child == parent:
        return "a flag cannot depend on itself"
    if stored is not None and stored.has_children:
        return f"other flags depend on `{child}`, so that it cannot depend on one"
    if flag is None or flag.archived:
        return f"there is no active flag `{parent}`"
    if flag.has_parents:
        return f"`{parent}` depends on another flag itself"
    return "" if flag.project == checked.data.project else f"`{parent}` is in another project, `{flag.project}`"


def numbered_strategies(data: DataSet) -> Iterator[tuple[Json, str]]:
    """Yield the strategies of a data set, each with its place in its flag, for messages."""
    counts: Counter[str] = Counter()
    for each in data.strategies:
        counts[each["featureName"]] += 1
        yield each, f"strategy {counts[each['featureName']]} ({each['name']})"


def find_strategy_problems(checked: CheckedDataSet) -> Iterator[ImportProblem]:
    """Yield problems of strategies, also of those whose flags the project does not have."""
    declared = {each["id"] for each in checked.data.segments}
    for each, place in numbered_strategies(checked.data):
        name, constraints, segments = each["featureName"], each.get("constraints") or [], each.get("segments") or []
        yield from flag_problems(checked, name, place, "project")
        yield from refused("constraint", name, place, check_limits, constraints)
        yield from refused("variants", name, place, prepare_variants, each.get("variants") or [])
        order = each.get("sortOrder") or 0
        if checked.facts.limited_storage and not (abs(order) <= MAX_SORT_ORDER and order == int(order)):
            text = f'"sortOrder" must be a whole number from -{MAX_SORT_ORDER} to {MAX_SORT_ORDER}'
            yield ImportProblem("sort-order", name, place, text)
        unknown = ", ".join(number_text(number) for number in segments if number not in declared)
        if unknown:
            yield ImportProblem("segment", name, place, f"the data does not declare the segments it uses: {unknown}")
        yield from refused("segment", name, place, check_segment_count, segments)
        for constraint in constraints:
            where = f"{place}, {place_of_constraint(constraint)}"
            full = [constraint | {"values": constraint.get("values", [])}]
            yield from list(refused("constraint", name, where, check_values, full)) or refused(
                "legal-values", name, where, check_legal_values, full, checked.legal
            )


MAX_SORT_ORDER = 2**31 - 1
"""The largest sort order that the real server's column holds."""


def place_of_constraint(constraint: Json) -> str:
    """Return the place of a constraint in its strategy or segment, for messages."""
    return f"constraint on {constraint['contextName']} ({constraint['operator']})"


NUL, HALF_SURROGATE = re.compile("\0"), re.compile("[\ud800-\udfff]")
JSON_MEMBERS = (
    ("strategies", ("constraints", "parameters", "variants")),
    ("environments", ("variants",)),
    ("dependencies", ("dependencies",)),
)
"""List of a data set → the members that are stored as JSON."""


def find_text_problems(checked: CheckedDataSet) -> Iterator[ImportProblem]:
    """Yield problems of texts that databases cannot store: a NUL, and in JSON half a surrogate pair (import validation 4.4)."""
    for field, member in DATA_MEMBERS.items():
        for each in getattr(checked.data, field):
            if contains(each, NUL):
                text = "a text holds a NUL character, which cannot be stored"
                yield ImportProblem("text", flag_of(field, each), member, text)
    for field, members in JSON_MEMBERS if checked.facts.limited_storage else ():
        for each in getattr(checked.data, field):
            if contains([each.get(member) for member in members], HALF_SURROGATE):
                text = "a text holds half a surrogate pair (\\ud800 to \\udfff), which cannot be stored"
                yield ImportProblem("text", flag_of(field, each), DATA_MEMBERS[field], text)


def flag_of(field: str, entry: Json) -> str:
    """Return the name of an entry's flag; empty for an entry of no flag."""
    member = {"features": "name", "dependencies": "feature", "links": "feature"}.get(field, "featureName")
    return str(entry.get(member, ""))


LONGEST_VALUE, LONGEST_DESCRIPTION = 100, 250


def context_field_problems(field: Json) -> Iterator[Detail]:
    values, text = field.get("legalValues", []), field.get("description")
    problems = [name_problem(field["name"])]
    problems += [text_problem(text, "description", longest=LONGEST_DESCRIPTION)] if text else []
    problems += [
        text_problem(each["value"], f"legalValues[{index}].value", longest=LONGEST_VALUE) for index, each in enumerate(values)
    ]
    yield from (problem for problem in problems if problem is not None)
    seen: set[str] = set()
    for index, each in enumerate(values):
        if each["value"] in seen:
            yield make_detail(f'"legalValues[{index}]" contains a duplicate value', each)
        seen.add(each["value"])


RULES = (
    Rule(
        "known strategy types",
        "errors",
        lambda it: [each["name"] for each in it.data.strategies if each["name"] not in it.facts.strategy_types],
        "We detected the following custom strategy that needs to be created first:",
        unsupported,
    ),
    Rule(
        "matching context fields",
        "errors",
        lambda it: [each["name"] for each in it.data.context_fields if conflicts(each, it)],
        "We detected the following context fields that do not have matching legal values with the imported ones:",
        unsupported,
    ),
    Rule("permissions", "permissions", missing_permissions, MISSING_PERMISSIONS, permission_refusal),
    Rule(
        "features of other projects",
        "errors",
        lambda it: [
            f"{name} (in project {known.project})" for name, known in it.existing.items() if known.project != it.data.project
        ],
        lambda it: (
            "You cannot import a features that already exist in other projects. "
            f"You already have the following features defined outside of project {it.data.project}:"
        ),
        lambda found: bad_data(f"These features exist already in other projects: {', '.join(found)}"),
    ),
    Rule(
        "repeated features",
        "errors",
        lambda it: find_repeated(it.data.names),
        "We detected the following features are duplicate in your import data:",
    ),
    Rule(
        "naming pattern",
        "errors",
        lambda it: sort_by_units(name for name, verdict in it.verdicts.items() if verdict is False),
        naming_message,
    ),
    Rule(
        "unchecked names",
        "errors",
        lambda it: sort_by_units(name for name, why in it.verdicts.items() if not isinstance(why, bool)),
        unchecked_message,
    ),
    Rule(
        "feature limit",
        "errors",
        lambda it: [None] if exceeds_limit(it) else [],
        lambda it: (
            f"We detected you want to create {count_new(it)} new features to a project that already has "
            f"{it.project.active} existing features, exceeding the maximum limit of {it.project.limit}."
        ),
    ),
    Rule(
        "usable segments",
        "errors",
        lambda it: [each["name"] for each in it.data.segments if not is_usable(each["name"], it)],
        "We detected the following segments that need to be created first:",
        lambda found: bad_data(f"Unsupported segments: {', '.join(found)}"),
    ),
    Rule(
        "parents",
        "errors",
        lambda it: [name for name in it.data.parents if name not in it.names and name not in it.facts.features],
        "We detected the following dependencies that need to be created first:",
        lambda found: bad_data(f"The following dependent features are missing: {', '.join(found)}"),
    ),
    Rule(
        "custom strategy types",
        "warnings",
        lambda it: [
            name for name in dict.fromkeys(each["name"] for each in it.data.strategies) if it.facts.strategy_types.get(name)
        ],
        "The following strategy types will be used in import. Please make sure the strategy type parameters are configured as in "
        "source environment:",
    ),
    Rule(
        "archived features",
        "warnings",
        lambda it: it.archived,
        "The following features will not be imported as they are currently archived. To import them, please unarchive them first:",
    ),
    Rule(
        "overwritten features",
        "warnings",
        lambda it: it.overwritten,
        "The following features already exist in this project and will be overwritten:",
    ),
    Rule("names", "problems", find_name_problems),
    Rule("states", "problems", find_state_problems),
    Rule("variants", "problems", find_variant_problems),
    Rule("tags", "problems", find_tag_problems),
    Rule(
        "types of tags",
        "problems",
        find_tag_type_problems,
        needs="tag_types",
        skipped="whether the types of tags exist: the token may not read the tag types",
    ),
    Rule(
        "context fields",
        "problems",
        find_context_field_problems,
        needs="context_fields",
        skipped="context fields and their legal values: the token may not read the context fields",
    ),
    Rule("links", "problems", find_link_problems),
    Rule("strategies", "problems", find_strategy_problems),
    Rule("dependencies", "problems", find_dependency_problems),
    Rule("texts", "problems", find_text_problems),
)
"""In the order of a validation's answer, of the checks of an import before its first write, and of its checks while it writes."""
