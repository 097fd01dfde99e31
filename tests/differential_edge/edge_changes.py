"""How Edge reads contexts, constraints and dependencies, each said as a change of what ours evaluates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import edge_values
from edge_reading import ATTRIBUTES, Case, Json, Outcome, edge_context, given_in

from flagsvc.engine.operators import LISTS, OPERATORS, PATTERN

Change: TypeAlias = Callable[[Case], Case]
Differing: TypeAlias = Callable[[Case, str, str | None], bool]
"""Tells whether a field that the two read differently is meant, by its name and what Edge reads."""

ALWAYS: Json = {"contextName": "nothing", "operator": "NOT_IN", "values": ["x"]}
NEVER: Json = {"contextName": "nothing", "operator": "IN", "values": ["x"]}


# ---- contexts


def fields(is_meant: Differing) -> Change:
    """Return the change of some fields and properties to Edge's reading."""

    def change(case: Case) -> Case:
        theirs, context = edge_context(case.question), case.context.replace()
        for name, attribute in ATTRIBUTES.items():
            other = theirs.standard.get(name)
            if getattr(context, attribute) != other and is_meant(case, name, other):
                setattr(context, attribute, other)
        properties = dict(context.properties)
        for name in {*properties, *theirs.properties}:
            other = theirs.properties.get(name)
            if properties.get(name) != other and is_meant(case, name, other):
                properties.pop(name, None)
                properties |= {} if other is None else {name: other}
        context.properties = properties
        return replace(case, context=context)

    return change


def missing(field: str) -> Change:
    """Return the change of a field that Edge does not make up."""
    return fields(lambda case, name, other: name == field and other is None)


def is_empty_field(case: Case, name: str, other: str | None) -> bool:
    """Return whether a standard field is given as the empty text."""
    return name in ATTRIBUTES and other == ""


def is_in_two_places(case: Case, name: str, other: str | None) -> bool:
    """Return whether a property is given once plainly, and once inside `properties`."""
    places = [each.is_property for each in given_in(case.question) if each.name == name]
    return sorted(places) == [False, True]


def is_repeated(case: Case, name: str, other: str | None) -> bool:
    """Return whether a property is given several times in the same way."""
    places = [each.is_property for each in given_in(case.question) if each.name == name]
    return len(places) > len(set(places))


def is_number(case: Case, name: str, other: str | None) -> bool:
    """Return whether the value of a field is a number in a body, of which Edge makes a text."""
    values = [each.value for each in given_in(case.question) if each.name == name]
    return other is not None and len(values) == 1 and not isinstance(values[0], str)


def is_plain_number(case: Case, name: str, other: str | None) -> bool:
    """Return whether a property is given outside of `properties`, and not as a text."""
    values = [each.value for each in given_in(case.question) if each.name == name and not each.is_property]
    return name not in ATTRIBUTES and other is None and len(values) == 1 and not isinstance(values[0], str)


# ---- constraints


def in_constraints(change: Callable[[Case, Json], Json]) -> Change:
    """Return the change of each constraint, also of those of segments."""

    def changed(case: Case) -> Case:
        def inside(holder: Json) -> Json:
            known = holder.get("constraints")
            return holder | {"constraints": [change(case, each) for each in known]} if known else holder

        def feature(given: Json) -> Json:
            return given | {"strategies": list(map(inside, given["strategies"]))}

        segments = {number: inside(each) for number, each in case.segments.items()}
        return replace(case.with_features(feature), segments=segments)

    return changed


def decided(beginning: str, outcome: Callable[[Case, Json], bool | None]) -> Change:
    """Return the change of constraints to what they come to in Edge, if their operator has this beginning.

    `outcome` is that before inversion; None leaves a constraint alone.
    """

    def change(case: Case, constraint: Json) -> Json:
        found = outcome(case, constraint) if constraint["operator"].startswith(beginning) else None
        if found is None:
            return constraint
        return ALWAYS if found != bool(constraint.get("inverted")) else NEVER

    return in_constraints(change)


