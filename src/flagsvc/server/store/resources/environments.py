"""Environments, and those of projects (the real server's /api/admin/environments and …/projects/…/environments)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Row, ScalarSelect, and_, delete, exists, func, insert, select

from flagsvc.server.store.checks import Json, check_name, invalid, make_detail, raise_problems
from flagsvc.server.store.errors import CallerError, bad_data, not_found
from flagsvc.server.store.members import columns_of, shown
from flagsvc.server.store.resources import strategies
from flagsvc.server.store.resources.features import OFF, find_all
from flagsvc.server.store.resources.strategies import Placed, StrategyPlace, check_segments, insert_all
from flagsvc.server.store.schema import (
    environments,
    feature_environments,
    features,
    project_environments,
    projects,
    tokens,
)
from flagsvc.server.store.schema import strategies as strategies_table
from flagsvc.server.store.store import Tx
from flagsvc.server.store.texts import text_problem
from flagsvc.server.store.upsert import upsert
from flagsvc.server.store.writer import Whole, Writer

ALL = "*"
ORDER = (environments.c.sort_order, environments.c.name)
MAX_TYPE_LENGTH = 255
"""UTF-16 code units of a type; ours."""
ASKS_FIRST = "production"
"""The type of the environments in which pages ask before a change."""
MEMBERS = ("type", "enabled", "sortOrder", "protected")
"""The members of an environment that a change sets."""
CHANGEABLE = ("type", "enabled", "sortOrder")


def to_json(row: Row[Any]) -> Json:
    """Return an environment as the API answers it."""
    return shown(row, "name", "type", "sortOrder", "enabled", "protected") | {"requiredApprovals": None}


def list_all(tx: Tx) -> list[Json]:
    """Return every environment in order, with its numbers of projects, tokens and enabled features."""
    here = environments.c.name
    counts = {
        "projectCount": _count_query(project_environments, project_environments.c.environment == here),
        "apiTokenCount": _count_query(tokens, tokens.c.environment == here),
        "enabledToggleCount": _enabled_count(),
    }
    query = select(environments, *(count.label(name) for name, count in counts.items())).order_by(*ORDER)
    return [to_json(row) | {name: row._mapping[name] for name in counts} for row in tx.db.execute(query)]


def list_plain(tx: Tx) -> list[Json]:
    """Return every environment in order, without the numbers of `list_all`: these look at every feature."""
    return [to_json(row) for row in tx.db.execute(select(environments).order_by(*ORDER))]


def list_protected(tx: Tx) -> set[str]:
    """Return the environments in which pages ask before a change."""
    return set(tx.db.execute(select(environments.c.name).where(environments.c.type == ASKS_FIRST)).scalars())


def _count_query(table: Any, *conditions: ColumnElement[bool]) -> ScalarSelect[int]:
    return select(func.count()).select_from(table).where(*conditions).scalar_subquery()


def _enabled_count(*conditions: ColumnElement[bool]) -> ScalarSelect[int]:
    """Return the subquery that counts the active features that are on in an environment."""
    joined = feature_environments.join(features, features.c.name == feature_environments.c.feature)
    state = feature_environments.c.environment == environments.c.name, feature_environments.c.enabled
    return _count_query(joined, *state, features.c.archived_at.is_(None), *conditions)


def get(tx: Tx, name: str) -> Json:
    """Return an environment. Raises CallerError (404)."""
    return WRITER.require(tx, name)


def environment_exists(tx: Tx, name: str) -> bool:
    return tx.db.execute(select(environments.c.name).where(environments.c.name == name)).first() is not None


def create(tx: Tx, wanted: Mapping[str, Any]) -> Json:
    """Create an environment, in no project, and return it. Raises CallerError (400, 409).

    `wanted` has name and type, and may have enabled and sortOrder.
    """
    check_new_name(tx, wanted["name"])
    return WRITER.put(tx, {"name": wanted["name"]} | _checked_members(wanted))[0]


def check_new_name(tx: Tx, name: str) -> None:
    """Raise CallerError for a name that a new environment cannot have: invalid (400) or in use (409)."""
    check_name(name)
    if name == ALL:  # in the scope of a token
        raise invalid(make_detail('"name" must not be *, which stands for all environments', name))
    if environment_exists(tx, name):
        raise CallerError("NameExistsError", f"There already exists an environment with the name {name}")


def _checked_members(wanted: Mapping[str, Any]) -> Json:
    """Return the members that a body sets. Raises CallerError (400) for an empty or too long type."""
    if "type" in wanted:
        raise_problems(text_problem(wanted["type"], "type", longest=MAX_TYPE_LENGTH))
    return {name: wanted[name] for name in CHANGEABLE if name in wanted}


def change(tx: Tx, name: str, wanted: Mapping[str, Any]) -> Json:
    """Change what is present of an environment's type and sort order, and return it. Raises CallerError (400, 404)."""
    members = _checked_members(wanted)
    get(tx, name)
    return WRITER.put(tx, {"name": name} | members)[0]


