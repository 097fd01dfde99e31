"""How changes of a flag are undone: of its description, its archiving, its creation and its end, and what it is in environments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Row

from flagsvc.server.store.checks import Json
from flagsvc.server.store.event_views import Side
from flagsvc.server.store.resources import feature_archive, features, strategies, whole_features
from flagsvc.server.store.resources.dependencies import children_by_parent, find_related
from flagsvc.server.store.resources.feature_environments import FeatureState, save_variants, set_states
from flagsvc.server.store.resources.feature_environments import read_states as read_states_in
from flagsvc.server.store.resources.strategies import Placed, read_all_whole
from flagsvc.server.store.store import Tx
from flagsvc.server.store.undo.subjects import (
    Change,
    Path,
    Subject,
    held_of,
    in_environment,
    in_turn,
    of_flag,
    place_of,
    places_of,
)


def read_states(tx: Tx, changes: Sequence[Change]) -> list[Side]:
    return [None if state is None else {"enabled": state.enabled} for state in _states_of(tx, changes)]


def _states_of(tx: Tx, changes: Sequence[Change]) -> list[FeatureState | None]:
    held = {
        name: read_states_in(tx, name or "", [each.feature or "" for each in changes if each.environment == name])
        for name in dict.fromkeys(each.environment for each in changes)
    }
    return [held[each.environment].get(each.feature or "") for each in changes]


def restore_states(tx: Tx, changes: Sequence[Change]) -> None:
    """Switch the flags back."""
    wanted = [bool((each.before or {}).get("enabled")) for each in changes]
    set_states(tx, dict(zip(places_of(tx, changes), wanted, strict=True)))


def read_strategies(tx: Tx, changes: Sequence[Change]) -> list[Side]:
    held = read_all_whole(tx, map(_strategy_of, changes))
    return [held.get(_strategy_of(each)) for each in changes]


def restore_strategies(tx: Tx, changes: Sequence[Change]) -> None:
    """Remove the strategies that were added; put back all other strategies, with their ids and places."""
    placed = list(zip(places_of(tx, changes), changes, strict=True))
    strategies.remove_all(tx, [Placed(place, each.after or {}) for place, each in placed if each.before is None])
    strategies.put(tx, [Placed(place, each.before) for place, each in placed if each.before is not None])


def _strategy_of(change: Change) -> str:
    return str(held_of(change)["id"])


def strategy_paths(change: Change) -> tuple[Path, ...]:
    return in_environment("strategies", _strategy_of(change))(change)


def strategy_uses(change: Change) -> tuple[Path, ...]:
    """Return the paths of the segments, context fields and type that the strategy needs after the event."""
    whole = change.after or {}
    used = [("segment", str(each)) for each in whole.get("segments", ())]
    used += [("context field", each["contextName"]) for each in whole.get("constraints", ())]
    return *used, ("strategy type", str(whole.get("name")))


def read_order(tx: Tx, change: Change) -> Side:
    return strategies.order_of(tx, place_of(tx, change))


def restore_order(tx: Tx, change: Change) -> None:
    """Sort the strategies as they were."""
    orders = (change.before or {})["sortOrders"]
    strategies.sort(tx, place_of(tx, change), [{"id": each, "sortOrder": order} for each, order in orders.items()])


def read_variants(tx: Tx, changes: Sequence[Change]) -> list[Side]:
    return [None if state is None else {"variants": state.variants} for state in _states_of(tx, changes)]


def restore_variants(tx: Tx, changes: Sequence[Change]) -> None:
    wanted = [(each.before or {})["variants"] for each in changes]
    save_variants(tx, dict(zip(places_of(tx, changes), wanted, strict=True)))


STATE = Subject("switch", read_states, restore_states, in_environment("state"))
STRATEGY = Subject("strategy", read_strategies, restore_strategies, strategy_paths, strategy_uses)
ORDER = in_turn("order of the strategies", read_order, restore_order, in_environment("strategies"))
VARIANTS = Subject("list of variants", read_variants, restore_variants, in_environment("variants"))


DESCRIPTION = "description"


def _rows_of(tx: Tx, changes: Sequence[Change]) -> list[Row[Any] | None]:
    """Return the rows of the flags of events; None for a flag that is not there."""
    rows = {row.name: row for row in features.find_all(tx, [each.feature or "" for each in changes])}
    return [rows.get(each.feature or "") for each in changes]


def read_descriptions(tx: Tx, changes: Sequence[Change]) -> list[Side]:
    return [None if row is None else features.metadata(row) for row in _rows_of(tx, changes)]


def restore_descriptions(tx: Tx, changes: Sequence[Change]) -> None:
    features.put_back(tx, {each.feature or "": each.before or {} for each in changes})


def read_stale(tx: Tx, changes: Sequence[Change]) -> list[Side]:
    return [None if row is None else {"stale": row.stale} for row in _rows_of(tx, changes)]


def restore_stale(tx: Tx, changes: Sequence[Change]) -> None:
    groups: defaultdict[tuple[str, bool], list[str]] = defaultdict(list)
    for row, change in zip(_rows_of(tx, changes), changes, strict=True):
        if row is not None:
            groups[row.project, (change.before or {})["stale"]].append(row.name)
    for (project, stale), names in groups.items():
        features.set_stale(tx, project, names, stale=stale)


def read_archiving(tx: Tx, changes: Sequence[Change]) -> list[Side]:
    """Return since when flags are archived and where they are on. For a flag that is archived again, return its children, too."""
    states = feature_archive.archive_states(tx, [row for row in _rows_of(tx, changes) if row is not None])
    archived = [each.feature or "" for each in changes if (each.before or {}).get("archivedAt")]
    children = {name: {"children": each} for name, each in children_by_parent(tx, archived).items()}
    found: list[Side] = []
    for change in changes:
        state = states.get(change.feature or "")
        needed: Json = children.get(change.feature or "", {})
        found.append(None if state is None else {name: state[name] for name in change.after or {}} | needed)
    return found


def restore_archiving(tx: Tx, changes: Sequence[Change]) -> None:
    """Archive or revive the flags, as they were; a revived one is on where it was on."""
    feature_archive.put_back_states(tx, {each.feature or "": each.before or {} for each in changes})


def archiving_paths(change: Change) -> tuple[Path, ...]:
    flag = change.feature or ""
    return ("flag", flag, DESCRIPTION, "archived"), ("flag", flag, "in")


def read_flags(tx: Tx, changes: Sequence[Change]) -> list[Side]:
    """Return the flags with the members that their events hold; with all of a flag that has more than its event tells."""
    rows = [row for row in _rows_of(tx, changes) if row is not None]
    wholes, related = whole_features.read_whole(tx, rows), find_related(tx, [row.name for row in rows])
    return [_told(wholes.get(each.feature or ""), each, related) for each in changes]


def _told(whole: Json | None, change: Change, related: Collection[str]) -> Side:
    """Return a flag with the members that its event holds, and with all members that the flag has beside them."""
    if whole is None:
        return None
    held = change.after or {}
    needed: Json = {"hasDependencies": True} if whole["name"] in related else {}
    more = {name for name in whole if name not in held and not _is_bare(name, whole[name])}
    return {name: value for name, value in whole.items() if name in held or name in more} | needed


def _is_bare(name: str, value: Any) -> bool:
    if name == "environments":
        return all(state == features.OFF for state in value.values())
    return name in ("createdBy", "createdById", "position") or not value


def restore_flags(tx: Tx, changes: Sequence[Change]) -> None:
    """Delete the flags that were created; create the others as they were."""
    made = [each.feature or "" for each in changes if each.before is None]
    feature_archive.remove_rows(tx, features.find_all(tx, made))
    whole_features.put_back(tx, [each.before for each in changes if each.before is not None])


DESCRIBED = Subject("description", read_descriptions, restore_descriptions, of_flag(DESCRIPTION))
STALE = Subject("mark as stale", read_stale, restore_stale, of_flag(DESCRIPTION, "stale"))
ARCHIVING = Subject("flag", read_archiving, restore_archiving, archiving_paths)
FLAG = Subject("flag", read_flags, restore_flags, of_flag())
