"""Copying flags from an environment to others of the same server: imports of what they are in the first one (decision 0060)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from flagsvc.server.store.batch.dataset import Json
from flagsvc.server.store.batch.exporting import export, read_flag_states, states_of
from flagsvc.server.store.batch.planning import ImportRequest
from flagsvc.server.store.errors import bad_data, not_found
from flagsvc.server.store.store import Tx

PARTS: Final = {
    "features": "name",
    "featureStrategies": "featureName",
    "featureEnvironments": "featureName",
    "featureTags": "featureName",
}
"""Part of an export that a copy imports → its member with the flag.

An import replaces tags, so they come along. Context fields, links and dependencies are the same in every environment.
"""
NO_FLAG: Final = "There is nothing to copy: no flag is named"


def make_copies(tx: Tx, names: Iterable[str], source: str, targets: Iterable[str]) -> list[ImportRequest]:
    """Return the imports that make flags in `targets` what they are in `source`: one for each target and project.

    Flags that are the same in a target are left out there. Raises CallerError: 400 without a flag, 404 for one that is not active,
    or not in one of the environments.
    """
    wanted = list(dict.fromkeys(names))
    if not wanted:
        raise bad_data(NO_FLAG)  # an export of no name would be one of all flags
    data = export(tx, {"environment": source, "features": wanted})
    here = states_of(data)
    _require_states(wanted, here, source)
    owners = {each["name"]: each["project"] for each in data["features"]}
    places = list(targets)
    found = []
    for target in places:
        there = read_flag_states(tx, wanted, target)
        _require_states(wanted, there, target)
        groups: dict[str, list[str]] = defaultdict(list)
        for name in wanted:
            if here[name] != there[name]:
                groups[owners[name]].append(name)
        for project, flags in groups.items():
            emptied = tuple(each for each in flags if there[each]["variants"] and not here[each]["variants"])
            body = {"project": project, "environment": target, "data": _select(data, set(flags))}
            before = {each: there[each] for each in flags} if len(places) == 1 else None
            found.append(ImportRequest(body, body, emptied, before))
    return found


def _require_states(wanted: Sequence[str], states: Mapping[str, Json], environment: str) -> None:
    """Raise CallerError (404) for a flag that is not active, or not in an environment."""
    for name in wanted:
        state = states.get(name)
        if state is None or state["archived"]:
            raise not_found(f"There is no active flag {name}")
        if state["enabled"] is None:
            raise not_found(f"The flag {name} is not in the environment {environment}")


def _select(data: Mapping[str, Any], names: set[str]) -> Json:
    """Return the data set of some flags of an export."""
    parts = {part: [each for each in data[part] if each[member] in names] for part, member in PARTS.items()}
    used = {number for each in parts["featureStrategies"] for number in each["segments"]}
    segments = [each for each in data["segments"] if each["id"] in used]
    return parts | {"segments": segments, "tagTypes": []}
