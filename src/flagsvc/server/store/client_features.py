"""What the features of one environment are to a server-side SDK or a proxy, read from the database and encoded once each.

Every feature is encoded when it is read; a document is these pieces joined. Archived features and disabled strategies are left out,
parameters are text, and a strategy names its segments by id, or holds their constraints itself for the SDKs that know none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
from sqlalchemy import ColumnElement, Row, Select, Text, and_, cast, false, func, select

from flagsvc.server.store.schema import (
    dependencies,
    feature_environments,
    feature_tags,
    features,
    segments,
    strategies,
    strategy_segments,
)
from flagsvc.server.store.store import Tx, read_revision

Grouped: TypeAlias = dict[Any, list[Any]]

read_json = msgspec.json.decode
encode = msgspec.json.encode


@dataclass(frozen=True, slots=True)
class FeatureEntry:
    """One feature in one environment: what filters look at, and its bytes; `inline` has its segments' constraints in itself."""

    name: str
    project: str
    tags: frozenset[tuple[str, str]]
    body: bytes
    inline: bytes


@dataclass(frozen=True)
class Environment:
    """The features of an environment by name, in the order of their creation, and the segments in use; as of a revision."""

    revision: int
    entries: dict[str, FeatureEntry]
    segments: bytes


@dataclass(frozen=True)
class FeatureParts:
    """What features are put together from, by feature name; `uses` by strategy id, `constraints` by segment id."""

    strategies: Grouped
    uses: Grouped
    dependencies: Grouped
    tags: Grouped
    constraints: dict[int, list[Any]]


def read_environment(tx: Tx, name: str) -> Environment:
    """Return an environment as one transaction sees it; of a name that is none, every feature switched off."""
    used = read_segments(tx)
    parts = FeatureParts(
        strategies=grouped(tx, strategies_of(name)),
        uses=grouped(tx, uses_in(name)),
        dependencies=grouped(tx, parents()),
        tags=grouped(tx, select(feature_tags.c.feature, feature_tags.c.type, feature_tags.c.value)),
        constraints={each["id"]: each["constraints"] for each in used},
    )
    entries = [entry(row, parts) for row in tx.db.execute(features_in(name)).all()]
    return Environment(read_revision(tx.db), {each.name: each for each in entries}, encode(used))


def raw(column: ColumnElement[Any]) -> ColumnElement[str]:
    """Return a column of JSON as its text: reading it here is several times faster than by the driver."""
    return cast(column, Text)


def grouped(tx: Tx, rows: Select[Any]) -> Grouped:
    """Return rows by their first column."""
    found: Grouped = defaultdict(list)
    for row in tx.db.execute(rows).all():
        found[row[0]].append(row)
    return found


def features_in(name: str) -> Select[Any]:
    """Return the query for the features of an environment."""
    state = feature_environments
    joined = features.outerjoin(state, and_(state.c.feature == features.c.name, state.c.environment == name))
    columns = features.c[("name", "type", "project", "stale", "description", "impression_data")]
    return (
        select(
            *columns, func.coalesce(state.c.enabled, false()).label("enabled"), raw(state.c.variants).label("variants")
        )
        .select_from(joined)
        .where(features.c.archived_at.is_(None))
        .order_by(features.c.position)
    )


def strategies_of(name: str) -> Select[Any]:
    """Return the query for the strategies of an environment that take part, each feature's in their order."""
    held = [raw(strategies.c[each]).label(each) for each in ("constraints", "parameters", "variants")]
    return (
        select(strategies.c.feature, strategies.c.id, strategies.c.name, *held)
        .where(strategies.c.environment == name, strategies.c.disabled.is_(False))
        .order_by(strategies.c.sort_order, strategies.c.position)
    )


def uses_in(name: str) -> Select[Any]:
    """Return the query for the segments that the strategies of an environment use, in their order."""
    joined = strategy_segments.join(strategies, strategies.c.id == strategy_segments.c.strategy_id)
    return (
        select(*strategy_segments.c[("strategy_id", "segment_id")])
        .select_from(joined)
        .where(strategies.c.environment == name)
        .order_by(strategy_segments.c.position, strategy_segments.c.segment_id)
    )


def parents() -> Select[Any]:
    """Return the query for what features depend on."""
    columns = dependencies.c[("child", "parent", "enabled")]
    return select(*columns, raw(dependencies.c.variants).label("variants"))


def read_segments(tx: Tx) -> list[dict[str, Any]]:
    """Return the segments that any strategy uses, in whatever environment."""
    used = select(strategy_segments.c.segment_id).distinct()
    rows = select(segments.c.id, segments.c.name, raw(segments.c.constraints)).where(segments.c.id.in_(used))
    found = tx.db.execute(rows.order_by(segments.c.name))
    return [{"id": number, "name": name, "constraints": read_json(text)} for number, name, text in found]


def entry(row: Row[Any], parts: FeatureParts) -> FeatureEntry:
    """Return a feature, encoded."""
    found = parts.strategies.get(row.name, ())
    named = [strategy(each, parts) for each in found]
    body = encode(feature(row, parts, named))
    inline = body
    if any("segments" in each for each in named):
        inline = encode(feature(row, parts, [with_constraints(each, parts) for each in named]))
    tags = frozenset((kind, value) for _, kind, value in parts.tags.get(row.name, ()))
    return FeatureEntry(row.name, row.project, tags, body, inline)


def feature(row: Row[Any], parts: FeatureParts, held: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a feature as the wire shows it."""
    shown = {
        "name": row.name,
        "type": row.type,
        "enabled": bool(row.enabled),
        "project": row.project,
        "stale": row.stale,
        "strategies": held,
        "variants": read_json(row.variants) if row.variants else [],
        "description": row.description,
        "impressionData": row.impression_data,
    }
    parents = parts.dependencies.get(row.name)
    return shown | {"dependencies": [dependency(each) for each in parents]} if parents else shown


def dependency(row: Row[Any]) -> dict[str, Any]:
    """Return what a feature depends on; variants count only where the parent must be enabled."""
    shown = {"feature": row.parent, "enabled": row.enabled}
    return shown | {"variants": read_json(row.variants)} if row.enabled else shown


def strategy(row: Row[Any], parts: FeatureParts) -> dict[str, Any]:
    """Return a strategy as the wire shows it: no id, no title."""
    shown = {
        "name": row.name,
        "constraints": read_json(row.constraints),
        "parameters": texts(read_json(row.parameters)),
        "variants": read_json(row.variants),
    }
    used = [number for _, number in parts.uses.get(row.id, ())]
    return shown | {"segments": used} if used else shown


def texts(parameters: dict[str, Any]) -> dict[str, str]:
    """Return the parameters of a strategy with every value as text; null is no text at all."""
    return {name: each if isinstance(each, str) else as_text(each) for name, each in parameters.items()}


def as_text(value: Any) -> str:
    """Return a JSON value as a parameter's text."""
    return "" if value is None else encode(value).decode()


def with_constraints(shown: dict[str, Any], parts: FeatureParts) -> dict[str, Any]:
    """Return a strategy that holds the constraints of its segments itself."""
    held = [each for number in shown.get("segments", ()) for each in parts.constraints[number]]
    rest = {name: value for name, value in shown.items() if name != "segments"}
    return rest | {"constraints": [*shown["constraints"], *held]}


def joined(pieces: Iterable[bytes]) -> bytes:
    """Return encoded values as the inside of a JSON list."""
    return b",".join(pieces)
