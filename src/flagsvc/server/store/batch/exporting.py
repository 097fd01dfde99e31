"""Batch export: features with everything that belongs to them, as a data set for an import (import validation 7), or to compare."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

from sqlalchemy import Row, Select, Table, select

from flagsvc.server.shapes.features import DESCRIPTION
from flagsvc.server.store.batch.dataset import Json
from flagsvc.server.store.resources.context_fields import to_json as field_to_json
from flagsvc.server.store.resources.dependencies import parents_of_all
from flagsvc.server.store.resources.features import METADATA, metadata
from flagsvc.server.store.resources.links import links_of
from flagsvc.server.store.resources.strategies import segments_of, to_json
from flagsvc.server.store.resources.tag_types import to_json as tag_type_to_json
from flagsvc.server.store.schema import (
    context_fields,
    feature_environments,
    feature_tags,
    features,
    segments,
    strategies,
    tag_types,
)
from flagsvc.server.store.store import Tx
from flagsvc.server.store.upsert import rows_in

SORTED_BY = ("sort_order", "position", "environment", "value")
"""The columns by which rows of a feature are sorted, as far as a table has them: strategies by their order, others by place."""
FEATURE: Final = tuple(name for name in METADATA if not name.endswith("At"))
STRATEGY: Final = (*("name", "id", "featureName", "title", "parameters", "constraints", "variants", "disabled", "segments"),)
FIELD: Final = ("name", "description", "stickiness", "sortOrder", "legalValues", "project")
"""The members of a flag, a strategy and a context field that an export has, in its order."""
MAX_NAMES_IN_EVENT = 1000
"""The most names of features in the event of an export (decision 0028)."""


def export(tx: Tx, query: Mapping[str, Any]) -> Json:
    """Return the features that a query selects, in the shape of exportResultSchema.

    `query` has the shape of exportQuerySchema. The first of `tag`, `features` and `project` that is set selects; an empty
    `environment` stands for all.
    """
    names = _select_names(tx, query)
    environment = query["environment"]
    used = _rows_of(tx, strategies, strategies.c.feature, names, environment)
    states = _rows_of(tx, feature_environments, feature_environments.c.feature, names, environment)
    ids = segments_of(tx, [row.id for row in used])
    tags = _rows_of(tx, feature_tags, feature_tags.c.feature, names)
    links = links_of(tx, names)
    return {
        "features": [_pick(metadata(row), FEATURE) for row in _rows_of(tx, features, features.c.name, names)],
        "featureStrategies": [_pick(to_json(row, ids.get(row.id, ())) | {"featureName": row.feature}, STRATEGY) for row in used],
        "featureEnvironments": [_feature_environment(row) for row in states],
        "contextFields": [
            _pick(field_to_json(row), FIELD) for row in _rows_by_name(tx, context_fields, _context_field_names(used, states))
        ],
        "featureTags": [{"featureName": row.feature, "tagType": row.type, "tagValue": row.value} for row in tags],
        "segments": _segments(tx, {each for chunk in ids.values() for each in chunk}),
        "tagTypes": [tag_type_to_json(row) for row in _rows_by_name(tx, tag_types, {row.type for row in tags})],
        "dependencies": _dependencies(tx, names),
        "links": [{"feature": name, "links": links[name]} for name in sorted(links)],
    }


def record_export(tx: Tx, result: Json) -> None:
    """Record the event of an export, with the first names of features. It changes no flag: `tx` comes from `Store.recording`."""
    names = [each["name"] for each in result["features"][:MAX_NAMES_IN_EVENT]]
    tx.record_event("features-exported", data={"features": names})


def _select_names(tx: Tx, query: Mapping[str, Any]) -> list[str]:
    """Return the names of the features that a query selects. By name and by tag it also selects archived ones."""
    if isinstance(query.get("tag"), str):
        tagged = select(feature_tags.c.feature).where(feature_tags.c.value == query["tag"])
        return list(dict.fromkeys(tx.db.execute(tagged).scalars()))
    if query.get("features"):
        return list(dict.fromkeys(query["features"]))
    active = select(features.c.name).where(features.c.archived_at.is_(None))
    if isinstance(query.get("project"), str):
        active = active.where(features.c.project == query["project"])
    return list(tx.db.execute(active).scalars())


def _rows_of(tx: Tx, table: Table, column: Any, names: Iterable[str], environment: str = "") -> list[Row[Any]]:
    """Return the rows of features, in the order of SORTED_BY; of one environment, or of all where it is empty."""
    query: Select[Any] = select(table)
    if environment:
        query = query.where(table.c.environment == environment)
    return sorted(rows_in(tx, query, column, names), key=attrgetter(column.name, *[name for name in SORTED_BY if name in table.c]))


def _rows_by_name(tx: Tx, table: Table, names: Iterable[str]) -> list[Row[Any]]:
    return sorted(rows_in(tx, select(table), table.c.name, names), key=lambda row: str(row.name))


def _pick(whole: Json, members: Iterable[str]) -> Json:
    return {name: whole[name] for name in members if name in whole}


def _feature_environment(row: Row[Any]) -> Json:
    place = {"featureName": row.feature, "environment": row.environment}
    return {"enabled": row.enabled, **place, "variants": row.variants or [], "name": row.feature}


def _context_field_names(used: Sequence[Row[Any]], states: Sequence[Row[Any]]) -> set[str]:
    """Return the context fields that strategies and variants of environments use, without those of strategy variants."""
    variants = [each for row in states for each in row.variants or []]
    sticky = (each.get("stickiness") for each in (*(row.parameters for row in used), *variants))
    lists = (*(row.constraints for row in used), *(each.get("overrides") or [] for each in variants))
    return {name for name in (*sticky, *(each["contextName"] for listed in lists for each in listed)) if name}


def _segments(tx: Tx, ids: Iterable[int]) -> list[Json]:
    rows = rows_in(tx, select(segments.c.id, segments.c.name), segments.c.id, ids)
    return [{"id": row.id, "name": row.name} for row in sorted(rows, key=lambda row: str(row.name))]


def _dependencies(tx: Tx, names: Iterable[str]) -> list[Json]:
    found = parents_of_all(tx, sorted(names))
    return [{"feature": name, "dependencies": parents} for name, parents in found.items() if parents]


CONSTRAINT: Final[Json] = {"inverted": False, "caseInsensitive": False, "values": []}
"""What a constraint has where it says nothing."""


def read_flag_states(tx: Tx, names: Iterable[str], environment: str) -> dict[str, Json]:
    """Return the states of flags in an environment, by name; archived flags too. A flag that does not exist has none."""
    wanted = list(dict.fromkeys(names))
    return states_of(export(tx, {"environment": environment, "features": wanted})) if wanted else {}


def states_of(data: Mapping[str, Any]) -> dict[str, Json]:
    """Return the states of the flags of an export. `enabled` is None where a flag is not in the environment."""
    strategies = _by_flag(data["featureStrategies"])
    places = {each["featureName"]: each for each in data["featureEnvironments"]}
    tags = _by_flag(data["featureTags"])
    parents = {each["feature"]: each["dependencies"] for each in data["dependencies"]}
    links = {each["feature"]: each["links"] for each in data["links"]}
    found: dict[str, Json] = {}
    for each in data["features"]:
        name = each["name"]
        place = places.get(name)
        found[name] = state_of(
            None if place is None else place["enabled"], strategies[name], () if place is None else place["variants"]
        ) | {
            **{part: each[part] for part in (*DESCRIPTION, "archived")},
            "description": each["description"] or "",
            "tags": [f"{tag['tagType']}:{tag['tagValue']}" for tag in tags[name]],
            "links": [{"url": link["url"], "title": link["title"] or ""} for link in links.get(name, ())],
            "parents": parents.get(name, []),
        }
    return found


def _by_flag(rows: Iterable[Json]) -> dict[str, list[Json]]:
    found: dict[str, list[Json]] = defaultdict(list)
    for each in rows:
        found[each["featureName"]].append(each)
    return found


def state_of(enabled: bool | None, strategies: Iterable[Mapping[str, Any]], variants: Iterable[Json] | None) -> Json:
    """Return the part of a state that belongs to the environment. `strategies` are in order."""
    return {
        "enabled": enabled,
        "strategies": [compared_strategy(each) for each in strategies],
        "variants": list(variants or ()),
    }


def compared_strategy(strategy: Mapping[str, Any]) -> Json:
    """Return a strategy without its id and its place."""
    return {
        "name": strategy["name"],
        "title": strategy["title"] or "",
        "disabled": bool(strategy["disabled"]),
        "parameters": dict(strategy["parameters"] or {}),
        "constraints": [compared_constraint(each) for each in strategy["constraints"] or ()],
        "segments": sorted(strategy["segments"]),
        "variants": list(strategy["variants"] or ()),
    }


def compared_constraint(constraint: Mapping[str, Any]) -> Json:
    """Return a constraint with what it leaves out."""
    return CONSTRAINT | {name: value for name, value in constraint.items() if value is not None}
