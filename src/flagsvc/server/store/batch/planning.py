"""What an import changes: it is carried out, and the flags are compared before and after it.

So a preview knows no rules of its own: `Store.dry_run` rolls an import back. Copying flags from an environment
to others of the same server is an import of their state in the first environment (decision 0028).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from flagsvc.server.store.actors import Actor
from flagsvc.server.store.batch.dataset import DataSet, Json, read_data_set
from flagsvc.server.store.batch.exporting import export, read_flag_states, states_of
from flagsvc.server.store.batch.importing import import_data, validate
from flagsvc.server.store.batch.rules import MISSING_PERMISSIONS, PERMISSIONS
from flagsvc.server.store.errors import bad_data, not_found
from flagsvc.server.store.resources.feature_environments import replace_variants
from flagsvc.server.store.resources.strategies import StrategyPlace
from flagsvc.server.store.store import Tx

NEW, CHANGED, SAME, LEFT_OUT = "new", "changed", "same", "left out"
KINDS: Final = (NEW, CHANGED, SAME, LEFT_OUT)
VARIANTS: Final = "Update variants"
"""What people call the permission to change variants in an environment."""
MADE: Final = {"context-field-created": "context field", "tag-type-created": "tag type"}
"""Type of the event of something that an import makes besides flags → what it is."""


class ImportRequest(NamedTuple):
    """A request to import, as `import_data` takes it: as it can be stored, and with its original texts.

    The flags of `emptied` lose their variants in the environment, which an import leaves where the data set has none. `before` has
    the states of the flags, if they were just read, and no request before this one changes such a flag.
    """

    body: Mapping[str, Any]
    sent: Mapping[str, Any]
    emptied: tuple[str, ...] = ()
    before: Mapping[str, Json] | None = None


class FlagChange(NamedTuple):
    """What an import does to a flag: its name, one of KINDS, and its states (`read_flag_states`); None before a new flag."""

    name: str
    kind: str
    before: Json | None
    after: Json


class ImportPlan(NamedTuple):
    """What an import of one request finds and does. `made` are the words of other objects. One that is `refused` has no flags."""

    project: str
    environment: str
    checks: Json
    flags: tuple[FlagChange, ...] = ()
    made: tuple[str, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether errors or missing permissions stop it."""
        return bool(self.checks["errors"] or self.checks["permissions"])

    def content(self) -> Json:
        """Return the plan as JSON, for a digest. It has no ids, so the same import has the same content each time."""
        flags = [each._asdict() for each in self.flags]
        return {**self._asdict(), "flags": flags, "made": list(self.made)}


def carry_out(tx: Tx, actor: Actor, requests: Sequence[ImportRequest]) -> list[ImportPlan]:
    """Import requests in turn, and return the plan of each.

    If one is refused, the transaction must be rolled back. Raises CallerError, as `validate` and `import_data` do.
    """
    checks = [_validate(tx, actor, each) for each in requests]
    if any(each["errors"] or each["permissions"] for each in checks):
        return [_refused(each, found) for each, found in zip(requests, checks, strict=True)]
    return [_import(tx, actor, each, found) for each, found in zip(requests, checks, strict=True)]


def _validate(tx: Tx, actor: Actor, request: ImportRequest) -> Json:
    """Return what the validation finds, with the permission to empty variants."""
    found = validate(tx, actor, request.body, request.sent)
    if request.emptied and not actor.may(PERMISSIONS[VARIANTS], request.body["project"], request.body["environment"]):
        missing = [name for each in found["permissions"] for name in each["affectedItems"]]
        items = list(dict.fromkeys((*missing, VARIANTS)))
        found["permissions"] = [{"message": MISSING_PERMISSIONS, "affectedItems": items}]
    return found


def _refused(request: ImportRequest, checks: Json) -> ImportPlan:
    return ImportPlan(request.body["project"], request.body["environment"], checks)


def _import(tx: Tx, actor: Actor, request: ImportRequest, checks: Json) -> ImportPlan:
    data = read_data_set(request.body)
    names = list(dict.fromkeys(named_flags(data)))
    before = read_flag_states(tx, names, data.environment) if request.before is None else request.before
    count = len(tx.pending_events)
    for name in request.emptied:
        replace_variants(tx, StrategyPlace(data.project, name, data.environment), [])
    import_data(tx, actor, request.body, request.sent)
    after = read_flag_states(tx, names, data.environment)
    flags = tuple(_change(name, before.get(name), after[name]) for name in names if name in after)
    made = [f"{MADE[each['type']]} {each['data']['name']}" for each in tx.pending_events[count:] if each["type"] in MADE]
    return ImportPlan(data.project, data.environment, checks, flags, tuple(made))


def _change(name: str, before: Json | None, after: Json) -> FlagChange:
    if before is None:
        return FlagChange(name, NEW, None, after)
    if before["archived"] and before == after:
        return FlagChange(name, LEFT_OUT, before, after)
    return FlagChange(name, SAME if before == after else CHANGED, before, after)


def named_flags(data: DataSet) -> Iterator[str]:
    """Yield the flags that an import of a data set may change, those of `features` first; names may repeat."""
    yield from data.names
    entries: tuple[tuple[Iterable[Json], str], ...] = (
        (data.strategies, "featureName"),
        (data.environments, "name"),
        (data.environments, "featureName"),
        (data.tags, "featureName"),
        (data.links, "feature"),
        (data.dependencies, "feature"),
    )
    for rows, member in entries:
        yield from (each[member] for each in rows if each.get(member))


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