def remove(tx: Tx, *names: str) -> None:
    """Delete environments, with the strategies that projects left there.

    Raises CallerError: 403 for a protected one, 404, and 409 while a project has one or a token reads one.
    """
    for name in names:
        if get(tx, name)["protected"]:
            raise CallerError("InvalidOperationError", f"Environment {name} is protected and cannot be deleted")
        _check_unused(tx, name)
    WRITER.remove(tx, *names)


def _left_strategies(tx: Tx, names: Sequence[str]) -> dict[str, Json]:
    left: dict[str, dict[str, list[Json]]] = {name: defaultdict(list) for name in names}
    there = strategies.wholes_in(tx, strategies_table.c.environment, names)
    for row, whole in sorted(there, key=lambda pair: str(pair[0].feature)):
        left[row.environment][row.feature].append(whole)
    return {name: {"strategies": dict(each)} for name, each in left.items()}


def _bring_strategies(tx: Tx, wholes: Sequence[Whole]) -> None:
    """Insert the strategies of environments whose features exist. Raises CallerError (404) for a segment that does not exist."""
    left = {each["name"]: each.get("strategies", {}) for each in wholes}
    owners = {row.name: row.project for row in find_all(tx, [name for each in left.values() for name in each])}
    held = [
        Placed(StrategyPlace(owners[feature], feature, name), each)
        for name, by_feature in left.items()
        for feature in by_feature.keys() & owners
        for each in by_feature[feature]
    ]
    check_segments(tx, held)
    insert_all(tx, held)


def _check_unused(tx: Tx, name: str) -> None:
    """Raise CallerError (409) with every reason why an environment cannot be deleted."""
    links, readers = project_environments.c, tokens.c
    owners = tx.db.execute(select(links.project).where(links.environment == name).order_by(links.project)).scalars().all()
    names = tx.db.execute(select(readers.name).where(readers.environment == name).order_by(readers.id)).scalars().all()
    reasons = [f"project `{each}` has it" for each in owners] + [f"token `{each}` reads it" for each in names]
    if reasons:
        message = f"Environment {name} is in use and cannot be deleted"
        raise CallerError("ConflictError", message, [{"message": each} for each in reasons])


def switch(tx: Tx, name: str, *, enabled: bool) -> None:
    """Switch an environment on or off. A new project does not get an environment that is off. Raises CallerError (404)."""
    if not environment_exists(tx, name):
        raise not_found(f"Could not find environment {name}")
    WRITER.put(tx, {"name": name, "enabled": enabled})


def sort(tx: Tx, orders: Mapping[str, int]) -> None:
    """Set the sort order of environments; unknown ones are ignored."""
    WRITER.put(tx, *({"name": name, "sortOrder": orders[name]} for name in WRITER.read(tx, orders)))


