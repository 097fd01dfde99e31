"""What an import would change: a data set beside what the server exports of the same flags. Pure.

An import does these things in this order, and leaves the rest alone (import validation 6.3).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

FIELDS = (("type", "release"), ("description", None), ("stale", False), ("impressionData", False), ("archived", False))
"""Metadata of a flag and what it is set back to where the data set does not say it."""
FILLED = {"rollout": "100", "stickiness": "default"}
"""Parameters of flexibleRollout that the server fills in where they are missing; `groupId` is the flag's name."""
CONSTRAINT = {"inverted": False, "caseInsensitive": False, "values": [], "value": None}
KINDS = ("new", "changed", "same", "left out")


class Change(NamedTuple):
    """One flag: its name, what happens to it (one of KINDS), and what is different, a line each."""

    name: str
    kind: str
    details: tuple[str, ...] = ()


class ImportChanges(NamedTuple):
    """What an import would do: to each flag, and what else it would create."""

    flags: tuple[Change, ...]
    others: tuple[str, ...] = ()

    def count(self, kind: str) -> int:
        """Return to how many flags this happens."""
        return sum(1 for change in self.flags if change.kind == kind)


@dataclass
class FlagEntry:
    """All that a data set says of one flag; None where it says nothing. `places` are the sort orders of its strategies."""

    fields: dict[str, Any] | None = None
    strategies: list[dict[str, Any]] = field(default_factory=list)
    places: list[float | None] = field(default_factory=list)
    enabled: bool | None = None
    variants: list[Any] | None = None
    tags: set[str] = field(default_factory=set)
    depends: dict[str, str] = field(default_factory=dict)
    links: list[tuple[str, str]] | None = None


def named_in(data: Mapping[str, Any]) -> list[str]:
    """Return the names of all flags that an import of a data set touches, once each, in its order."""
    return list(flags_of(data))


def flags_of(data: Mapping[str, Any]) -> dict[str, FlagEntry]:
    """Return what a data set says, by flag."""
    flags: dict[str, FlagEntry] = {}
    segments = {item.get("id"): str(item.get("name")) for item in rows(data, "segments")}
    for item in rows(data, "features"):
        flags.setdefault(item["name"], FlagEntry()).fields = item
    for item in rows(data, "featureStrategies"):
        if item.get("featureName"):
            flag = flags.setdefault(item["featureName"], FlagEntry())
            flag.strategies.append(strategy(item, segments))
            flag.places.append(place if isinstance(place := item.get("sortOrder"), int | float) else None)
    for item in rows(data, "featureEnvironments"):
        if item.get("featureName"):
            flag = flags.setdefault(item["name"], FlagEntry())
            flag.enabled = bool(item.get("enabled"))
            flag.variants = item.get("variants") or flag.variants
    for item in rows(data, "featureTags"):
        if item.get("tagType"):
            flags.setdefault(item["featureName"], FlagEntry()).tags.add(f"{item['tagType']}:{item['tagValue']}")
    for item in rows(data, "dependencies"):
        if item["feature"] in flags:
            flags[item["feature"]].depends |= {parent["feature"]: depends(parent) for parent in item["dependencies"]}
    for item in rows(data, "links"):
        links = [(link["url"], link.get("title") or "") for link in item["links"]]
        flags.setdefault(item["feature"], FlagEntry()).links = links
    return flags


