"""Which flags differ between two environments, without reading all that they are.

What is stored is compared as text, and decoded only where the texts differ, so thousands of flags take milliseconds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, Final, TypeAlias

from sqlalchemy import ColumnElement, Select, Text, cast, func, select

from flagsvc.server.store.batch.exporting import compared_constraint
from flagsvc.server.store.client_features import group_rows, read_json, segment_uses_query
from flagsvc.server.store.resources.strategies import ORDER
from flagsvc.server.store.schema import feature_environments, strategies
from flagsvc.server.store.store import Tx, read_revision

Canon: TypeAlias = Callable[[str], Any]


def as_it_is(text: str) -> str:
    return text


def read_list(text: str) -> list[Any]:
    """Return a list of JSON; none is an empty one."""
    return read_json(text) or [] if text else []


def read_constraints(text: str) -> list[Any]:
    """Return constraints with what they leave out."""
    return [compared_constraint(each) for each in read_list(text)]


CANONS: Final[Mapping[str, Canon]] = {
    "disabled": as_it_is,
    "parameters": read_json,
    "variants": read_list,
    "constraints": read_constraints,
    "name": as_it_is,
    "title": as_it_is,
}
"""Column of a strategy → what its text stands for, as `compared_strategy` has it. Texts that people write are last."""
MARK: Final = "\x1f"
"""Stands between the columns of a strategy, and before its segments; JSON never has it."""
COLUMNS: Final[Sequence[Canon]] = (as_it_is, *CANONS.values())
"""What the parts of a strategy's text stand for; the segments come first."""
State: TypeAlias = list[str]
"""A flag in an environment as it is stored: whether it is on, its variants, then a text for each strategy. Texts are all there is
of it, because the garbage collector would look at every other object while there are thousands."""
PIECE: Final = 500
"""Rows that are read at once."""


def find_differing(tx: Tx, one: str, other: str) -> dict[str, bool]:
    """Return the flags that differ between two environments, archived ones too, and whether each is in both."""
    left, right = _read_states(tx, one), _read_states(tx, other)
    found = {name: True for name in left.keys() & right.keys() if _differ(left[name], right[name])}
    return found | dict.fromkeys(left.keys() ^ right.keys(), False)


class DifferingFlags:
    """What differs between environments, kept until flags change. Safe to use from any thread."""

    def __init__(self) -> None:
        self._revision = -1
        self._kept: dict[tuple[str, str], dict[str, bool]] = {}
        self._lock = threading.Lock()

    def find(self, tx: Tx, one: str, other: str) -> dict[str, bool]:
        """Return what `find_differing` returns, for a transaction that has changed nothing yet."""
        revision = read_revision(tx.db)
        with self._lock:
            if revision != self._revision:
                self._revision, self._kept = revision, {}
            kept = self._kept
        if (one, other) not in kept:
            kept[one, other] = find_differing(tx, one, other)
        return kept[one, other]


def _read_states(tx: Tx, environment: str) -> dict[str, State]:
    state = feature_environments.c
    columns = state.feature, _as_text(state.enabled), _as_text(state.variants)
    rows = _rows(tx, select(*columns).where(state.environment == environment))
    found = {name: [enabled, variants] for name, enabled, variants in rows}
    for name, text in _read_strategies(tx, environment):
        if name in found:
            found[name].append(text)
    return found


def _rows(tx: Tx, query: Select[Any]) -> Iterator[Any]:
    """Yield the rows of a query, of which few are there at once."""
    for piece in tx.db.execute(query).partitions(PIECE):
        yield from piece


def _as_text(column: ColumnElement[Any]) -> ColumnElement[str]:
    """Return a column as text; NULL is empty."""
    return func.coalesce(cast(column, Text), "")


def _read_strategies(tx: Tx, environment: str) -> Iterator[tuple[str, str]]:
    """Yield the flag and the text of each strategy, those of a flag in order."""
    used = {
        strategy: ",".join(map(str, sorted(number for _, number in rows)))
        for strategy, rows in group_rows(tx, segment_uses_query(environment)).items()
    }
    row = strategies.c
    text = reduce(lambda texts, each: texts + MARK + each, (_as_text(row[name]) for name in CANONS))
    query = select(row.feature, row.id, text).where(row.environment == environment).order_by(*ORDER)
    for feature, identity, texts in _rows(tx, query):
        yield feature, used.get(identity, "") + MARK + texts


def _differ(one: State, other: State) -> bool:
    """Return whether two states differ: first by their texts, then by what they stand for."""
    if one == other:
        return False
    (here, variants, *listed), (there, other_variants, *others) = one, other
    if here != there or len(listed) != len(others):
        return True
    return read_list(variants) != read_list(other_variants) or any(map(_strategies_differ, listed, others))


def _strategies_differ(one: str, other: str) -> bool:
    if one == other:
        return False
    last = len(COLUMNS) - 1
    columns = zip(COLUMNS, one.split(MARK, last), other.split(MARK, last), strict=True)
    return any(here != there and canon(here) != canon(there) for canon, here, there in columns)
