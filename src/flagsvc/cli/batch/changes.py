"""Compares a data set with the server's export of the same flags: the changes of an import. Pure.

An import does these things in this order, and leaves the rest alone (import validation 6.3).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from flagsvc.server.shapes.features import DESCRIPTION

METADATA_DEFAULTS = (*DESCRIPTION.items(), ("archived", False))
"""Metadata of a flag, and the values that an import sets where the data set has none."""
DEFAULT_PARAMETERS = {"rollout": "100", "stickiness": "default"}
"""Parameters of flexibleRollout that the server adds where they are missing; `groupId` is the flag's name."""
DEFAULT_CONSTRAINT = {"inverted": False, "caseInsensitive": False, "values": [], "value": None}
KINDS = ("new", "changed", "same", "left out")


class Change(NamedTuple):
    """The change of a flag: its name, the kind of change (one of KINDS), and the differences, one line each."""

    name: str
    kind: str
    details: tuple[str, ...] = ()


class ImportChanges(NamedTuple):
    """The changes of each flag by an import, and the other objects that the import creates."""

    flags: tuple[Change, ...]
    others: tuple[str, ...] = ()

    def count(self, kind: str) -> int:
        """Return the number of flags with this kind of change."""
        return sum(1 for change in self.flags if change.kind == kind)


@dataclass
class FlagEntry:
    """Everything about one flag in a data set; None for absent parts. `places` are the sort orders of its strategies."""

    fields: dict[str, Any] | None = None
    strategies: list[dict[str, Any]] = field(default_factory=list)
    places: list[float | None] = field(default_factory=list)
    enabled: bool | None = None
    variants: list[Any] | None = None
    tags: set[str] = field(default_factory=set)
    depends: dict[str, str] = field(default_factory=dict)
    links: list[tuple[str, str]] | None = None


def read_flags(data: Mapping[str, Any]) -> dict[str, FlagEntry]:
    """Return the entries of a data set, by flag: of all flags that an import affects, in its order."""
    flags: dict[str, FlagEntry] = {}
    segments = {item.get("id"): str(item.get("name")) for item in list_rows(data, "segments")}
    for item in list_rows(data, "features"):
        flags.setdefault(item["name"], FlagEntry()).fields = item
    for item in list_rows(data, "featureStrategies"):
        if item.get("featureName"):
            flag = flags.setdefault(item["featureName"], FlagEntry())
            flag.strategies.append(normalize_strategy(item, segments))
            flag.places.append(place if isinstance(place := item.get("sortOrder"), int | float) else None)
    for item in list_rows(data, "featureEnvironments"):
        if item.get("featureName"):
            flag = flags.setdefault(item["name"], FlagEntry())
            flag.enabled = bool(item.get("enabled"))
            flag.variants = item.get("variants") or flag.variants
    for item in list_rows(data, "featureTags"):
        if item.get("tagType"):
            flags.setdefault(item["featureName"], FlagEntry()).tags.add(f"{item['tagType']}:{item['tagValue']}")
    for item in list_rows(data, "dependencies"):
        if item["feature"] in flags:
            flags[item["feature"]].depends |= {parent["feature"]: describe_dependency(parent) for parent in item["dependencies"]}
    for item in list_rows(data, "links"):
        links = [(link["url"], link.get("title") or "") for link in item["links"]]
        flags.setdefault(item["feature"], FlagEntry()).links = links
    return flags


