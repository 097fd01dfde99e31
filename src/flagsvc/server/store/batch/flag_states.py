"""What a flag is in one environment: without ids and in one form, so that two states can be compared (import validation 7)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from flagsvc.server.store.batch.dataset import Json
from flagsvc.server.store.batch.exporting import export
from flagsvc.server.store.store import Tx

CONSTRAINT: Final[Json] = {"inverted": False, "caseInsensitive": False, "values": []}
"""What a constraint has where it says nothing."""
METADATA: Final = ("type", "description", "stale", "impressionData", "archived")


def read_flag_states(tx: Tx, names: Iterable[str], environment: str) -> dict[str, Json]:
    """Return the states of flags in an environment, by name; archived flags too. A flag that does not exist has none."""
    wanted = list(dict.fromkeys(names))
    return states_of(export(tx, {"environment": environment, "features": wanted})) if wanted else {}


def states_of(data: Mapping[str, Any]) -> dict[str, Json]:
    """Return the states of the flags of an export. `enabled` is None where a flag is not in the environment."""
    strategies = _by_flag(data["featureStrategies"], "featureName")
    places = {each["featureName"]: each for each in data["featureEnvironments"]}
    tags = _by_flag(data["featureTags"], "featureName")
    parents = {each["feature"]: each["dependencies"] for each in data["dependencies"]}
    links = {each["feature"]: each["links"] for each in data["links"]}
    found: dict[str, Json] = {}
    for each in data["features"]:
        name = each["name"]
        place = places.get(name)
        found[name] = state_of(
            None if place is None else place["enabled"], strategies[name], () if place is None else place["variants"]
        ) | {
            **{part: each[part] for part in METADATA},
            "description": each["description"] or "",
            "tags": [f"{tag['tagType']}:{tag['tagValue']}" for tag in tags[name]],
            "links": [{"url": link["url"], "title": link["title"] or ""} for link in links.get(name, ())],
            "parents": parents.get(name, []),
        }
    return found


def _by_flag(rows: Iterable[Json], member: str) -> dict[str, list[Json]]:
    found: dict[str, list[Json]] = defaultdict(list)
    for each in rows:
        found[each[member]].append(each)
    return found


def state_of(enabled: bool | None, strategies: Iterable[Mapping[str, Any]], variants: Iterable[Json] | None) -> Json:
    """Return the part of a state that belongs to the environment. `strategies` are in order."""
    return {
        "enabled": enabled,
        "strategies": [compared_strategy(each) for each in strategies],
        "variants": list(variants or ()),
    }


def compared_strategy(strategy: Mapping[str, Any]) -> Json:
    """Return a strategy without its id and its place."""
    return {
        "name": strategy["name"],
        "title": strategy["title"] or "",
        "disabled": bool(strategy["disabled"]),
        "parameters": dict(strategy["parameters"] or {}),
        "constraints": [compared_constraint(each) for each in strategy["constraints"] or ()],
        "segments": sorted(strategy["segments"]),
        "variants": list(strategy["variants"] or ()),
    }


def compared_constraint(constraint: Mapping[str, Any]) -> Json:
    """Return a constraint with what it leaves out."""
    return CONSTRAINT | {name: value for name, value in constraint.items() if value is not None}
