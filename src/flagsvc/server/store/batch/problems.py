"""Finds problems that make an import fail and that validation does not check, without a database (import validation 6.3).

The checks are those of the import, but here each one continues after a problem. They expect a cleaned data set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from flagsvc.http.client_query import RELATIVE_PATHS, URL_FRIENDLY
from flagsvc.http.shapes.text import number_text
from flagsvc.server.store.batch.dataset import DataSet, Json, clean_data_set, list_requested_dependencies
from flagsvc.server.store.batch.server_facts import CheckedDataSet, ImportProblem, ServerFacts, ServerFlag
from flagsvc.server.store.batch.text_problems import text_problems
from flagsvc.server.store.checks import (
    check_segment_count,
    make_detail,
    make_link,
    name_problem,
    prepare_imported_variants,
    prepare_variants,
)
from flagsvc.server.store.constraints import check_legal_values, check_limits, check_values
from flagsvc.server.store.errors import Detail, refusal_text

Find: TypeAlias = Callable[[CheckedDataSet], Iterator[ImportProblem]]


class ProblemRule(NamedTuple):
    """A function that finds problems, the fields of `ServerFacts` that it needs, and a description of what it checks."""

    find: Find
    needs: tuple[str, ...] = ()
    about: str = ""


def find_problems(data: DataSet, facts: ServerFacts) -> tuple[list[ImportProblem], list[str]]:
    """Return the problems of a data set, and descriptions of the checks that were skipped for missing facts."""
    named = set(data.names)
    checked = CheckedDataSet(
        clean_data_set(data, {name for name, flag in facts.flags.items() if flag.archived and name in named}), facts
    )
    known = [rule for rule in RULES if all(getattr(facts, name) is not None for name in rule.needs)]
    found = [problem for rule in known for problem in rule.find(checked)]
    return list(dict.fromkeys(found)), [rule.about for rule in RULES if rule not in known]


def in_project(name: str, checked: CheckedDataSet) -> ServerFlag | None:
    """Return a flag of the target project after the import; None without one."""
    flag = checked.flags.get(name)
    return flag if flag is not None and flag.project == checked.data.project else None


def find_name_problems(checked: CheckedDataSet) -> Iterator[ImportProblem]:
    """Yield problems of new flags with an invalid name."""
    for name in dict.fromkeys(checked.data.names):
        problem = None if name in checked.facts.flags else name_problem(name)
        if problem is not None:
            yield ImportProblem("name", name, "", problem["message"])


def find_state_problems(checked: CheckedDataSet) -> Iterator[ImportProblem]:
    """Yield problems of flags that cannot be switched, or cannot have variants, in the environment."""
    for each in checked.data.environments:
        name = each["name"]
        flag = in_project(name, checked)
        if flag is None:
            yield ImportProblem(
                "unknown-flag", name, "environments", f"neither the project nor the data has a flag `{name}`"
            )
        elif flag.archived:
            yield ImportProblem("archived-flag", name, "environments", "an archived flag cannot be switched")
        elif not flag.in_environment:
            yield ImportProblem(
                "environment", name, "environments", f"the flag is not in the environment `{checked.data.environment}`"
            )


def find_variant_problems(checked: CheckedDataSet) -> Iterator[ImportProblem]:
    """Yield problems of the variants of an environment."""
    for each in checked.data.with_variants():
        name = each["featureName"]
        message = refusal_text(prepare_imported_variants, each["variants"])
        if message:
            yield ImportProblem("variants", name, "environment variants", message)
        flag = checked.flags.get(name)
        if flag is None:
            yield ImportProblem(
                "unknown-flag", name, "environment variants", f"neither the server nor the data has a flag `{name}`"
            )
        elif not flag.in_environment:
            text = f"the flag is not in the environment `{checked.data.environment}`"
            yield ImportProblem("environment", name, "environment variants", text)


def find_tag_problems(checked: CheckedDataSet) -> Iterator[ImportProblem]:
    """Yield problems of tags."""
    for each in checked.data.tags:
        if each.get("tagType"):
            name, place = each["featureName"], f"tag {each['tagType']}:{each['tagValue']}"
            for detail in tag_problems(each["tagType"], each["tagValue"]):
                yield ImportProblem("tag", name, place, detail["message"])
            if checked.flags.get(name) is None:
                yield ImportProblem("unknown-flag", name, place, f"neither the server nor the data has a flag `{name}`")


def find_tag_type_problems(checked: CheckedDataSet) -> Iterator[ImportProblem]:
    """Yield problems of tags whose type neither the server nor the data set has."""
    known = {each["name"] for each in checked.data.tag_types} | (checked.facts.tag_types or frozenset())
    for each in checked.data.tags:
        kind = each.get("tagType")
        if kind and kind not in known:
            place = f"tag {kind}:{each['tagValue']}"
            yield ImportProblem(
                "tag-type", each["featureName"], place, f"neither the server nor the data has a tag type `{kind}`"
            )


def find_context_field_problems(checked: CheckedDataSet) -> Iterator[ImportProblem]:
    """Yield problems of new context fields."""
    new = [each for each in checked.data.context_fields if each["name"] not in (checked.facts.context_fields or ())]
    counts, flags = Counter(each["name"] for each in new), flags_by_field(checked.data)
    for each in new:
        users, place = flags.get(each["name"], ""), f"context field {each['name']}"
        for detail in context_field_problems(each):
            yield ImportProblem("context-field", users, place, detail["message"])
        if counts[each["name"]] > 1:
            yield ImportProblem("context-field", users, place, "the data has more than one context field of that name")


def flags_by_field(data: DataSet) -> dict[str, str]:
    """Return the flags that use each context field, separated by commas."""
    found: dict[str, dict[str, None]] = {}
    for each in data.strategies:
        for field in constrained_fields(each):
            found.setdefault(field, {})[each["featureName"]] = None
    return {field: ", ".join(flags) for field, flags in found.items()}


def constrained_fields(strategy: Json) -> set[str]:
    """Return the context fields that a strategy constrains."""
    return {each["contextName"] for each in strategy.get("constraints") or ()}


def find_link_problems(checked: CheckedDataSet) -> Iterator[ImportProblem]:
    """Yield problems of links: unknown flags, invalid URLs, or too many links."""
    counts: Counter[str] = Counter()
    for entry in checked.data.links:
        name = entry["feature"]
        flag = checked.flags.get(name)
        for each in entry["links"]:
            place = f"link {each['url']}"
            if flag is None or flag.archived:
                yield ImportProblem(
                    "unknown-flag", name, place, f"neither the server nor the data has an active flag `{name}`"
                )
            message = refusal_text(make_link, name, each["url"], each.get("title"), counts[name])
            if message:
                yield ImportProblem("link", name, place, message)
            counts[name] += 1


def find_dependency_problems(checked: CheckedDataSet) -> Iterator[ImportProblem]:
    """Yield problems of dependencies."""
    for child, _, requirement in list_requested_dependencies(checked.data):
        parent = requirement["feature"]
        message = dependency_problem(child, parent, checked)
        if message:
            yield ImportProblem("dependency", child, f"parent {parent}", message)


def dependency_problem(child: str, parent: str, checked: CheckedDataSet) -> str:
    """Return why a flag cannot have a parent; empty if it can."""
    stored, flag = checked.facts.flags.get(child), checked.flags.get(parent)
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
    for each, place in numbered_strategies(checked.data):
        name = each["featureName"]
        if in_project(name, checked) is None:
            yield ImportProblem("unknown-flag", name, place, f"neither the project nor the data has a flag `{name}`")
        yield from strategy_problems(each, place, checked)


RULES = (
    ProblemRule(find_name_problems),
    ProblemRule(find_state_problems),
    ProblemRule(find_variant_problems),
    ProblemRule(find_tag_problems),
    ProblemRule(
        find_tag_type_problems, ("tag_types",), "whether the types of tags exist: the token may not read the tag types"
    ),
    ProblemRule(
        find_context_field_problems,
        ("context_fields",),
        "context fields and their legal values: the token may not read the context fields",
    ),
    ProblemRule(find_link_problems),
    ProblemRule(find_strategy_problems),
    ProblemRule(find_dependency_problems),
    ProblemRule(text_problems),
)
"""In the order in which an import runs these checks."""


MAX_SORT_ORDER = 2**31 - 1
"""The largest sort order that the real server's column holds."""


