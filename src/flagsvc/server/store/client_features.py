"""Reads the features of one environment from the database, in the form for server-side SDKs and proxies.

A read encodes each feature once; a document joins these pieces. Archived features and disabled strategies are left
out. Parameters are text. A strategy names its segments by id; for SDKs without segments it contains their constraints.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
from sqlalchemy import ColumnElement, Row, Select, Text, and_, cast, false, func, select

from flagsvc.server.store.changed_flags import ChangedFlags
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
    """One feature in one environment: the values for filters, and its bytes. `inline` contains the constraints of its segments.

    `made_of` is a hash of all that was stored: the next read takes the entry over if that is the same.
    """

    name: str
    project: str
    tags: frozenset[tuple[str, str]]
    body: bytes
    inline: bytes
    made_of: int


@dataclass(frozen=True)
class EnvironmentFeatures:
    """The features of an environment by name, in order of creation, and the segments in use, at one revision.

    `broken` are the names of features that are left out, because what is stored of them cannot be read.
    """

    revision: int
    entries: dict[str, FeatureEntry]
    segments: bytes
    broken: tuple[str, ...] = ()


@dataclass(frozen=True)
class FeatureParts:
    """The parts of features, by feature name; `uses` by strategy id, `constraints` by segment id.

    `known` has the entries of the read before, if what segments contain is the same.
    """

    strategies: Grouped
    uses: Grouped
    dependencies: Grouped
    tags: Grouped
    constraints: dict[int, list[Any]]
    known: Mapping[str, FeatureEntry]


def read_environment_features(
    tx: Tx, name: str, before: EnvironmentFeatures | None = None, changed: ChangedFlags | None = None
) -> EnvironmentFeatures:
    """Return the features of an environment as the transaction sees them; of an unknown environment, all are switched off.

    `before` is what was read the last time: what has not changed is taken over, and not encoded again. Where `changed` knows which
    flags have changed since, these alone are read.
    """
    revision, used = read_revision(tx.db), read_segments(tx)
    segments_json = encode(used)
    constraints = {each["id"]: each["constraints"] for each in used}
    if before is None or before.segments != segments_json:
        return make_environment(revision, segments_json, read_entries(tx, name, None, constraints, {}))
    names = None if changed is None or before.broken else changed.find(before.revision, revision)
    if names is not None:
        entries = read_entries(tx, name, names, constraints, before.entries)
        if entries.keys() == names and names <= before.entries.keys():
            return make_environment(revision, segments_json, {**before.entries, **entries})
    return make_environment(revision, segments_json, read_entries(tx, name, None, constraints, before.entries))


def make_environment(revision: int, segments_json: bytes, entries: Mapping[str, FeatureEntry | None]) -> EnvironmentFeatures:
    """Return the features of an environment. An entry that is None could not be read."""
    whole = {name: each for name, each in entries.items() if each is not None}
    return EnvironmentFeatures(revision, whole, segments_json, tuple(sorted(entries.keys() - whole.keys())))


def read_entries(
    tx: Tx, environment: str, names: frozenset[str] | None, constraints: dict[int, list[Any]], known: Mapping[str, FeatureEntry]
) -> dict[str, FeatureEntry | None]:
    """Return the entries of some features, or of all for None, in order of creation; None for one that cannot be read."""

    def limited(query: Select[Any], column: ColumnElement[Any]) -> Select[Any]:
        return query if names is None else query.where(column.in_(names))

    tags = select(feature_tags.c.feature, feature_tags.c.type, feature_tags.c.value)
    parts = FeatureParts(
        strategies=group_rows(tx, limited(strategies_query(environment), strategies.c.feature)),
        uses=group_rows(tx, limited(segment_uses_query(environment), strategies.c.feature)),
        dependencies=group_rows(tx, limited(dependencies_query(), dependencies.c.child)),
        tags=group_rows(tx, limited(tags, feature_tags.c.feature)),
        constraints=constraints,
        known=known,
    )
    rows = tx.db.execute(limited(features_query(environment), features.c.name)).all()
    return {row.name: build_entry_or_none(row, parts) for row in rows}


def as_json_text(column: ColumnElement[Any]) -> ColumnElement[str]:
    """Return a JSON column as text: decoding it here is several times faster than in the driver."""
    return cast(column, Text)


def group_rows(tx: Tx, rows: Select[Any]) -> Grouped:
    """Return rows grouped by their first column."""
    found: Grouped = defaultdict(list)
    for row in tx.db.execute(rows).all():
        found[row[0]].append(row)
    return found


def features_query(name: str) -> Select[Any]:
    state = feature_environments
    joined = features.outerjoin(state, and_(state.c.feature == features.c.name, state.c.environment == name))
    columns = features.c[("name", "type", "project", "stale", "description", "impression_data")]
    return (
        select(
            *columns,
            func.coalesce(state.c.enabled, false()).label("enabled"),
            as_json_text(state.c.variants).label("variants"),
        )
        .select_from(joined)
        .where(features.c.archived_at.is_(None))
        .order_by(features.c.position)
    )


def strategies_query(name: str) -> Select[Any]:
    """Return the query for the enabled strategies of an environment, in their order."""
    columns = [as_json_text(strategies.c[each]).label(each) for each in ("constraints", "parameters", "variants")]
    return (
        select(strategies.c.feature, strategies.c.id, strategies.c.name, *columns)
        .where(strategies.c.environment == name, strategies.c.disabled.is_(False))
        .order_by(strategies.c.sort_order, strategies.c.position)
    )


def segment_uses_query(name: str) -> Select[Any]:
    """Return the query for the segments that the strategies of an environment use, in their order."""
    joined = strategy_segments.join(strategies, strategies.c.id == strategy_segments.c.strategy_id)
    return (
        select(*strategy_segments.c[("strategy_id", "segment_id")])
        .select_from(joined)
        .where(strategies.c.environment == name)
        .order_by(strategy_segments.c.position, strategy_segments.c.segment_id)
    )


def dependencies_query() -> Select[Any]:
    columns = dependencies.c[("child", "parent", "enabled")]
    return select(*columns, as_json_text(dependencies.c.variants).label("variants"))


def read_segments(tx: Tx) -> list[dict[str, Any]]:
    """Return the segments that strategies of any environment use. A segment that cannot be read is left out."""
    used = select(strategy_segments.c.segment_id).distinct()
    rows = select(segments.c.id, segments.c.name, as_json_text(segments.c.constraints)).where(segments.c.id.in_(used))
    found = tx.db.execute(rows.order_by(segments.c.name))
    read = [{"id": number, "name": name, "constraints": read_list_or_none(text)} for number, name, text in found]
    return [each for each in read if each["constraints"] is not None]


def read_list(text: str) -> list[Any]:
    """Return a stored list. Raises ValueError or TypeError for anything else."""
    value = read_json(text)
    if not isinstance(value, list):
        raise TypeError("expected a list")
    return value


def read_list_or_none(text: str) -> list[Any] | None:
    """Return a stored list; None for anything else."""
    try:
        return read_list(text)
    except (ValueError, TypeError):
        return None


def build_entry_or_none(row: Row[Any], parts: FeatureParts) -> FeatureEntry | None:
    """Return an encoded feature; None if what is stored of it, or of its segments, was edited by hand and cannot be read."""
    try:
        return build_entry(row, parts)
    except Exception:
        return None


def build_entry(row: Row[Any], parts: FeatureParts) -> FeatureEntry:
    """Return an encoded feature, the one of the read before if nothing of it has changed."""
    found = parts.strategies.get(row.name, ())
    uses = [parts.uses.get(each.id, ()) for each in found]
    others = parts.dependencies.get(row.name, ()), parts.tags.get(row.name, ())
    made_of = hash((row, *found, *map(tuple, uses), *map(tuple, others)))
    known = parts.known.get(row.name)
    if known is not None and known.made_of == made_of:
        return known
    named = [build_strategy(each, parts) for each in found]
    body = encode(build_feature(row, parts, named))
    inline = body
    if any("segments" in each for each in named):
        inline = encode(build_feature(row, parts, [inline_segments(each, parts) for each in named]))
    tags = frozenset((kind, value) for _, kind, value in parts.tags.get(row.name, ()))
    return FeatureEntry(row.name, row.project, tags, body, inline, made_of)


def build_feature(row: Row[Any], parts: FeatureParts, strategies_json: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a feature as the API answers it."""
    feature = {
        "name": row.name,
        "type": row.type,
        "enabled": bool(row.enabled),
        "project": row.project,
        "stale": row.stale,
        "strategies": strategies_json,
        "variants": read_list(row.variants) if row.variants else [],
        "description": row.description,
        "impressionData": row.impression_data,
    }
    parents = parts.dependencies.get(row.name)
    return feature | {"dependencies": [build_dependency(each) for each in parents]} if parents else feature