def list_for_project(tx: Tx, project: str) -> list[Json]:
    """Return every environment with its numbers for a project; `visible` tells whether the project has it."""
    here = environments.c.name
    linked = exists().where(project_environments.c.environment == here, project_environments.c.project == project)
    query = select(environments, _enabled_count(features.c.project == project).label("enabled_count"), linked.label("linked"))
    counts = _token_counts(tx, project)
    return [
        to_json(row)
        | {
            "projectApiTokenCount": counts.get(row.name, 0),
            "projectEnabledToggleCount": row.enabled_count,
            "visible": bool(row.linked),
        }
        for row in tx.db.execute(query.order_by(*ORDER))
    ]


def _token_counts(tx: Tx, project: str) -> dict[str, int]:
    """Return how many tokens may read a project, by environment."""
    counts: dict[str, int] = {}
    query = select(tokens.c.environment, tokens.c.projects).where(tokens.c.environment.is_not(None))
    for name, seen in tx.db.execute(query):
        counts[name] = counts.get(name, 0) + (seen == [ALL] or project in seen)
    return counts


def add_to_project(tx: Tx, project: str, name: str, held: Mapping[str, Json] | None = None) -> None:
    """Add an environment to a project; its features are off there, or have the states of `held`.

    Raises CallerError (400, 404, 409).
    """
    if tx.db.execute(select(projects.c.id).where(projects.c.id == project)).first() is None:
        raise not_found("No project found")
    if not environment_exists(tx, name):
        raise bad_data(f"Environment {name} does not exist")
    if _has_environment(tx, project, name):
        raise CallerError("NameExistsError", f"{project} already has the environment {name} enabled")
    tx.db.execute(insert(project_environments).values(project=project, environment=name))
    names = tx.db.execute(select(features.c.name).where(features.c.project == project)).scalars()
    rows = [{"feature": each, "environment": name, **(held or {}).get(each, OFF)} for each in names]
    upsert(tx, feature_environments, rows, [])
    tx.record_event("project-environment-added", project=project, environment=name, data=states_in(tx, project, name))


def states_in(tx: Tx, project: str, name: str) -> Json | None:
    """Return the states of a project's features in an environment that are on or have variants; None if it is not the project's."""
    if not _has_environment(tx, project, name):
        return None
    states = _states(tx, project, name).items()
    return {"features": {feature: held for feature, held in states if held["enabled"] or held["variants"]}}


def _link(project: str, name: str) -> ColumnElement[bool]:
    return and_(project_environments.c.project == project, project_environments.c.environment == name)


def _has_environment(tx: Tx, project: str, name: str) -> bool:
    return tx.db.execute(select(project_environments).where(_link(project, name))).first() is not None


def _states(tx: Tx, project: str, name: str) -> dict[str, Json]:
    state = feature_environments.c
    mine = select(features.c.name).where(features.c.project == project)
    query = select(feature_environments).where(state.environment == name, state.feature.in_(mine)).order_by(state.feature)
    return {row.feature: {"enabled": row.enabled, "variants": row.variants or []} for row in tx.db.execute(query)}


def remove_from_project(tx: Tx, project: str, name: str) -> None:
    """Remove an environment from a project. The strategies of its features stay, in case the environment is added again."""
    had = _has_environment(tx, project, name)
    tx.db.execute(delete(project_environments).where(_link(project, name)))
    mine = select(features.c.name).where(features.c.project == project)
    states = feature_environments.c.environment == name, feature_environments.c.feature.in_(mine)
    used = _states(tx, project, name)
    tx.db.execute(delete(feature_environments).where(*states))
    if had or used:
        tx.record_event("project-environment-removed", project=project, environment=name, before={"features": used})


WRITER = Writer(
    table=environments,
    show=lambda tx, rows: [to_json(row) for row in rows],
    columns=lambda tx, whole: columns_of(whole, MEMBERS),
    created="environment-created",
    updated="environment-updated",
    deleted="environment-deleted",
    unknown="Could not find environment with name: {}",
    place=lambda whole: {"environment": whole["name"]},
    more=_left_strategies,
    bring=_bring_strategies,
    new={"sortOrder": 9999, "enabled": True, "protected": False},
)
