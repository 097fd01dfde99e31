"""Features with everything that belongs to them, as events hold them (decision 0054)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Row, select

from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources.features import metadata
from flagsvc.server.store.resources.links import links_of
from flagsvc.server.store.resources.strategies import ORDER, segments_of, whole_strategy
from flagsvc.server.store.schema import feature_environments, feature_tags, strategies
from flagsvc.server.store.store import Tx
from flagsvc.server.store.upsert import chunks


def read_whole(tx: Tx, rows: Sequence[Row[Any]]) -> dict[str, Json]:
    """Return features with their states, strategies, tags and links, by name. Environments are keys."""
    names = [row.name for row in rows]
    states, rules, tags = _states(tx, names), _strategies(tx, names), _tags(tx, names)
    links = links_of(tx, names)
    return {
        row.name: metadata(row)
        | {"createdBy": row.created_by, "createdById": row.created_by_id, "position": row.position}
        | {"environments": states.get(row.name, {}), "strategies": rules.get(row.name, {})}
        | {"tags": tags.get(row.name, []), "links": links.get(row.name, [])}
        for row in rows
    }


def _states(tx: Tx, names: Iterable[str]) -> dict[str, Json]:
    found: dict[str, Json] = defaultdict(dict)
    for chunk in chunks(names):
        query = select(feature_environments).where(feature_environments.c.feature.in_(chunk))
        for row in tx.db.execute(query.order_by(feature_environments.c.environment)):
            found[row.feature][row.environment] = {"enabled": row.enabled, "variants": row.variants or []}
    return found


def _strategies(tx: Tx, names: Iterable[str]) -> dict[str, dict[str, list[Json]]]:
    found: dict[str, dict[str, list[Json]]] = defaultdict(lambda: defaultdict(list))
    for chunk in chunks(names):
        rows = tx.db.execute(select(strategies).where(strategies.c.feature.in_(chunk)).order_by(*ORDER)).all()
        used = segments_of(tx, (row.id for row in rows))
        for row in rows:
            found[row.feature][row.environment].append(whole_strategy(row, used.get(row.id, ())))
    return found


def _tags(tx: Tx, names: Iterable[str]) -> dict[str, list[Json]]:
    found: dict[str, list[Json]] = defaultdict(list)
    tag = feature_tags.c
    for chunk in chunks(names):
        query = select(tag.feature, tag.type, tag.value).where(tag.feature.in_(chunk)).order_by(tag.type, tag.value)
        for row in tx.db.execute(query):
            found[row.feature].append({"type": row.type, "value": row.value})
    return found