def build_dependency(row: Row[Any]) -> dict[str, Any]:
    """Return a dependency; it has variants only where the parent must be enabled."""
    dependency = {"feature": row.parent, "enabled": row.enabled}
    return dependency | {"variants": read_list(row.variants)} if row.enabled else dependency


def build_strategy(row: Row[Any], parts: FeatureParts) -> dict[str, Any]:
    """Return a strategy as the API answers it, without id and title."""
    strategy = {
        "name": row.name,
        "constraints": read_list(row.constraints),
        "parameters": parameters_as_text(read_json(row.parameters)),
        "variants": read_list(row.variants),
    }
    used = [number for _, number in parts.uses.get(row.id, ())]
    return strategy | {"segments": used} if used else strategy


def parameters_as_text(parameters: dict[str, Any]) -> dict[str, str]:
    """Return the parameters of a strategy with every value as text; null becomes empty."""
    return {name: each if isinstance(each, str) else format_parameter(each) for name, each in parameters.items()}


def format_parameter(value: Any) -> str:
    """Return a JSON value as the text of a parameter."""
    return "" if value is None else encode(value).decode()


def inline_segments(strategy: dict[str, Any], parts: FeatureParts) -> dict[str, Any]:
    """Return a strategy that contains the constraints of its segments."""
    inlined = [each for number in strategy.get("segments", ()) for each in parts.constraints[number]]
    rest = {name: value for name, value in strategy.items() if name != "segments"}
    return rest | {"constraints": [*strategy["constraints"], *inlined]}
