"""Features and strategies with everything that belongs to them: as events hold them (decision 0027), and copied (`…/clone`).

Many are removed and put back together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Row, select

from flagsvc.server.shapes.features import DESCRIPTION
from flagsvc.server.store.checks import Json, check_name
from flagsvc.server.store.errors import not_found
from flagsvc.server.store.members import shown
from flagsvc.server.store.resources import dependencies, features
from flagsvc.server.store.resources import strategies as rules_of
from flagsvc.server.store.resources.feature_environments import save_variants
from flagsvc.server.store.resources.feature_views import states_of
from flagsvc.server.store.resources.features import metadata
from flagsvc.server.store.resources.links import links_of, put_back_links
from flagsvc.server.store.resources.strategies import Placed, StrategyPlace
from flagsvc.server.store.schema import environments, feature_environments, feature_tags
from flagsvc.server.store.store import Tx, read_tags
from flagsvc.server.store.upsert import rows_in


def read_whole(tx: Tx, rows: Sequence[Row[Any]]) -> dict[str, Json]:
    """Return features with their states, strategies, tags and links, by name. Environments are keys."""
    names = [row.name for row in rows]
    states, rules, tags = _states(tx, names), _strategies(tx, names), read_tags(tx.db, names)
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
    query = select(feature_environments).order_by(feature_environments.c.environment)
    for row in rows_in(tx, query, feature_environments.c.feature, names):
        found[row.feature][row.environment] = {"enabled": row.enabled, "variants": row.variants or []}
    return found


def _strategies(tx: Tx, names: Iterable[str]) -> dict[str, dict[str, list[Json]]]:
    found: dict[str, dict[str, list[Json]]] = defaultdict(lambda: defaultdict(list))
    for row, whole in rules_of.wholes_of(tx, names):
        found[row.feature][row.environment].append(whole)
    return found


def put_back(tx: Tx, wholes: Sequence[Mapping[str, Any]]) -> None:
    """Create features as `read_whole` gave them, with the ids of strategies and links, in the environments of their projects.

    Strategies in environments that do not exist are left out. Raises CallerError (400, 403, 404, 409).
    """
    names = [whole["name"] for whole in wholes]
    features.check_unused(tx, names)
    for project in dict.fromkeys(whole["project"] for whole in wholes):
        features.require_active_project(tx, project)
        features.check_project_limit(tx, project, sum(each["project"] == project and not each["archived"] for each in wholes))
    rules_of.check_segments(tx, _placed(tx, wholes))
    insert_whole(tx, wholes)


def insert_whole(tx: Tx, wholes: Sequence[Mapping[str, Any]]) -> None:
    """Insert features as `read_whole` gives them, in the environments of their projects, and record them.

    Strategies in environments that do not exist are left out. Raises CallerError (400) for an unknown type of a tag.
    """
    names = [whole["name"] for whole in wholes]
    features.insert_all(tx, wholes)
    rules_of.insert_all(tx, _placed(tx, wholes))
    features.add_tags(tx, {each["name"]: [(tag["type"], tag["value"]) for tag in each["tags"]] for each in wholes})
    put_back_links(tx, {whole["name"]: whole["links"] for whole in wholes})
    inserted = read_whole(tx, features.find_all(tx, names))
    for each in wholes:
        tx.record_event("feature-created", project=each["project"], feature=each["name"], data=inserted[each["name"]])


def _placed(tx: Tx, wholes: Sequence[Mapping[str, Any]]) -> list[Placed]:
    """Return the strategies of features in environments that exist."""
    known = set(tx.db.execute(select(environments.c.name)).scalars())
    return [
        Placed(StrategyPlace(whole["project"], whole["name"], name), each)
        for whole in wholes
        for name, rules in whole["strategies"].items()
        for each in (rules if name in known else ())
    ]


def clone(tx: Tx, project: str, name: str, new_name: str, *, replace_group: bool = True) -> Json:
    """Create a copy of an active feature in a project and return it.

    With `replace_group`, the groupId of the copied strategies becomes the new name. Raises CallerError (400, 403, 404, 409).
    """
    check_name(new_name)
    features.check_unused(tx, [new_name])
    row = features.find(tx, name)
    if row is None or row.archived_at is not None:
        raise not_found(f"Could not find feature flag with name {name}")
    described = shown(row, *DESCRIPTION)
    tags = tx.db.execute(select(feature_tags.c.type, feature_tags.c.value).where(feature_tags.c.feature == name))
    described |= {"name": new_name, "tags": [dict(each._mapping) for each in tags]}
    created = features.create(tx, project, described)
    for state in states_of(tx, [name])[name]:
        place = StrategyPlace(project, new_name, state.environment)
        if state.variants:
            save_variants(tx, {place: state.variants})
        for strategy in rules_of.list_all(tx, name, state.environment):
            rules_of.create(tx, place, copy_strategy(strategy, new_name, replace_group=replace_group))
    for parent in dependencies.parents_of(tx, name):
        dependencies.add(tx, project, new_name, parent)
    return created


def copy_strategy(strategy: Mapping[str, Any], feature: str, *, replace_group: bool) -> Json:
    parameters = dict(strategy["parameters"])
    if replace_group and "groupId" in parameters:
        parameters["groupId"] = feature
    return {**strategy, "parameters": parameters}
