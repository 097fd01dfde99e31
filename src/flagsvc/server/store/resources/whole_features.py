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
    segments_of,
    whole_strategy,
)
from flagsvc.server.store.resources.whole_strategies import Placed, insert_all
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


def put_back(tx: Tx, wholes: Sequence[Mapping[str, Any]]) -> None:
    """Create features as `read_whole` gave them, with the ids of strategies and links, in the environments of their projects.

    Strategies in environments that do not exist are left out. Raises CallerError (400, 403, 404, 409).
    """
    names = [whole["name"] for whole in wholes]
    check_unused(tx, names)
    for project in dict.fromkeys(whole["project"] for whole in wholes):
        require_active_project(tx, project)
        check_project_limit(tx, project, sum(each["project"] == project and not each["archived"] for each in wholes))
    if wholes:
        tx.db.execute(insert(features), [_columns(whole) for whole in wholes])
    _insert_states(tx, wholes)
    _insert_strategies(tx, wholes)
    add_tags(tx, {each["name"]: [(tag["type"], tag["value"]) for tag in each["tags"]] for each in wholes})
    put_back_links(tx, {whole["name"]: whole["links"] for whole in wholes})
    made = read_whole(tx, find_all(tx, names))
    for each in wholes:
        tx.record_event("feature-created", project=each["project"], feature=each["name"], data=made[each["name"]])


def _columns(whole: Mapping[str, Any]) -> Json:
    described = {column: whole[key] for key, column in DESCRIBED.items()}
    times = {"created_at": read_time(whole["createdAt"]), "archived_at": read_time(whole.get("archivedAt"))}
    by = {"created_by": whole["createdBy"], "created_by_id": whole["createdById"]}
    kept = {key: whole[key] for key in ("name", "project", "position")}
    return kept | described | times | by


def _insert_states(tx: Tx, wholes: Sequence[Mapping[str, Any]]) -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for project, environment in tx.db.execute(
        select(project_environments.c.project, project_environments.c.environment)
    ):
        places[project].append(environment)
    rows = [
        {"feature": whole["name"], "environment": each, **whole["environments"].get(each, OFF)}
        for whole in wholes
        for each in places[whole["project"]]
    ]
    if rows:
        tx.db.execute(insert(feature_environments), rows)


def _insert_strategies(tx: Tx, wholes: Sequence[Mapping[str, Any]]) -> None:
    known = set(tx.db.execute(select(environments.c.name)).scalars())
    held = [
        Placed(StrategyPlace(whole["project"], whole["name"], name), each)
        for whole in wholes
        for name, rules in whole["strategies"].items()
        for each in (rules if name in known else ())
    ]
    insert_all(tx, held)
