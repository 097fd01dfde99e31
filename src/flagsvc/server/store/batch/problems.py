"""What makes an import fail and a validation does not look at, found without a database (import validation 6.3).

The checks are the import's own; here each check continues after a problem. They work on a cleaned data set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from flagsvc.server.store.batch.dataset import DataSet, Json, cleaned, wishes_of
from flagsvc.server.store.batch.facts import CheckedDataSet, Facts, ImportProblem, ServerFlag
from flagsvc.server.store.batch.problems_of_strategies import strategy_problems
from flagsvc.server.store.batch.problems_of_texts import text_problems
from flagsvc.server.store.batch.said import said
from flagsvc.server.store.batch.words import context_field_problems, tag_problems
from flagsvc.server.store.checks import imported_variants, kept, name_problem

Find: TypeAlias = Callable[[CheckedDataSet], Iterator[ImportProblem]]


class ProblemRule(NamedTuple):
    """What finds problems, which members of `Facts` it cannot do without, and what it is about in words."""

    find: Find
    needs: tuple[str, ...] = ()
    about: str = ""


def problems_of(data: DataSet, facts: Facts) -> tuple[list[ImportProblem], list[str]]:
    """Return what is wrong with a data set, and what was not checked because the server does not say enough."""
    named = set(data.names)
    look = CheckedDataSet(
        cleaned(data, {name for name, flag in facts.flags.items() if flag.archived and name in named}), facts
    )
    known = [rule for rule in RULES if all(getattr(facts, name) is not None for name in rule.needs)]
    found = [problem for rule in known for problem in rule.find(look)]
    return list(dict.fromkeys(found)), [rule.about for rule in RULES if rule not in known]


def in_project(name: str, look: CheckedDataSet) -> ServerFlag | None:
    """Return a flag of the target project after the import; None where that has none of the name."""
    flag = look.flags.get(name)
    return flag if flag is not None and flag.project == look.data.project else None


def names(look: CheckedDataSet) -> Iterator[ImportProblem]:
    """Give the new flags that cannot have their name."""
    for name in dict.fromkeys(look.data.names):
        problem = None if name in look.facts.flags else name_problem(name)
        if problem is not None:
            yield ImportProblem("name", name, "", problem["message"])


def places(look: CheckedDataSet) -> Iterator[ImportProblem]:
    """Give the flags that cannot be switched, or have variants, in the environment."""
    for each in look.data.environments:
        name = each["name"]
        flag = in_project(name, look)
        if flag is None:
            yield ImportProblem(
                "unknown-flag", name, "environments", f"neither the project nor the data has a flag `{name}`"
            )
        elif flag.archived:
            yield ImportProblem("archived-flag", name, "environments", "an archived flag cannot be switched")
        elif not flag.here:
            yield ImportProblem(
                "environment", name, "environments", f"the flag is not in the environment `{look.data.environment}`"
            )


def variants(look: CheckedDataSet) -> Iterator[ImportProblem]:
    """Give what is wrong with the variants of an environment."""
    for each in look.data.with_variants():
        name = each["featureName"]
        message = said(imported_variants, each["variants"])
        if message:
            yield ImportProblem("variants", name, "environment variants", message)
        flag = look.flags.get(name)
        if flag is None:
            yield ImportProblem(
                "unknown-flag", name, "environment variants", f"neither the server nor the data has a flag `{name}`"
            )
        elif not flag.here:
            text = f"the flag is not in the environment `{look.data.environment}`"
            yield ImportProblem("environment", name, "environment variants", text)


def tags(look: CheckedDataSet) -> Iterator[ImportProblem]:
    """Give the tags that cannot be."""
    for each in look.data.tags:
        if each.get("tagType"):
            name, place = each["featureName"], f"tag {each['tagType']}:{each['tagValue']}"
            for detail in tag_problems(each["tagType"], each["tagValue"]):
                yield ImportProblem("tag", name, place, detail["message"])
            if look.flags.get(name) is None:
                yield ImportProblem("unknown-flag", name, place, f"neither the server nor the data has a flag `{name}`")


def tag_types(look: CheckedDataSet) -> Iterator[ImportProblem]:
    """Give the tags whose type neither the server nor the data set has."""
    known = {each["name"] for each in look.data.tag_types} | (look.facts.tag_types or frozenset())
    for each in look.data.tags:
        kind = each.get("tagType")
        if kind and kind not in known:
            place = f"tag {kind}:{each['tagValue']}"
            yield ImportProblem(
                "tag-type", each["featureName"], place, f"neither the server nor the data has a tag type `{kind}`"
            )


def context_fields(look: CheckedDataSet) -> Iterator[ImportProblem]:
    """Give what is wrong with new context fields."""
    new = [each for each in look.data.context_fields if each["name"] not in (look.facts.context_fields or ())]
    counts = Counter(each["name"] for each in new)
    for each in new:
        users, place = using(look.data, each["name"]), f"context field {each['name']}"
        for detail in context_field_problems(each):
            yield ImportProblem("context-field", users, place, detail["message"])
        if counts[each["name"]] > 1:
            yield ImportProblem("context-field", users, place, "the data has more than one context field of that name")


def using(data: DataSet, field: str) -> str:
    """Return the flags that go by a context field, with commas between them."""
    found = (each["featureName"] for each in data.strategies if field in fields_of(each))
    return ", ".join(dict.fromkeys(found))


def fields_of(strategy: Json) -> set[str]:
    """Return the context fields that a strategy goes by."""
    return {each["contextName"] for each in strategy.get("constraints") or ()}


def links(look: CheckedDataSet) -> Iterator[ImportProblem]:
    """Give the links that cannot be: of flags that are not there, that are no addresses, or too many."""
    counts: Counter[str] = Counter()
    for entry in look.data.links:
        name = entry["feature"]
        flag = look.flags.get(name)
        for each in entry["links"]:
            place = f"link {each['url']}"
            if flag is None or flag.archived:
                yield ImportProblem(
                    "unknown-flag", name, place, f"neither the server nor the data has an active flag `{name}`"
                )
            message = said(kept, name, each["url"], each.get("title"), counts[name])
            if message:
                yield ImportProblem("link", name, place, message)
            counts[name] += 1


def dependencies(look: CheckedDataSet) -> Iterator[ImportProblem]:
    """Give the parents that a child cannot have."""
    for child, _, asked in wishes_of(look.data):
        parent = asked["feature"]
        message = why_not(child, parent, look)
        if message:
            yield ImportProblem("dependency", child, f"parent {parent}", message)


def why_not(child: str, parent: str, look: CheckedDataSet) -> str:
    """Return why a flag cannot have a parent, empty where it can."""
    stored, flag = look.facts.flags.get(child), look.flags.get(parent)
    if child == parent:
        return "a flag cannot depend on itself"
    if stored is not None and stored.has_children:
        return f"other flags depend on `{child}`, so that it cannot depend on one"
    if flag is None or flag.archived:
        return f"there is no active flag `{parent}`"
    if flag.has_parents:
        return f"`{parent}` depends on another flag itself"
    return "" if flag.project == look.data.project else f"`{parent}` is in another project, `{flag.project}`"


def strategies(look: CheckedDataSet) -> Iterator[ImportProblem]:
    """Give what is wrong with strategies, and those of flags that the project does not have."""
    counts: Counter[str] = Counter()
    for each in look.data.strategies:
        name = each["featureName"]
        counts[name] += 1
        place = f"strategy {counts[name]} ({each['name']})"
        if in_project(name, look) is None:
            yield ImportProblem("unknown-flag", name, place, f"neither the project nor the data has a flag `{name}`")
        yield from strategy_problems(each, place, look)


RULES = (
    ProblemRule(names),
    ProblemRule(places),
    ProblemRule(variants),
    ProblemRule(tags),
    ProblemRule(tag_types, ("tag_types",), "whether the types of tags exist: the token may not read the tag types"),
    ProblemRule(
        context_fields,
        ("context_fields",),
        "context fields and their legal values: the token may not read the context fields",
    ),
    ProblemRule(links),
    ProblemRule(strategies),
    ProblemRule(dependencies),
    ProblemRule(text_problems),
)
"""In the order in which an import gets to them."""