def list_rows(data: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """Return a list of a data set, empty if absent."""
    return list(data.get(key) or ())


def normalize_strategy(item: Mapping[str, Any], segments: Mapping[object, str]) -> dict[str, Any]:
    """Return a strategy for comparison: without ids, with the server's defaults."""
    parameters = {name: str(value) for name, value in (item.get("parameters") or {}).items()}
    if item["name"] == "flexibleRollout":
        parameters = {**DEFAULT_PARAMETERS, "groupId": str(item.get("featureName")), **parameters}
    return {
        "name": item["name"],
        "title": item.get("title") or "",
        "disabled": bool(item.get("disabled")),
        "parameters": parameters,
        "constraints": [DEFAULT_CONSTRAINT | constraint for constraint in item.get("constraints") or ()],
        "variants": item.get("variants") or [],
        "segments": sorted(segments.get(number, f"number {number}") for number in item.get("segments") or ()),
    }


def describe_dependency(parent: Mapping[str, Any]) -> str:
    """Return a dependency as text: the parent and its required state."""
    if not parent.get("enabled", True):
        return f"{parent['feature']} off"
    variants = ", ".join(parent.get("variants") or ())
    return f"{parent['feature']} on" + (f" with {variants}" if variants else "")


def compare(
    data: Mapping[str, Any],
    target: Mapping[str, Any],
    context_fields: Iterable[str] | None,
    tag_types: Iterable[str] | None,
) -> ImportChanges:
    """Return the changes of an import of `data`.

    `target` is the server's export of the flags in `data` (`read_flags`). `context_fields` and `tag_types` are the server's
    names, None if they are unknown.
    """
    wanted, there = read_flags(data), read_flags(target)
    changes = tuple(compare_flag(name, flag, there.get(name)) for name, flag in wanted.items())
    gone = {change.name for change in changes if change.kind == "left out"}
    used = {item.get("tagType") for item in list_rows(data, "featureTags") if item["featureName"] not in gone}
    fields = list_new((item["name"] for item in list_rows(data, "contextFields")), context_fields)
    types = list_new((item["name"] for item in list_rows(data, "tagTypes") if item["name"] in used), tag_types)
    others = [*(f"context field {name}" for name in fields), *(f"tag type {name}" for name in types)]
    return ImportChanges(changes, tuple(others))


def list_new(names: Iterable[str], known: Iterable[str] | None) -> list[str]:
    """Return the unknown names, once each; an empty list where `known` is None."""
    there = None if known is None else set(known)
    return [] if there is None else [name for name in dict.fromkeys(names) if name not in there]


def compare_flag(name: str, wanted: FlagEntry, there: FlagEntry | None) -> Change:
    if there is None or there.fields is None:
        return Change(name, "new", tuple(list_differences(name, wanted, FlagEntry(fields={}, enabled=False, links=[]))))
    if there.fields.get("archived"):
        return Change(name, "left out", ("it is archived",))
    details = tuple(list_differences(name, wanted, there))
    return Change(name, "changed" if details else "same", details)


def list_differences(name: str, wanted: FlagEntry, there: FlagEntry) -> Iterable[str]:
    """Yield the differences between the wanted flag and the existing one, one line each."""
    if wanted.fields is not None:
        yield from metadata_differences(wanted.fields, there.fields or {})
    if wanted.enabled is not None and wanted.enabled != bool(there.enabled):
        yield "off → on" if wanted.enabled else "on → off"
    yield from strategy_differences(name, wanted, there)
    if wanted.variants and comparison_texts(wanted.variants) != comparison_texts(there.variants or ()):
        yield f"variants: {', '.join(str(item.get('name')) for item in wanted.variants)}"
    if wanted.fields is not None:
        yield from format_difference("tags", sorted(there.tags - wanted.tags), sorted(wanted.tags - there.tags))
        if "project" in wanted.fields:
            yield from format_difference("depends on", (), sorted(set(wanted.depends.values()) - set(there.depends.values())))
    else:
        yield from format_difference("tags", (), sorted(wanted.tags - there.tags))
    if wanted.links is not None and wanted.links != (there.links or []):
        yield f"links: {', '.join(url for url, _ in wanted.links) or 'none'}"


def metadata_differences(wanted: Mapping[str, Any], there: Mapping[str, Any]) -> Iterable[str]:
    """Yield different metadata; for a new flag, those that differ from the defaults."""
    for key, default in METADATA_DEFAULTS:
        before, after = there.get(key) or default, wanted.get(key) or default
        if before != after:
            yield f"{key}: {format_value(before)} → {format_value(after)}" if there else f"{key}: {format_value(after)}"


def strategy_differences(name: str, wanted: FlagEntry, there: FlagEntry) -> Iterable[str]:
    """Yield removed and added strategies. An import replaces the strategies of listed flags. To other flags it adds strategies."""
    coming = list(wanted.strategies)
    if wanted.fields is None:
        yield from format_difference("strategies", (), [item["name"] for item in coming])
        return
    if wanted.enabled and all(item["disabled"] for item in coming):
        coming.append(normalize_strategy({"name": "flexibleRollout", "featureName": name}, {}))
    before, after = Counter(comparison_texts(there.strategies)), Counter(comparison_texts(coming))
    yield from format_difference("strategies", names_of(before - after), names_of(after - before))
    orders = ordered_texts(coming, wanted.places), ordered_texts(there.strategies, there.places)
    if before == after and None not in orders and orders[0] != orders[1]:
        yield "strategies: in another order"


def ordered_texts(items: Iterable[dict[str, Any]], places: list[float | None]) -> list[str] | None:
    """Return strategies as texts in order; None if a sort order is unknown. A strategy that the server adds comes last."""
    known = [place for place in places if place is not None]
    found = comparison_texts(items)
    if len(known) < len(places) or len(set(known)) < len(known):
        return None
    known += [max(known, default=0) + 1] * (len(found) - len(known))
    return [text for _, text in sorted(zip(known, found, strict=True))]


def names_of(found: Counter[str]) -> list[str]:
    """Return the names of strategies in the form of `comparison_texts`."""
    return [str(json.loads(text)["name"]) for text in found.elements()]


def comparison_texts(items: Iterable[object]) -> list[str]:
    """Return values as texts that are equal for equal values, in any order of keys."""
    return [json.dumps(item, sort_keys=True) for item in items]


def format_difference(title: str, gone: Iterable[str], come: Iterable[str]) -> Iterable[str]:
    """Yield one line with removed and added items; nothing without changes."""
    words = [*(f"- {name}" for name in gone), *(f"+ {name}" for name in come)]
    if words:
        yield f"{title}: {', '.join(words)}"


def format_value(value: object) -> str:
    """Return a value of the metadata as text."""
    words = {"None": "none", "True": "yes", "False": "no"}
    return f"`{value}`" if isinstance(value, str) else words.get(str(value), str(value))
