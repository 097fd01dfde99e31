"""How changes of flags in environments are undone."""

from __future__ import annotations

from flagsvc.server.store.event_kinds import Side
from flagsvc.server.store.resources import feature_environments, strategies
from flagsvc.server.store.store import Tx
from flagsvc.server.store.undo.changes import Change
from flagsvc.server.store.undo.subjects import Subject, place_of


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
    return str((change.after or change.before or {})["id"])


def read_order(tx: Tx, change: Change) -> Side:
    """Return the order of the strategies."""
    return strategies.order_of(tx, place_of(tx, change))


def restore_order(tx: Tx, change: Change) -> None:
    """Sort the strategies as they were."""
    orders = (change.before or {})["sortOrders"]
    strategies.sort(tx, place_of(tx, change), [{"id": each, "sortOrder": order} for each, order in orders.items()])


STATE = Subject("switch", read_state, restore_state)
STRATEGY = Subject("strategy", read_strategy, restore_strategy)
ORDER = Subject("order of the strategies", read_order, restore_order)
