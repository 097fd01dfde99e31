"""Strategies as events hold them: many are removed and put back together (decision 0054)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import bindparam, delete, update

from flagsvc.server.store.checks import Json
from flagsvc.server.store.constraints import limit_exceeded
from flagsvc.server.store.resources.features import find_all, no_feature
from flagsvc.server.store.resources.strategies import (
    MAX_STRATEGIES,
    StrategyPlace,
    check_type,
    checked_segments,
    insert_rows,
    read_all_whole,
    rows_by_feature,
    set_segments,
)
from flagsvc.server.store.schema import strategies
from flagsvc.server.store.store import Tx
from flagsvc.server.store.upsert import chunks


class Placed(NamedTuple):
    """A strategy as events hold it, and its place."""

    place: StrategyPlace
    whole: Mapping[str, Any]


def remove_all(tx: Tx, gone: Sequence[Placed]) -> None:
    """Delete strategies that are as they are given. Features stay on, also without an active strategy."""
    for chunk in chunks(each.whole["id"] for each in gone):
        tx.db.execute(delete(strategies).where(strategies.c.id.in_(chunk)))
    for place, whole in gone:
        place.record_event(tx, "feature-strategy-remove", before=whole)


def put_back(tx: Tx, wanted: Sequence[Placed]) -> None:
    """Make strategies what events hold: each is changed, or added with its id and place. Raises CallerError (400, 404)."""
    owners = {row.name: row.project for row in find_all(tx, [each.place.feature for each in wanted])}
    for place, _ in wanted:
        if owners.get(place.feature) != place.project:
            raise no_feature(place.feature, place.project, owners.get(place.feature))
    for name in dict.fromkeys(each.whole["name"] for each in wanted):
        check_type(tx, name)
    ids = [each.whole["id"] for each in wanted]
    before = read_all_whole(tx, ids)
    new = [each for each in wanted if each.whole["id"] not in before]
    _check_counts(tx, new)
    insert_all(tx, new)
    _update(tx, [each for each in wanted if each.whole["id"] in before])
    after = read_all_whole(tx, ids)
    for place, whole in wanted:
        there = before.get(whole["id"])
        kind = "feature-strategy-add" if there is None else "feature-strategy-update"
        place.record_event(tx, kind, before=there, data=after[whole["id"]])


def _check_counts(tx: Tx, new: Sequence[Placed]) -> None:
    """Raise CallerError (400) where a feature would have too many strategies."""
    counts = Counter(each.place for each in new)
    for environment in dict.fromkeys(place.environment for place in counts):
        here = [place for place in counts if place.environment == environment]
        held = rows_by_feature(tx, environment, [place.feature for place in here])
        if any(len(held[place.feature]) + counts[place] > MAX_STRATEGIES for place in here):
            raise limit_exceeded("strategy", MAX_STRATEGIES)


def insert_all(tx: Tx, wanted: Sequence[Placed]) -> None:
    """Insert strategies as events hold them, without events. Raises CallerError (400, 404) for their segments."""
    used = _checked_segments(tx, wanted)
    rows = [
        _columns(whole)
        | {"id": whole["id"], "created_at": tx.now}
        | {"feature": place.feature, "environment": place.environment}
        for place, whole in wanted
    ]
    insert_rows(tx, rows, used.values())


def _update(tx: Tx, wanted: Sequence[Placed]) -> None:
    """Change strategies to what events hold. Raises CallerError (400, 404) for their segments."""
    used = _checked_segments(tx, wanted)
    rows = [_columns(whole) | {"which": whole["id"]} for _, whole in wanted]
    if rows:
        names: dict[str, Any] = {name: bindparam(name) for name in rows[0] if name != "which"}
        tx.db.execute(update(strategies).where(strategies.c.id == bindparam("which")).values(names), rows)
    set_segments(tx, used)


def _checked_segments(tx: Tx, wanted: Iterable[Placed]) -> dict[str, list[int]]:
    """Return the segments of strategies by their ids; those that several use are read once. Raises CallerError (400, 404)."""
    known: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    found: dict[str, list[int]] = {}
    for place, whole in wanted:
        given = place.project, tuple(whole["segments"])
        if given not in known:
            known[given] = checked_segments(tx, *given)
        found[whole["id"]] = known[given]
    return found


def _columns(whole: Mapping[str, Any]) -> Json:
    names = ("name", "title", "disabled", "constraints", "parameters", "variants", "position")
    return {name: whole[name] for name in names} | {"sort_order": whole["sortOrder"]}