def rows(data: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """Return a list of a data set, empty where it is left out."""
    return list(data.get(key) or ())


def strategy(item: Mapping[str, Any], segments: Mapping[object, str]) -> dict[str, Any]:
    """Return a strategy as it is compared: without ids, with what the server fills in."""
    parameters = {name: str(value) for name, value in (item.get("parameters") or {}).items()}
    if item["name"] == "flexibleRollout":
        parameters = {**FILLED, "groupId": str(item.get("featureName")), **parameters}
    return {
        "name": item["name"],
        "title": item.get("title") or "",
        "disabled": bool(item.get("disabled")),
        "parameters": parameters,
        "constraints": [CONSTRAINT | constraint for constraint in item.get("constraints") or ()],
        "variants": item.get("variants") or [],
        "segments": sorted(segments.get(number, f"number {number}") for number in item.get("segments") or ()),
    }


def depends(parent: Mapping[str, Any]) -> str:
    """Return what a dependency asks of its parent."""
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
    """Return what an import of `data` would change.

    `target` is the server's export of the flags that `data` names (`named_in`); `context_fields` and `tag_types` are the
    names the server has, None where they are not known.
    """
    wanted, there = flags_of(data), flags_of(target)
    changes = tuple(changed(name, flag, there.get(name)) for name, flag in wanted.items())
    gone = {change.name for change in changes if change.kind == "left out"}
    used = {item.get("tagType") for item in rows(data, "featureTags") if item["featureName"] not in gone}
    fields = fresh((item["name"] for item in rows(data, "contextFields")), context_fields)
    types = fresh((item["name"] for item in rows(data, "tagTypes") if item["name"] in used), tag_types)
    others = [*(f"context field {name}" for name in fields), *(f"tag type {name}" for name in types)]
    return ImportChanges(changes, tuple(others))


def fresh(names: Iterable[str], known: Iterable[str] | None) -> list[str]:
    """Return the names that are not known, once each; none where nothing is known."""
    return [] if known is None else [name for name in dict.fromkeys(names) if name not in set(known)]


def changed(name: str, wanted: FlagEntry, there: FlagEntry | None) -> Change:
    """Return what happens to one flag."""
    if there is None or there.fields is None:
        return Change(name, "new", tuple(differences(name, wanted, FlagEntry(fields={}, enabled=False, links=[]))))
    if there.fields.get("archived"):
        return Change(name, "left out", ("it is archived",))
    details = tuple(differences(name, wanted, there))
    return Change(name, "changed" if details else "same", details)


def differences(name: str, wanted: FlagEntry, there: FlagEntry) -> Iterable[str]:
    """Give what is different between what is wanted of a flag and what is there, a line each."""
    if wanted.fields is not None:
        yield from metadata(wanted.fields, there.fields or {})
    if wanted.enabled is not None and wanted.enabled != bool(there.enabled):
        yield "off → on" if wanted.enabled else "on → off"
    yield from strategies(name, wanted, there)
    if wanted.variants and texts(wanted.variants) != texts(there.variants or ()):
        yield f"variants: {', '.join(str(item.get('name')) for item in wanted.variants)}"
    if wanted.fields is not None:
        yield from signed("tags", sorted(there.tags - wanted.tags), sorted(wanted.tags - there.tags))
        if "project" in wanted.fields:
            yield from signed("depends on", (), sorted(set(wanted.depends.values()) - set(there.depends.values())))
    else:
        yield from signed("tags", (), sorted(wanted.tags - there.tags))
    if wanted.links is not None and wanted.links != (there.links or []):
        yield f"links: {', '.join(url for url, _ in wanted.links) or 'none'}"


def metadata(wanted: Mapping[str, Any], there: Mapping[str, Any]) -> Iterable[str]:
    """Give the metadata that differ; for a flag that is new, what is not as usual."""
    for key, default in FIELDS:
        before, after = there.get(key) or default, wanted.get(key) or default
        if before != after:
            yield f"{key}: {shown(before)} → {shown(after)}" if there else f"{key}: {shown(after)}"


def strategies(name: str, wanted: FlagEntry, there: FlagEntry) -> Iterable[str]:
    """Give the strategies that go and come; those of a flag that is listed are replaced, of another added to."""
    coming = list(wanted.strategies)
    if wanted.fields is None:
        yield from signed("strategies", (), [item["name"] for item in coming])
        return
    if wanted.enabled and all(item["disabled"] for item in coming):
        coming.append(strategy({"name": "flexibleRollout", "featureName": name}, {}))
    before, after = Counter(texts(there.strategies)), Counter(texts(coming))
    yield from signed("strategies", names_of(before - after), names_of(after - before))
    if before == after and in_another_order(in_order(coming, wanted.places), in_order(there.strategies, there.places)):
        yield "strategies: in another order"


def in_order(items: Iterable[dict[str, Any]], places: list[float | None]) -> list[str] | None:
    """Return strategies as texts in their order, None where a place is not known; one that the server adds comes last."""
    known = [place for place in places if place is not None]
    found = texts(items)
    if len(known) < len(places) or len(set(known)) < len(known):
        return None
    known += [max(known, default=0) + 1] * (len(found) - len(known))
    return [text for _, text in sorted(zip(known, found, strict=True))]


def in_another_order(wanted: list[str] | None, there: list[str] | None) -> bool:
    """Return whether two orders are known and differ."""
    return None not in (wanted, there) and wanted != there


def names_of(found: Counter[str]) -> list[str]:
    """Return the names of strategies in the form of `texts`."""
    return [str(json.loads(text)["name"]) for text in found.elements()]


def texts(items: Iterable[object]) -> list[str]:
    """Return values as texts that are equal when the values are, whatever the order of keys."""
    return [json.dumps(item, sort_keys=True) for item in items]


def signed(title: str, gone: Iterable[str], come: Iterable[str]) -> Iterable[str]:
    """Give one line of what goes and what comes, none where nothing does."""
    words = [*(f"- {name}" for name in gone), *(f"+ {name}" for name in come)]
    if words:
        yield f"{title}: {', '.join(words)}"


def shown(value: object) -> str:
    """Return a value of the metadata in words."""
    words = {"None": "none", "True": "yes", "False": "no"}
    return f"`{value}`" if isinstance(value, str) else words.get(str(value), str(value))
