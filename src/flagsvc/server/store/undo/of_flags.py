"""How changes of flags in environments are undone."""

from __future__ import annotations

from flagsvc.server.store.event_kinds import Side
from flagsvc.server.store.resources import feature_environments, strategies
from flagsvc.server.store.store import Tx
from flagsvc.server.store.undo.changes import Change
from flagsvc.server.store.undo.subjects import Path, Subject, held_of, in_environment, place_of


def read_state(tx: Tx, change: Change) -> Side:
    """Return whether the flag is on in the environment."""
    row = feature_environments.find_state(tx, place_of(tx, change))
    return None if row is None else {"enabled": row.enabled}


def restore_state(tx: Tx, change: Change) -> None:
    """Switch the flag back."""
    before = change.before or {}
    strategies.set_state(tx, place_of(tx, change), enabled=bool(before.get("enabled")))


def read_strategy(tx: Tx, change: Change) -> Side:
    """Return the strategy."""
    return strategies.find_whole(tx, _strategy_of(change))


def restore_strategy(tx: Tx, change: Change) -> None:
    """Remove the strategy that was added; else put it back, with its id and its place."""
    if change.before is None:
        strategies.remove(tx, place_of(tx, change), _strategy_of(change), keep_state=True)
    else:
        strategies.put_back(tx, place_of(tx, change), change.before)


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


def read_variants(tx: Tx, change: Change) -> Side:
    """Return the variants of the flag in the environment."""
    row = feature_environments.find_state(tx, place_of(tx, change))
    return None if row is None else {"variants": row.variants or []}


def restore_variants(tx: Tx, change: Change) -> None:
    """Give the flag the variants that it had."""
    feature_environments.save_variants(tx, place_of(tx, change), (change.before or {})["variants"])


STATE = Subject("switch", read_state, restore_state, in_environment("state"))
STRATEGY = Subject("strategy", read_strategy, restore_strategy, strategy_paths, strategy_uses)
ORDER = Subject("order of the strategies", read_order, restore_order, in_environment("strategies"))
VARIANTS = Subject("list of variants", read_variants, restore_variants, in_environment("variants"))
