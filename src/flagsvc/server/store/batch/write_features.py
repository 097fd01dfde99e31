"""Import, steps 1 and 9: changes or creates the features, and sets their dependencies (import validation 6.3)."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from sqlalchemy import Row, select

from flagsvc.server.store.batch.change_requests import check_change_request_not_required
from flagsvc.server.store.batch.dataset import Json, RequestedDependency, list_requested_dependencies
from flagsvc.server.store.batch.facts import CheckedDataSet
from flagsvc.server.store.batch.import_work import ImportWork
from flagsvc.server.store.checks import check_name
from flagsvc.server.store.errors import CallerError, bad_data, not_found
from flagsvc.server.store.resources.dependencies import TRANSITIVE, parents_of_all, replace
from flagsvc.server.store.resources.features import (
    DESCRIBED,
    describe,
    feature_columns,
    find_all,
    insert_all,
    metadata,
    not_active,
)
from flagsvc.server.store.schema import dependencies
from flagsvc.server.store.upsert import chunks

LIMIT_REACHED = "You have reached the maximum number of feature flags for this project."


def write_features(work: ImportWork) -> None:
    """Change the features of the project; create new ones in all its environments. Raises CallerError (400, 403, 404, 409)."""
    before = {row.name: row for row in find_all(work.tx, CheckedDataSet(work.data, work.known).overwritten)}
    changed, created = _split_changed_and_created(work, before)
    changed = {name: values for name, values in changed.items() if _differs(before[name], values)}
    describe(work.tx, {name: _columns(work, values) for name, values in changed.items()})
    insert_all(work.tx, [_new(work, name, values) for name, values in created.items()])
    for row in find_all(work.tx, list(created)):
        work.record_event("feature-created", row.name, data=metadata(row))


def _split_changed_and_created(
    work: ImportWork, before: dict[str, Row[Any]]
) -> tuple[dict[str, Json], dict[str, Json]]:
    """Return the features to change and those to create, by name. The first feature that fails a check raises."""
    changed: dict[str, Json] = {}
    created: dict[str, Json] = {}
    active = work.project.active
    for wanted in work.data.features:
        name = wanted["name"]
        if name in before:
            active -= _is_active(changed.get(name, {})) - _is_active(feature_columns(wanted))
            changed[name] = feature_columns(wanted)
        else:
            _check_new(work, name, created, active)
            created[name] = feature_columns(wanted)
            active += _is_active(created[name])
    return changed, created


def _is_active(values: Json) -> bool:
    return not values.get("archived")


def _check_new(work: ImportWork, name: str, created: dict[str, Json], active: int) -> None:
    """Raise CallerError if the project cannot have a new feature of this name; `active` counts its active features so far."""
    check_name(name)
    if name in created:
        kind = "A" if _is_active(created[name]) else "An archived"
        raise CallerError("NameExistsError", f"{kind} flag with that name already exists")
    work.project.naming.check(name)
    limit = work.project.limit
    if limit is not None and active >= limit:
        raise CallerError("InvalidOperationError", LIMIT_REACHED)
    if work.known.project is None or work.project.archived:
        raise not_active(work.data.project)


def _differs(row: Row[Any], values: Json) -> bool:
    held = {name: getattr(row, name) for name in values if name != "archived"}
    return values != held | {"archived": row.archived_at is not None}


def _columns(work: ImportWork, values: Json) -> Json:
    """Return the columns that describe a feature."""
    kept = {name: value for name, value in values.items() if name != "archived"}
    return kept | {"archived_at": None if _is_active(values) else work.tx.now}


def _new(work: ImportWork, name: str, values: Json) -> Json:
    described = {member: values[column] for member, column in DESCRIBED.items()}
    return described | {"name": name, "project": work.data.project, "archived": values["archived"]}


MOST_PARENTS: Final = 200_000
"""The most parents that the events of an import hold together: each event of a new parent holds all parents of its child."""
OTHER_PROJECT = 'Cannot add the dependency. Both the parent and the child feature must belong to project "{}".'


def write_dependencies(work: ImportWork) -> None:
    """Write the dependencies whose children are in the data set with a project; others are skipped.

    All are checked against the state before, so one import can create a chain. Raises CallerError (403, 404).
    """
    requested = list_requested_dependencies(work.data)
    parents = Counter(child for child, _ in {(each.child, each.requirement["feature"]) for each in requested})
    if sum(parents[each.child] for each in requested) > MOST_PARENTS:
        raise bad_data("The dependencies have too many parents for one feature: each event of one holds all of them.")
    for project in dict.fromkeys(each.project for each in requested):
        check_change_request_not_required(work.tx, work.actor, project)
    _check(work, requested)
    children: dict[str, list[Json]] = {}
    for child, _, requirement in requested:
        children.setdefault(child, []).append(_parent(requirement))
    before = parents_of_all(work.tx, children)
    replace(work.tx, children)
    after = parents_of_all(work.tx, children)
    for child, _, requirement in requested:
        if _parent(requirement) not in before[child]:
            data = requirement | {"dependencies": after[child]}
            work.record_event("feature-dependency-added", child, before={"dependencies": before[child]}, data=data)


def _parent(requirement: Json) -> Json:
    """Return a parent as it is stored; one that must be off has no variants."""
    enabled = requirement.get("enabled", True)
    variants = (requirement.get("variants") or []) if enabled else []
    return {"feature": requirement["feature"], "enabled": enabled, "variants": variants}


def _check(work: ImportWork, requested: list[RequestedDependency]) -> None:
    """Raise CallerError (403, 404) for the first dependency that cannot be created."""
    if any(each.child == each.requirement["feature"] for each in requested):
        raise _invalid_operation("A feature flag cannot depend on itself.")
    depended_on = _find_in_column(work, "parent", [each.child for each in requested])
    depending = _find_in_column(work, "child", [each.requirement["feature"] for each in requested])
    for each in requested:
        parent = work.features.get(each.requirement["feature"])
        if each.child in depended_on:
            raise _invalid_operation(f"{TRANSITIVE}other features depend on.")
        if each.requirement["feature"] in depending:
            raise _invalid_operation(f"{TRANSITIVE}has parent dependency.")
        if parent is None or parent.archived:
            raise _invalid_operation(f"No active feature {each.requirement['feature']} exists")
        if parent.project != work.features[each.child].project:
            raise not_found(OTHER_PROJECT.format(work.data.project))


def _invalid_operation(message: str) -> CallerError:
    return CallerError("InvalidOperationError", message)


def _find_in_column(work: ImportWork, column: str, names: list[str]) -> set[str]:
    """Return the names that a column contains."""
    which = dependencies.c[column]
    return {
        name
        for chunk in chunks(dict.fromkeys(names))
        for name in work.tx.db.execute(select(which).where(which.in_(chunk))).scalars()
    }