def strategy_problems(strategy: Json, place: str, checked: CheckedDataSet) -> Iterator[ImportProblem]:
    """Yield problems of a strategy; `place` names it in them."""
    name = strategy["featureName"]
    constraints = strategy.get("constraints") or []
    for rule, message in (
        ("constraint", refusal_text(check_limits, constraints)),
        ("variants", refusal_text(prepare_variants, strategy.get("variants") or [])),
        ("sort-order", sort_order_problem(strategy) if checked.facts.limited_storage else ""),
        ("segment", undeclared_segments_problem(strategy, checked.data)),
        ("segment", refusal_text(check_segment_count, strategy.get("segments") or [])),
    ):
        if message:
            yield ImportProblem(rule, name, place, message)
    for each in constraints:
        yield from constraint_problems(each, name, place, checked.legal)


def constraint_problems(
    constraint: Json, name: str, place: str, legal: Mapping[str, Sequence[str]]
) -> Iterator[ImportProblem]:
    """Yield problems of one constraint: invalid values, or else values that are not legal."""
    place = f"{place}, {place_of_constraint(constraint)}"
    message = refusal_text(check_values, [constraint])
    if message:
        yield ImportProblem("constraint", name, place, message)
        return
    message = refusal_text(check_legal_values, [constraint | {"values": constraint.get("values", [])}], legal)
    if message:
        yield ImportProblem("legal-values", name, place, message)