def has_list(constraint: Json) -> bool:
    """Return whether a constraint compares with several values."""
    known = OPERATORS.get(constraint["operator"])
    return known is not None and known.takes in LISTS


def is_comparison(constraint: Json) -> bool:
    """Return whether a constraint compares with a single value that is no pattern."""
    known = OPERATORS.get(constraint["operator"])
    return known is not None and known.takes not in (*LISTS, PATTERN)


def is_unreadable(constraint: Json) -> bool:
    """Return whether Edge cannot read the single value of a constraint."""
    given = constraint.get("value")
    if not is_comparison(constraint) or (constraint["operator"].startswith("SEMVER") and str(given).startswith("v")):
        return False
    return given is None or edge_values.value_of(given) is None


def compared(case: Case, constraint: Json) -> bool | None:
    """Return what a comparison comes to."""
    given = constraint.get("value") or ""
    if given.startswith("v"):
        return bool(constraint.get("inverted"))  # false, also where it is inverted
    value = edge_values.value_of(given)
    text = case.field(constraint["contextName"])
    return None if value is None else edge_values.compares(constraint["operator"], text, value)


def listed(case: Case, constraint: Json) -> bool | None:
    """Return what a constraint with a list of texts comes to, if its values are taken as they are."""
    operator, values = constraint["operator"], constraint.get("values") or []
    text = case.field(constraint["contextName"])
    if operator in ("IN", "NOT_IN"):
        return bool(text in values) is (operator == "IN")
    if operator not in TEXT_TESTS:
        return None
    if text is not None and constraint.get("caseInsensitive"):
        text, values = text.lower(), [each.lower() for each in values]
    return text is not None and any(TEXT_TESTS[operator](text, each) for each in values)


TEXT_TESTS: dict[str, Callable[[str, str], bool]] = {
    "STR_CONTAINS": str.__contains__,
    "STR_STARTS_WITH": str.startswith,
    "STR_ENDS_WITH": str.endswith,
}


def in_networks(case: Case, constraint: Json) -> bool:
    """Return whether a field is a bare address in one of the networks of a constraint."""
    return edge_values.is_within(case.field(constraint["contextName"]) or "", constraint.get("values") or [])


def as_rust_pattern(case: Case, constraint: Json) -> Json:
    """Return a constraint whose pattern means in RE2 what it means in Rust. One without a pattern has an empty one."""
    if constraint["operator"] != "REGEX":
        return constraint
    given = constraint.get("value") or ""
    return constraint | {"value": edge_values.AS_RUST.get(given, given)}


# ---- dependencies


def by_parents(case: Case) -> Case:
    """Return the case without parents: off if any parent is not as Edge wants it."""
    feature = case.features[case.name]
    fits = all(is_satisfied(case, each) for each in feature.get("dependencies") or ())
    changed = feature | {"dependencies": []} | ({} if fits else {"enabled": False})
    return replace(case, features={**case.features, case.name: changed})


def evaluated(case: Case, parent: Json) -> Outcome:
    """Return what a parent comes to that is changed like this."""
    return replace(case, features={parent["name"]: parent}).evaluate(parent["name"])


def is_satisfied(case: Case, dependency: Json) -> bool:
    """Return whether a parent is as Edge wants it: the variant counts also if the parent is off, but not if there is none."""
    parent = case.features.get(dependency["feature"])
    if parent is None or parent.get("dependencies"):
        return False
    if case.evaluate(parent["name"]).is_on is (dependency.get("enabled") is False):
        return False
    switched_on = parent | {"enabled": True}
    ways = (switched_on, switched_on | {"strategies": []})
    seen = next(told for each in ways if (told := evaluated(case, each)).is_on)
    return not dependency.get("variants") or not seen.has_variant or seen.variant in dependency["variants"]
