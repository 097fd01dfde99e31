"""Dependencies of features on parent features (the real server's …/dependencies; import validation 6.3, step 9)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import and_, delete, exists, insert, select

from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.resources.features import find, require
from flagsvc.server.store.schema import dependencies, feature_environments, features, strategies
from flagsvc.server.store.store import Tx
from flagsvc.server.store.upsert import chunks, rows_in

TRANSITIVE = "Transitive dependency detected. Cannot add a dependency to the feature that "


def parents_of(tx: Tx, child: str) -> list[Json]:
    """Return the parents of a feature, with their required state."""
    return parents_of_all(tx, [child])[child]


def parents_of_all(tx: Tx, children: Iterable[str]) -> dict[str, list[Json]]:
    """Return the parents of features, with their required state, by feature."""
    found: dict[str, list[Json]] = {child: [] for child in children}
    for row in rows_in(tx, select(dependencies).order_by(dependencies.c.parent), dependencies.c.child, list(found)):
        found[row.child].append({"feature": row.parent, "enabled": row.enabled, "variants": row.variants or []})
    return found


def children_of(tx: Tx, parents: Sequence[str]) -> list[str]:
    """Return the features that depend on any of these, sorted by name."""
    return sorted({child for children in children_by_parent(tx, parents).values() for child in children})


def children_by_parent(tx: Tx, parents: Iterable[str]) -> dict[str, list[str]]:
    """Return the features that depend on each of these, sorted by name; no entry for a feature on which none depends."""
    found: dict[str, list[str]] = defaultdict(list)
    query = select(dependencies.c.parent, dependencies.c.child)
    for parent, child in rows_in(tx, query, dependencies.c.parent, parents):
        found[parent].append(child)
    return {parent: sorted(children) for parent, children in found.items()}


def parents_of_others(tx: Tx, names: Sequence[str]) -> list[str]:
    """Return the features among `names` that a feature not in `names` depends on."""
    named, found = set(names), children_by_parent(tx, names)
    return sorted(parent for parent, children in found.items() if not named.issuperset(children))


def find_related(tx: Tx, names: Sequence[str]) -> set[str]:
    """Return the features among these that are a parent or a child."""
    columns = (dependencies.c.parent, dependencies.c.child)
    return {name for each in columns for (name,) in rows_in(tx, select(each).distinct(), each, names)}


def any_dependencies(tx: Tx) -> bool:
    return tx.db.execute(select(dependencies.c.child).limit(1)).first() is not None


def add(tx: Tx, project: str, child: str, wanted: Mapping[str, Any]) -> None:
    """Make a feature depend on one parent, which replaces other parents. Raises CallerError (403, 404)."""
    require(tx, project, child)
    _check(tx, project, child, wanted["feature"])
    parent, before = stored_parent(wanted), parents_of(tx, child)
    replace(tx, {child: [parent]})
    sent = {"variants": wanted["variants"]} if "variants" in wanted else {}
    data = {name: parent[name] for name in ("feature", "enabled")} | sent | {"dependencies": parents_of(tx, child)}
    place = {"project": project, "feature": child}
    tx.record_event("feature-dependency-added", **place, before={"dependencies": before}, data=data)


def stored_parent(wanted: Mapping[str, Any]) -> Json:
    """Return a parent as it is stored; a parent that must be off has no variants."""
    enabled = wanted.get("enabled", True)
    variants = (wanted.get("variants") or []) if enabled else []
    return {"feature": wanted["feature"], "enabled": enabled, "variants": variants}


def replace(tx: Tx, wanted: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Give features these parents and no others, and record nothing. Of a parent that is named twice, the last one counts."""
    for chunk in chunks(wanted):
        tx.db.execute(delete(dependencies).where(dependencies.c.child.in_(chunk)))
    rows = [
        {"child": child, "parent": each["feature"], "enabled": each["enabled"], "variants": each["variants"]}
        for child, parents in wanted.items()
        for each in {each["feature"]: each for each in parents}.values()
    ]
    if rows:
        tx.db.execute(insert(dependencies), rows)


def _check(tx: Tx, project: str, child: str, parent: str) -> None:
    """Raise CallerError if a child cannot depend on a parent, with the first reason in the real server's order."""
    if child == parent:
        raise invalid_operation("A feature flag cannot depend on itself.")
    if children_of(tx, [child]):
        raise invalid_operation(f"{TRANSITIVE}other features depend on.")
    if parents_of(tx, parent):
        raise invalid_operation(f"{TRANSITIVE}has parent dependency.")
    owner = find(tx, parent)
    if owner is None or owner.archived_at is not None:
        raise invalid_operation(f"No active feature {parent} exists")
    if owner.project != project:
        raise invalid_operation("Parent and child features should be in the same project")


def check_owner(tx: Tx, project: str, child: str) -> None:
    """Raise CallerError (404) for a feature of another project. A missing feature passes, because nothing would change."""
    if find(tx, child) is not None:
        require(tx, project, child)


def invalid_operation(message: str) -> CallerError:
    return CallerError("InvalidOperationError", message)


def remove(tx: Tx, project: str, child: str, parent: str) -> None:
    """Remove a dependency of a feature; a missing one is not an error."""
    which = and_(dependencies.c.child == child, dependencies.c.parent == parent)
    held = parents_of(tx, child)
    gone = next((each for each in held if each["feature"] == parent), None)
    if gone is None:
        return
    tx.db.execute(delete(dependencies).where(which))
    sides: Json = {"before": gone | {"dependencies": held}, "data": {"dependencies": parents_of(tx, child)}}
    tx.record_event("feature-dependency-removed", project=project, feature=child, **sides)


def put_back(tx: Tx, project: str, child: str, wanted: Sequence[Mapping[str, Any]]) -> None:
    """Make a feature depend on these parents and no others, as an event holds them. Raises CallerError (403, 404)."""
    require(tx, project, child)
    before = parents_of(tx, child)
    for each in wanted:
        _check(tx, project, child, each["feature"])
    if not wanted:
        remove_dependencies(tx, project, [child])
        return
    replace(tx, {child: wanted})
    sides: Json = {
        "before": {"dependencies": before},
        "data": dict(wanted[0]) | {"dependencies": parents_of(tx, child)},
    }
    tx.record_event("feature-dependency-added", project=project, feature=child, **sides)


def remove_dependencies(tx: Tx, project: str, children: Sequence[str]) -> None:
    for chunk in chunks(children):
        query = select(dependencies.c.child).where(dependencies.c.child.in_(chunk)).distinct()
        before = parents_of_all(tx, sorted(tx.db.execute(query).scalars()))
        tx.db.execute(delete(dependencies).where(dependencies.c.child.in_(chunk)))
        for name, parents in before.items():
            tx.record_event("feature-dependencies-removed", project=project, feature=name, before={"dependencies": parents})


def possible_parents(tx: Tx, child: str) -> list[str]:
    """Return the features that a feature can depend on, sorted by name: active ones of its project without a parent."""
    row = find(tx, child)
    if row is None:
        return []
    depends = exists().where(dependencies.c.child == features.c.name)
    query = select(features.c.name).where(
        features.c.project == row.project, features.c.name != child, features.c.archived_at.is_(None), ~depends
    )
    return sorted(tx.db.execute(query).scalars())


def variants_of(tx: Tx, feature: str) -> list[str]:
    """Return the names of a feature's variants, in its environments and strategies."""
    found: set[str] = set()
    for table in (strategies, feature_environments):
        for variants in tx.db.execute(select(table.c.variants).where(table.c.feature == feature)).scalars():
            found.update(each["name"] for each in variants or [])
    return sorted(found)
