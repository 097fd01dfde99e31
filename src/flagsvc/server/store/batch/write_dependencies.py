"""Import, step 9: dependencies of features (import validation 6.3, step 9)."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import delete, select

from flagsvc.server.store.batch.change_requests import check_change_request_not_required
from flagsvc.server.store.batch.dataset import Json, RequestedDependency, list_requested_dependencies
from flagsvc.server.store.batch.import_work import ImportWork
from flagsvc.server.store.errors import CallerError, not_found
from flagsvc.server.store.resources.dependencies import TRANSITIVE, parents_of
from flagsvc.server.store.schema import dependencies
from flagsvc.server.store.upsert import chunks, upsert

OTHER_PROJECT = 'Cannot add the dependency. Both the parent and the child feature must belong to project "{}".'


def write_dependencies(work: ImportWork) -> None:
    """Write the dependencies whose children are in the data set with a project; others are skipped.

    All are checked against the state before, so one import can create a chain. Raises CallerError (403, 404).
    """
    requested = list_requested_dependencies(work.data)
    for project in dict.fromkeys(each.project for each in requested):
        check_change_request_not_required(work.tx, work.actor, project)
    _check(work, requested)
    children = dict.fromkeys(each.child for each in requested)
    before = _parents_before(work, list(children))
    for chunk in chunks(children):
        work.tx.db.execute(delete(dependencies).where(dependencies.c.child.in_(chunk)))
    wanted = {(each.child, each.requirement["feature"]): _dependency_columns(each.requirement) for each in requested}
    rows = [{"child": child, "parent": parent} | values for (child, parent), values in wanted.items()]
    upsert(work.tx, dependencies, rows, ["enabled", "variants"])
    for each in requested:
        if before.get((each.child, each.requirement["feature"])) != _dependency_columns(each.requirement):
            _record(work, each, before)


def _record(work: ImportWork, added: RequestedDependency, before: Mapping[tuple[str, str], Json]) -> None:
    """Record the event of a new dependency, with all parents of the child before and after."""
    parents = [{"feature": parent, **held} for (child, parent), held in before.items() if child == added.child]
    after = added.requirement | {"dependencies": parents_of(work.tx, added.child)}
    work.record_event("feature-dependency-added", added.child, before={"dependencies": parents}, data=after)


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


def _parents_before(work: ImportWork, children: list[str]) -> dict[tuple[str, str], Json]:
    return {
        (row.child, row.parent): {"enabled": row.enabled, "variants": row.variants or []}
        for chunk in chunks(children)
        for row in work.tx.db.execute(select(dependencies).where(dependencies.c.child.in_(chunk)))
    }
