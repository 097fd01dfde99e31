"""Features with everything that belongs to them, as events hold them (decision 0054)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Row, insert, select

from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources.features import (
    DESCRIBED,
    add_tags,
    check_project_limit,
    check_unused,
    find_all,
    metadata,
    require_active_project,
)
from flagsvc.server.store.resources.links import links_of, put_back_links
from flagsvc.server.store.resources.strategies import (
    ORDER,
    StrategyPlace,
    insert_whole,
    segments_of,
    whole_strategy,
)
from flagsvc.server.store.schema import (
    environments,
    feature_environments,
    feature_tags,
    features,
    project_environments,
    strategies,
)
from flagsvc.server.store.store import Tx
from flagsvc.server.store.timestamps import read_time
from flagsvc.server.store.upsert import chunks

OFF: Json = {"enabled": False, "variants": []}
"""The state of a feature in an environment that it is new in."""


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


def put_back(tx: Tx, whole: Mapping[str, Any]) -> None:
    """Create a feature as `read_whole` gave it, with the ids of its strategies and links, in the environments of its project.

    Strategies in environments that do not exist are left out. Raises CallerError (400, 403, 404, 409).
    """
    name, project = whole["name"], whole["project"]
    check_unused(tx, name)
    require_active_project(tx, project)
    if not whole["archived"]:
        check_project_limit(tx, project)
    tx.db.execute(insert(features).values(_columns(whole)))
    _insert_states(tx, whole)
    _insert_strategies(tx, whole)
    add_tags(tx, name, [(each["type"], each["value"]) for each in whole["tags"]])
    put_back_links(tx, name, whole["links"])
    made = read_whole(tx, find_all(tx, [name]))[name]
    tx.record_event("feature-created", project=project, feature=name, data=made)


def _columns(whole: Mapping[str, Any]) -> Json:
    described = {column: whole[key] for key, column in DESCRIBED.items()}
    times = {"created_at": read_time(whole["createdAt"]), "archived_at": read_time(whole.get("archivedAt"))}
    by = {"created_by": whole["createdBy"], "created_by_id": whole["createdById"]}
    kept = {key: whole[key] for key in ("name", "project", "position")}
    return kept | described | times | by


def _insert_states(tx: Tx, whole: Mapping[str, Any]) -> None:
    here = project_environments.c.project == whole["project"]
    names = tx.db.execute(select(project_environments.c.environment).where(here)).scalars()
    held = whole["environments"]
    rows = [{"feature": whole["name"], "environment": each, **held.get(each, OFF)} for each in names]
    if rows:
        tx.db.execute(insert(feature_environments), rows)


def _insert_strategies(tx: Tx, whole: Mapping[str, Any]) -> None:
    known = set(tx.db.execute(select(environments.c.name)).scalars())
    for name, held in whole["strategies"].items():
        for each in held if name in known else ():
            insert_whole(tx, StrategyPlace(whole["project"], whole["name"], name), each)
