"""Import, step 9: what features ask of their parents (import validation 6.3, step 9)."""

from __future__ import annotations

from sqlalchemy import delete, select

from flagsvc.server.store.batch.change_requests import check_no_request_needed
from flagsvc.server.store.batch.dataset import Json, RequestedDependency, wishes_of
from flagsvc.server.store.batch.work import ImportWork
from flagsvc.server.store.nouns.dependencies import TRANSITIVE
from flagsvc.server.store.refusals import Refusal, not_found
from flagsvc.server.store.schema import dependencies
from flagsvc.server.store.upsert import chunks, upsert

ELSEWHERE = 'Cannot add the dependency. Both the parent and the child feature must belong to project "{}".'


def write_dependencies(work: ImportWork) -> None:
    """Write the dependencies of children that are in the data set with a project; others are passed over.

    All are checked against what was there before, so a chain may come in at once. Raises Refusal (403, 404).
    """
    wishes = wishes_of(work.data)
    for project in dict.fromkeys(each.project for each in wishes):
        check_no_request_needed(work.tx, work.actor, project)
    _check(work, wishes)
    children = dict.fromkeys(each.child for each in wishes)
    before = _parents_before(work, list(children))
    for some in chunks(children):
        work.tx.db.execute(delete(dependencies).where(dependencies.c.child.in_(some)))
    wanted = {(each.child, each.asked["feature"]): _stored(each.asked) for each in wishes}
    rows = [{"child": child, "parent": parent} | values for (child, parent), values in wanted.items()]
    upsert(work.tx, dependencies, rows, ["enabled", "variants"])
    for each in wishes:
        if before.get((each.child, each.asked["feature"])) != _stored(each.asked):
            work.tell("feature-dependency-added", each.child, each.asked)


def _stored(asked: Json) -> Json:
    """Return the columns of a dependency: on a parent that is to be off there are no variants to ask for."""
    enabled = asked.get("enabled", True)
    return {"enabled": enabled, "variants": (asked.get("variants") or []) if enabled else []}


def _check(work: ImportWork, wishes: list[RequestedDependency]) -> None:
    """Raise Refusal (403, 404) for the first wish that cannot be."""
    if any(each.child == each.asked["feature"] for each in wishes):
        raise _no("A feature flag cannot depend on itself.")
    depended_on = _found(work, "parent", [each.child for each in wishes])
    depending = _found(work, "child", [each.asked["feature"] for each in wishes])
    for each in wishes:
        parent = work.features.get(each.asked["feature"])
        if each.child in depended_on:
            raise _no(f"{TRANSITIVE}other features depend on.")
        if each.asked["feature"] in depending:
            raise _no(f"{TRANSITIVE}has parent dependency.")
        if parent is None or parent.archived:
            raise _no(f"No active feature {each.asked['feature']} exists")
        if parent.project != work.features[each.child].project:
            raise not_found(ELSEWHERE.format(work.data.project))


def _no(message: str) -> Refusal:
    return Refusal("InvalidOperationError", message)


def _found(work: ImportWork, column: str, names: list[str]) -> set[str]:
    """Return those of the names that stand in a column."""
    which = dependencies.c[column]
    return {
        name
        for some in chunks(dict.fromkeys(names))
        for name in work.tx.db.execute(select(which).where(which.in_(some))).scalars()
    }


def _parents_before(work: ImportWork, children: list[str]) -> dict[tuple[str, str], Json]:
    return {
        (row.child, row.parent): {"enabled": row.enabled, "variants": row.variants or []}
        for some in chunks(children)
        for row in work.tx.db.execute(select(dependencies).where(dependencies.c.child.in_(some)))
    }