def place_of_constraint(constraint: Json) -> str:
    """Return the place of a constraint in its strategy or segment, for messages."""
    return f"constraint on {constraint['contextName']} ({constraint['operator']})"


def sort_order_problem(strategy: Json) -> str:
    """Return the message about a sort order that is not a 32-bit integer; empty if it is one."""
    order = strategy.get("sortOrder")
    fits = order is None or (abs(order) <= MAX_SORT_ORDER and order == int(order))
    return "" if fits else f'"sortOrder" must be a whole number from -{MAX_SORT_ORDER} to {MAX_SORT_ORDER}'


def undeclared_segments_problem(strategy: Json, data: DataSet) -> str:
    """Return the message about segments that the data set does not declare; empty if it declares all."""
    declared = {each["id"] for each in data.segments}
    unknown = [number for number in strategy.get("segments") or [] if number not in declared]
    return f"the data does not declare the segments it uses: {', '.join(map(number_text, unknown))}" if unknown else ""


NAME_LENGTHS = (1, 100)
TAG_LENGTHS = (2, 50)
"""Least and most characters of a name, and of a tag or its type."""
MAX_DESCRIPTION_LENGTH = 250


def length_problems(label: str, value: str, least: int, most: int, *, friendly: bool = False) -> Iterator[Detail]:
    """Yield what is wrong with a text: at most one detail."""
    if not value:
        yield make_detail(f'"{label}" is not allowed to be empty')
    elif friendly and (not URL_FRIENDLY.match(value) or value in RELATIVE_PATHS):
        yield make_detail(f'"{label}" must be URL friendly', value)
    elif len(value) < least:
        yield make_detail(f'"{label}" length must be at least {least} characters long', value)
    elif len(value) > most:
        yield make_detail(f'"{label}" length must be less than or equal to {most} characters long', value)


def tag_problems(kind: str, value: str) -> Iterator[Detail]:
    """Yield what is wrong with a tag of this type and value."""
    yield from length_problems("value", value, *TAG_LENGTHS)
    yield from length_problems("type", kind, *TAG_LENGTHS, friendly=True)


def context_field_problems(field: Json) -> Iterator[Detail]:
    """Yield what is wrong with a new context field."""
    yield from length_problems("name", field["name"], *NAME_LENGTHS, friendly=True)
    if field.get("description"):
        yield from length_problems("description", field["description"], 0, MAX_DESCRIPTION_LENGTH)
    values = field.get("legalValues", [])
    for index, each in enumerate(values):
        yield from length_problems(f"legalValues[{index}].value", each["value"], *NAME_LENGTHS)
    seen: set[str] = set()
    for index, each in enumerate(values):
        if each["value"] in seen:
            yield make_detail(f'"legalValues[{index}]" contains a duplicate value', each)
        seen.add(each["value"])
