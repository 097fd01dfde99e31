"""Import, step 9: dependencies of features (import validation 6.3, step 9)."""

from __future__ import annotations

from collections import Counter
from typing import Final

from sqlalchemy import delete, select

from flagsvc.server.store.batch.change_requests import check_change_request_not_required
from flagsvc.server.store.batch.dataset import Json, RequestedDependency, list_requested_dependencies
from flagsvc.server.store.batch.import_work import ImportWork
from flagsvc.server.store.errors import CallerError, bad_data, not_found
from flagsvc.server.store.resources.dependencies import TRANSITIVE, parents_of_all
from flagsvc.server.store.schema import dependencies
from flagsvc.server.store.upsert import chunks, upsert

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
    children = dict.fromkeys(each.child for each in requested)
    before = parents_of_all(work.tx, children)
    for chunk in chunks(children):
        work.tx.db.execute(delete(dependencies).where(dependencies.c.child.in_(chunk)))
    wanted = {(each.child, each.requirement["feature"]): _dependency_columns(each.requirement) for each in requested}
    rows = [{"child": child, "parent": parent} | values for (child, parent), values in wanted.items()]
    upsert(work.tx, dependencies, rows, ["enabled", "variants"])
    after = parents_of_all(work.tx, children)
    for child, _, requirement in requested:
        if {"feature": requirement["feature"], **_dependency_columns(requirement)} not in before[child]:
            data = requirement | {"dependencies": after[child]}
            work.record_event("feature-dependency-added", child, before={"dependencies": before[child]}, data=data)


def _dependency_columns(requirement: Json) -> Json:
    """Return the columns of a dependency; a parent that must be off has no variants."""
    enabled = requirement.get("enabled", True)
    return {"enabled": enabled, "variants": (requirement.get("variants") or []) if enabled else []}


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
