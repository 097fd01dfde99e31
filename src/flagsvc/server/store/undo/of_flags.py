"""How changes of flags in environments are undone."""

from __future__ import annotations

from collections.abc import Sequence

from flagsvc.server.store.event_kinds import Side
from flagsvc.server.store.resources import strategies
from flagsvc.server.store.resources.feature_environments import FeatureState, save_variants, set_states
from flagsvc.server.store.resources.feature_environments import read_states as read_states_in
from flagsvc.server.store.resources.strategies import read_all_whole
from flagsvc.server.store.resources.whole_strategies import Placed, put_back, remove_all
from flagsvc.server.store.store import Tx
from flagsvc.server.store.undo.changes import Change
from flagsvc.server.store.undo.subjects import Path, Subject, held_of, in_environment, in_turn, place_of, places_of


def read_states(tx: Tx, changes: Sequence[Change]) -> list[Side]:
    """Return whether the flags are on in the environments."""
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
    """Return the strategies."""
    held = read_all_whole(tx, map(_strategy_of, changes))
    return [held.get(_strategy_of(each)) for each in changes]


def restore_strategies(tx: Tx, changes: Sequence[Change]) -> None:
    """Remove the strategies that were added; put back all other strategies, with their ids and places."""
    placed = list(zip(places_of(tx, changes), changes, strict=True))
    remove_all(tx, [Placed(place, each.after or {}) for place, each in placed if each.before is None])
    put_back(tx, [Placed(place, each.before) for place, each in placed if each.before is not None])


def _strategy_of(change: Change) -> str:
    return str(held_of(change)["id"])


def strategy_paths(change: Change) -> tuple[Path, ...]:
    """Return the paths of the strategy."""
    return in_environment("strategies", _strategy_of(change))(change)


def strategy_uses(change: Change) -> tuple[Path, ...]:
    """Return the paths of the segments, context fields and type that the strategy needs after the event."""
    whole = change.after or {}
    used = [("segment", str(each)) for each in whole.get("segments", ())]
    used += [("context field", each["contextName"]) for each in whole.get("constraints", ())]
    return *used, ("strategy type", str(whole.get("name")))


def read_order(tx: Tx, change: Change) -> Side:
    """Return the order of the strategies."""
    return strategies.order_of(tx, place_of(tx, change))


def restore_order(tx: Tx, change: Change) -> None:
    """Sort the strategies as they were."""
    orders = (change.before or {})["sortOrders"]
    strategies.sort(tx, place_of(tx, change), [{"id": each, "sortOrder": order} for each, order in orders.items()])


def read_variants(tx: Tx, changes: Sequence[Change]) -> list[Side]:
    """Return the variants of the flags in the environments."""
    return [None if state is None else {"variants": state.variants} for state in _states_of(tx, changes)]


def restore_variants(tx: Tx, changes: Sequence[Change]) -> None:
    """Give the flags the variants that they had."""
    wanted = [(each.before or {})["variants"] for each in changes]
    save_variants(tx, dict(zip(places_of(tx, changes), wanted, strict=True)))


STATE = Subject("switch", read_states, restore_states, in_environment("state"))
STRATEGY = Subject("strategy", read_strategies, restore_strategies, strategy_paths, strategy_uses)
ORDER = in_turn("order of the strategies", read_order, restore_order, in_environment("strategies"))
VARIANTS = Subject("list of variants", read_variants, restore_variants, in_environment("variants"))
