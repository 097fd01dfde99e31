"""Features and strategies with everything that belongs to them: as events hold them (decision 0054), and copied (`…/clone`).

Many are removed and put back together.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Row, bindparam, delete, insert, select, update

from flagsvc.server.store.checks import Json, check_name
from flagsvc.server.store.constraints import limit_exceeded
from flagsvc.server.store.errors import not_found
from flagsvc.server.store.resources import dependencies
from flagsvc.server.store.resources.feature_environments import save_variants
from flagsvc.server.store.resources.feature_views import states_of
from flagsvc.server.store.resources.features import (
    DESCRIBED,
    add_tags,
    check_project_limit,
    check_unused,
    find_all,
    metadata,
    no_feature,
    require_active_project,
)
from flagsvc.server.store.resources.features import (
    create as create_feature,
)
from flagsvc.server.store.resources.features import (
    find as find_feature,
)
from flagsvc.server.store.resources.links import links_of, put_back_links
from flagsvc.server.store.resources.strategies import (
    MAX_STRATEGIES,
    ORDER,
    StrategyPlace,
    check_type,
    checked_segments,
    insert_rows,
    read_all_whole,
    rows_by_feature,
    segments_of,
    set_segments,
    whole_strategy,
)
from flagsvc.server.store.resources.strategies import (
    create as create_strategy,
)
from flagsvc.server.store.resources.strategies import (
    list_all as list_strategies,
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


def put_back(tx: Tx, wholes: Sequence[Mapping[str, Any]]) -> None:
    """Create features as `read_whole` gave them, with the ids of strategies and links, in the environments of their projects.

    Strategies in environments that do not exist are left out. Raises CallerError (400, 403, 404, 409).
    """
    names = [whole["name"] for whole in wholes]
    check_unused(tx, names)
    for project in dict.fromkeys(whole["project"] for whole in wholes):
        require_active_project(tx, project)
        check_project_limit(tx, project, sum(each["project"] == project and not each["archived"] for each in wholes))
    check_segments(tx, _placed(tx, wholes))
    insert_whole(tx, wholes)


def insert_whole(tx: Tx, wholes: Sequence[Mapping[str, Any]]) -> None:
    """Insert features as `read_whole` gives them, in the environments of their projects, and record them.

    Strategies in environments that do not exist are left out. Raises CallerError (400) for an unknown type of a tag.
    """
    names = [whole["name"] for whole in wholes]
    if wholes:
        tx.db.execute(insert(features), [_columns(tx, whole) for whole in wholes])
    _insert_states(tx, wholes)
    insert_all(tx, _placed(tx, wholes))
    add_tags(tx, {each["name"]: [(tag["type"], tag["value"]) for tag in each["tags"]] for each in wholes})
    put_back_links(tx, {whole["name"]: whole["links"] for whole in wholes})
    made = read_whole(tx, find_all(tx, names))
    for each in wholes:
        tx.record_event("feature-created", project=each["project"], feature=each["name"], data=made[each["name"]])


def _columns(tx: Tx, whole: Mapping[str, Any]) -> Json:
    described = {column: whole[key] for key, column in DESCRIBED.items()}
    created = read_time(whole["createdAt"]) if "createdAt" in whole else tx.now
    times = {"created_at": created, "archived_at": read_time(whole.get("archivedAt"))}
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


def _placed(tx: Tx, wholes: Sequence[Mapping[str, Any]]) -> list[Placed]:
    """Return the strategies of features in environments that exist."""
    known = set(tx.db.execute(select(environments.c.name)).scalars())
    return [
        Placed(StrategyPlace(whole["project"], whole["name"], name), each)
        for whole in wholes
        for name, rules in whole["strategies"].items()
        for each in (rules if name in known else ())
    ]


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


def put_strategies_back(tx: Tx, wanted: Sequence[Placed]) -> None:
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
    check_segments(tx, wanted)
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
    """Insert strategies as events hold them, without events."""
    rows = [
        _strategy_columns(whole)
        | {"id": whole["id"], "created_at": tx.now}
        | {"feature": place.feature, "environment": place.environment}
        for place, whole in wanted
    ]
    insert_rows(tx, rows, [whole["segments"] for _, whole in wanted])


def _update(tx: Tx, wanted: Sequence[Placed]) -> None:
    """Change strategies to what events hold."""
    rows = [_strategy_columns(whole) | {"which": whole["id"]} for _, whole in wanted]
    if rows:
        names: dict[str, Any] = {name: bindparam(name) for name in rows[0] if name != "which"}
        tx.db.execute(update(strategies).where(strategies.c.id == bindparam("which")).values(names), rows)
    set_segments(tx, {whole["id"]: whole["segments"] for _, whole in wanted})


def check_segments(tx: Tx, wanted: Iterable[Placed]) -> None:
    """Raise CallerError for segments that strategies cannot use (400, 404). Those that several strategies use are read once."""
    for project, numbers in dict.fromkeys((place.project, tuple(whole["segments"])) for place, whole in wanted):
        checked_segments(tx, project, numbers)


def _strategy_columns(whole: Mapping[str, Any]) -> Json:
    names = ("name", "title", "disabled", "constraints", "parameters", "variants", "position")
    return {name: whole[name] for name in names} | {"sort_order": whole["sortOrder"]}


def clone(tx: Tx, project: str, name: str, new_name: str, *, replace_group: bool = True) -> Json:
    """Create a copy of an active feature in a project and return it.

    With `replace_group`, the groupId of the copied strategies becomes the new name.

        Raises CallerError (400, 403, 404, 409).
    """
    check_name(new_name)
    check_unused(tx, [new_name])
    row = find_feature(tx, name)
    if row is None or row.archived_at is not None:
        raise not_found(f"Could not find feature flag with name {name}")
    described = {"name": new_name, "type": row.type, "description": row.description, "stale": row.stale}
    tags = tx.db.execute(select(feature_tags.c.type, feature_tags.c.value).where(feature_tags.c.feature == name))
    described |= {"impressionData": row.impression_data, "tags": [dict(each._mapping) for each in tags]}
    created = create_feature(tx, project, described)
    for state in states_of(tx, [name])[name]:
        place = StrategyPlace(project, new_name, state.environment)
        if state.variants:
            save_variants(tx, {place: state.variants})
        for strategy in list_strategies(tx, name, state.environment):
            create_strategy(tx, place, copy_strategy(strategy, new_name, replace_group=replace_group))
    for parent in dependencies.parents_of(tx, name):
        dependencies.add(tx, project, new_name, parent)
    return created


def copy_strategy(strategy: Mapping[str, Any], feature: str, *, replace_group: bool) -> Json:
    """Return a copy of a strategy for another feature."""
    parameters = dict(strategy["parameters"])
    if replace_group and "groupId" in parameters:
        parameters["groupId"] = feature
    return {**strategy, "parameters": parameters}
