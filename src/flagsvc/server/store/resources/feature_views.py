"""Features as the admin API answers them, in full and in lists (the real server's features and search); and as sentences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, exists, func, select

from flagsvc.engine.model import SegmentSpec
from flagsvc.reasons.chips import describe_strategy
from flagsvc.reasons.words import read_segments
from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import not_found
from flagsvc.server.store.members import shown
from flagsvc.server.store.resources import strategies
from flagsvc.server.store.resources.dependencies import children_of, parents_of
from flagsvc.server.store.resources.features import require
from flagsvc.server.store.resources.users import list_collaborators, names_of, person_to_json
from flagsvc.server.store.schema import (
    environments,
    feature_environments,
    feature_tags,
    features,
    links,
    segments,
    usage,
)
from flagsvc.server.store.schema import strategies as strategy_rows
from flagsvc.server.store.store import Tx, read_tags
from flagsvc.server.store.timestamps import HOUR, format_time
from flagsvc.server.store.upsert import rows_in

STATE_COLUMNS = (
    *feature_environments.c[("feature", "environment", "enabled", "variants", "last_seen_at")],
    environments.c.type,
    environments.c.sort_order,
)


IS_ON = exists().where(
    feature_environments.c.feature == strategy_rows.c.feature,
    feature_environments.c.environment == strategy_rows.c.environment,
    feature_environments.c.enabled,
)
"""Whether the feature of a strategy is on in the environment of the strategy."""


def get(tx: Tx, project: str, name: str, *, with_variants: bool) -> Json:
    """Return an active feature with its environments, strategies and relatives. Raises CallerError (404)."""
    row = require(tx, project, name)
    if row.archived_at is not None:
        raise not_found(f"Could not find feature flag with name {name}")
    states = states_of(tx, [name])[name]
    creator = created_by(row, names_of(tx, [row.created_by_id] if row.created_by_id is not None else []))
    return (
        {
            "environments": _environments(tx, name, states, with_variants=with_variants),
            **shown(row, "name", "impressionData", "description", "project", "stale", "createdAt"),
        }
        | creator
        | {
            "type": row.type,
            "lastSeenAt": format_time(last_seen(states)),
            "variants": next((state.variants for state in reversed(states) if state.variants), []),
            "archived": False,
            "dependencies": parents_of(tx, name),
            "children": children_of(tx, [name]),
            "links": _links(tx, name, with_feature=not with_variants),
            "collaborators": {"users": list_collaborators(tx, name)},
        }
    )


def created_by(row: Row[Any], known: dict[int, str]) -> Json:
    """Return the member `createdBy`; nothing if the creator is unknown."""
    if row.created_by_id is None:
        return {}
    return {"createdBy": person_to_json(row.created_by_id, known.get(row.created_by_id, row.created_by))}


def states_of(tx: Tx, names: Iterable[str]) -> dict[str, list[Row[Any]]]:
    """Return the states of features, by feature, in the order of the environments."""
    found: dict[str, list[Row[Any]]] = defaultdict(list)
    joined = feature_environments.join(environments, environments.c.name == feature_environments.c.environment)
    order = environments.c.sort_order, environments.c.name
    query = select(*STATE_COLUMNS).select_from(joined).order_by(*order)
    for row in rows_in(tx, query, feature_environments.c.feature, names):
        found[row.feature].append(row)
    return found


def last_seen(states: Sequence[Row[Any]]) -> datetime | None:
    """Return when a feature was last evaluated in any environment."""
    return max((state.last_seen_at for state in states if state.last_seen_at is not None), default=None)


def _environments(tx: Tx, name: str, states: Sequence[Row[Any]], *, with_variants: bool) -> list[Json]:
    by_environment = strategies.rows_by_environment(tx, name)
    used = strategies.segments_of(tx, (row.id for rows in by_environment.values() for row in rows))
    counts = counts_of(tx, [name])
    return [
        {"name": state.environment, "lastSeenAt": format_time(state.last_seen_at)}
        | ({"variants": state.variants or []} if with_variants else {})
        | {"enabled": state.enabled, **counts[name, state.environment]}
        | {"type": state.type, "sortOrder": state.sort_order}
        | {"strategies": [strategies.to_json(row, used.get(row.id, ())) for row in by_environment[state.environment]]}
        for state in states
    ]


def counts_of(tx: Tx, names: Iterable[str]) -> dict[tuple[str, str], Json]:
    """Return how often features were on and off in the last hour, by feature and environment."""
    found: dict[tuple[str, str], Json] = defaultdict(lambda: {"yes": 0, "no": 0})
    sums = func.sum(usage.c.yes), func.sum(usage.c.no)
    query = select(usage.c.feature, usage.c.environment, *sums).where(usage.c.hour >= tx.now - HOUR)
    query = query.group_by(usage.c.feature, usage.c.environment)
    for feature, place, yes, no in rows_in(tx, query, usage.c.feature, names):
        found[feature, place] = {"yes": int(yes), "no": int(no)}
    return found


def _links(tx: Tx, name: str, *, with_feature: bool) -> list[Json]:
    columns = ("id", "url", "title", "feature") if with_feature else ("id", "url", "title")
    query = select(*links.c[columns]).where(links.c.feature == name).order_by(links.c.position)
    return [dict(row._mapping) for row in tx.db.execute(query)]


def list_in_project(
    tx: Tx, project: str, *, tags: Sequence[tuple[str, str]] | None = None, prefix: str | None = None
) -> list[Json]:
    """Return the active features of a project that have one of the `tags`, and whose names begin with `prefix`, if given."""
    here = features.c.project == project, features.c.archived_at.is_(None)
    query = select(features).where(*here).order_by(features.c.position)
    if prefix and prefix.strip():
        query = query.where(features.c.name.istartswith(prefix.removesuffix("%"), autoescape=True))
    rows = tx.db.execute(query).all()
    if tags is not None:
        tagged = _features_with_tags(tx, tags)
        rows = [row for row in rows if row.name in tagged]
    return list_overviews(tx, rows)


def _features_with_tags(tx: Tx, tags: Sequence[tuple[str, str]]) -> set[str]:
    found: set[str] = set()
    for kind, value in dict.fromkeys(tags):
        same = feature_tags.c.type == kind, feature_tags.c.value == value
        found.update(tx.db.execute(select(feature_tags.c.feature).where(*same)).scalars())
    return found


def list_overviews(tx: Tx, rows: Sequence[Row[Any]]) -> list[Json]:
    names = [row.name for row in rows]
    states, tags, active = states_of(tx, names), read_tags(tx.db, names), _has_active_strategies(tx, names)
    return [
        {
            "type": row.type,
            "description": row.description,
            "favorite": False,
            "name": row.name,
            "createdAt": format_time(row.created_at),
            "stale": row.stale,
            "impressionData": row.impression_data,
            "lastSeenAt": format_time(last_seen(states.get(row.name, []))),
            "environments": [state_to_json(state, active) for state in states.get(row.name, [])],
        }
        | ({"tags": tags[row.name]} if row.name in tags else {})
        for row in rows
    ]


def state_to_json(state: Row[Any], active: dict[tuple[str, str], bool]) -> Json:
    """Return the state of a feature in an environment, as lists contain it: a row of STATE_COLUMNS.

    `active` comes from `_has_active_strategies`. A page of a list calls this for a thousand rows.
    """
    feature, environment, enabled, variants, seen, kind, sort_order = tuple(state)
    found = active.get((feature, environment))
    return {
        "name": environment,
        "enabled": enabled,
        "type": kind,
        "sortOrder": sort_order,
        "variantCount": len(variants or []),
        "lastSeenAt": format_time(seen),
        "hasStrategies": found is not None,
        "hasEnabledStrategies": found is True,
    }


def _has_active_strategies(tx: Tx, names: Iterable[str]) -> dict[tuple[str, str], bool]:
    """Return whether a strategy is active, by feature and environment; without strategies there is no entry."""
    found: dict[tuple[str, str], bool] = {}
    query = select(*strategy_rows.c[("feature", "environment", "disabled")])
    for feature, place, disabled in rows_in(tx, query, strategy_rows.c.feature, names):
        found[feature, place] = found.get((feature, place), False) or not disabled
    return found


def sentences_of(tx: Tx, names: Sequence[str], on_in: Sequence[str] | None = None) -> dict[tuple[str, str], list[Json]]:
    """Return the strategies of features, each with its `words` and its `chips`, in order, by feature and environment.

    With `on_in`, these are only the environments among these in which a feature is on: 1,000 sentences take 30 ms.
    """
    found: dict[tuple[str, str], list[Json]] = defaultdict(list)
    known = read_segment_specs(tx)
    conditions = [] if on_in is None else [strategy_rows.c.environment.in_(on_in), IS_ON]
    for row, strategy in strategies.wholes_of(tx, names, *conditions):
        feature = row.feature
        del strategy["position"]
        strategy["words"], strategy["chips"] = describe_strategy(strategy, known, feature)
        found[feature, row.environment].append(strategy)
    return found


def read_segment_specs(tx: Tx) -> dict[str, SegmentSpec]:
    """Return the segments by identity, without those that the engine cannot read."""
    rows = tx.db.execute(select(*segments.c[("id", "name", "constraints")]))
    return read_segments(dict(row._mapping) for row in rows)
