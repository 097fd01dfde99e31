"""Creates and changes features, and checks names (the real server's …/features; import validation 6.3, step 1)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Row, bindparam, insert, select, update

from flagsvc.server.shapes.features import DESCRIPTION
from flagsvc.server.store.checks import Json, check_name, invalid, make_detail, name_problem, raise_problems
from flagsvc.server.store.constraints import limit_exceeded
from flagsvc.server.store.errors import CallerError, bad_data, not_found
from flagsvc.server.store.members import columns_of, shown
from flagsvc.server.store.naming_pattern import NamingPattern
from flagsvc.server.store.patch import apply_patch
from flagsvc.server.store.resources.tag_types import check_types_exist
from flagsvc.server.store.schema import (
    feature_environments,
    feature_tags,
    features,
    project_environments,
    projects,
    tags,
)
from flagsvc.server.store.store import Tx
from flagsvc.server.store.timestamps import read_time
from flagsvc.server.store.upsert import chunks, count_rows, rows_in, upsert

MAX_FEATURES = 5000
BOOLEAN_TEXTS = {"true": True, "false": False}
METADATA = (
    *("name", "description", "type", "project", "stale", "createdAt", "lastSeenAt"),
    *("impressionData", "archivedAt", "archived"),
)
"""The members of a feature as the real server answers a creation or change; `archivedAt` only of an archived feature."""
OFF: Json = {"enabled": False, "variants": []}
"""The state of a feature in an environment that it is new in."""
NO_FLAG = "No feature flag found"
VARIANTS_NOT_HERE = "Changing variants is done via PATCH operation to /api/admin/projects/:project/features/:feature/variants"


def find(tx: Tx, name: str) -> Row[Any] | None:
    """Return a feature's row, archived or not; None without one."""
    return tx.db.execute(select(features).where(features.c.name == name)).first()


def has_any(tx: Tx) -> bool:
    return tx.db.execute(select(features.c.name).limit(1)).first() is not None


def find_all(tx: Tx, names: Sequence[str]) -> list[Row[Any]]:
    """Return the rows of the features of these names, archived or not, in order of creation."""
    return sorted(rows_in(tx, select(features), features.c.name, names), key=lambda row: row.position)


def require(tx: Tx, project: str, name: str) -> Row[Any]:
    """Return a feature's row, archived or not. Raises CallerError (404) if the project does not have it."""
    row = find(tx, name)
    if row is None or row.project != project:
        raise no_feature(name, project, None if row is None else row.project)
    return row


def no_feature(name: str, project: str, elsewhere: str | None) -> CallerError:
    """Return the 404 for a feature that a project does not have. `elsewhere` is the project that has the feature."""
    end = "." if elsewhere is None else f', but there\'s a feature with that name in project "{elsewhere}"'
    return not_found(f'There\'s no feature named "{name}" in project "{project}"{end}')


def require_project(project: str, rows: Sequence[Row[Any]]) -> None:
    """Raise CallerError (403) for features of another project."""
    others = dict.fromkeys(row.project for row in rows if row.project != project)
    if others:
        raise CallerError(
            "InvalidOperationError",
            "The operation could not be completed. The features exist, but the provided project ids "
            f'("{",".join(others)}") does not match the project provided in request URL ("{project}").',
        )


def require_active_project(tx: Tx, project: str) -> None:
    """Raise CallerError (404) for a project that does not exist or is archived."""
    active = projects.c.id == project, projects.c.archived_at.is_(None)
    if tx.db.execute(select(projects.c.id).where(*active)).first() is None:
        raise not_active(project)


def not_active(project: str) -> CallerError:
    """Return the 404 for a project that does not exist or is archived."""
    return not_found(f"Active project with id {project} does not exist")


def metadata(row: Row[Any]) -> Json:
    """Return the METADATA of a feature; its lastSeenAt is always null."""
    is_archived = row.archived_at is not None
    return {
        **shown(row, "name", "description", "type", "project", "stale", "createdAt"),
        "lastSeenAt": None,
        **shown(row, "impressionData", *(("archivedAt",) if is_archived else ())),
        "archived": is_archived,
    }


def check_unused(tx: Tx, names: Sequence[str]) -> None:
    """Raise CallerError (409) for the name of an existing feature, archived or not."""
    for row in find_all(tx, names):
        raise CallerError(
            "NameExistsError", f"{'A' if row.archived_at is None else 'An archived'} flag with that name already exists"
        )


def check_new_name(tx: Tx, name: str, project: str | None) -> None:
    """Raise CallerError if a new feature cannot have a name: not URL-friendly, in use, or against the project's pattern."""
    check_name(name)
    check_unused(tx, [name])
    if project:
        check_pattern(tx, project, name)


def check_pattern(tx: Tx, project: str, name: str) -> None:
    """Raise CallerError (400) for a name that does not match the naming pattern of its project, if it has one."""
    row = tx.db.execute(select(projects).where(projects.c.id == project)).first()
    if row is not None:
        NamingPattern(row.naming_pattern, row.naming_example, row.naming_description).check(name)


def check_project_limit(tx: Tx, project: str, more: int = 1) -> None:
    """Raise CallerError (403) if a project cannot have more active features: so many pass its limit."""
    limit = tx.db.execute(select(projects.c.feature_limit).where(projects.c.id == project)).scalar()
    active = features.c.archived_at.is_(None)
    if limit is not None and more and count_rows(tx, features, features.c.project == project, active) + more > limit:
        raise CallerError("InvalidOperationError", "You have reached the maximum number of feature flags for this project.")


def create(tx: Tx, project: str, wanted: Mapping[str, Any]) -> Json:
    """Create a feature in every environment of its project, and return it.

    `wanted` has a name, and may have description, type, impressionData and tags. Raises CallerError.
    """
    name = wanted["name"]
    check_new_name(tx, name, project)
    check_project_limit(tx, project)
    if count_rows(tx, features, features.c.archived_at.is_(None)) >= MAX_FEATURES:
        raise limit_exceeded("feature flag", MAX_FEATURES)
    require_active_project(tx, project)
    given_members = {key: wanted[key] for key in ("name", *DESCRIPTION) if key in wanted}
    insert_all(tx, [given_members | {"project": project, "description": wanted.get("description") or None}])
    given = sorted({(each["type"], each["value"]) for each in wanted.get("tags") or []})
    add_tags(tx, {name: given})
    row = find(tx, name)
    assert row is not None
    tags_given = [{"type": kind, "value": value} for kind, value in given]
    tx.record_event("feature-created", project=project, feature=name, data=metadata(row) | {"tags": tags_given})
    return metadata(row)


def insert_all(tx: Tx, wanted: Sequence[Mapping[str, Any]]) -> None:
    """Insert features, each in every environment of its project, and record nothing.

    Each has a name and a project, and may have other members as events hold them. Without them it is new, of the actor, and off.
    """
    if not wanted:
        return
    by = {"createdBy": None, "createdById": None} if tx.actor is None else {"createdBy": tx.actor.name, "createdById": tx.actor.id}
    positions = tx.positions(features, len(wanted))
    rows = [_columns(tx, {**DESCRIPTION, **by, "position": at, **each}) for at, each in zip(positions, wanted, strict=True)]
    tx.db.execute(insert(features), rows)
    places: dict[str, list[str]] = defaultdict(list)
    link = project_environments.c
    query = select(link.project, link.environment)
    for project, name in rows_in(tx, query, link.project, (each["project"] for each in wanted)):
        places[project].append(name)
    states = [
        {"feature": each["name"], "environment": name, **each.get("environments", {}).get(name, OFF)}
        for each in wanted
        for name in places[each["project"]]
    ]
    if states:
        tx.db.execute(insert(feature_environments), states)


def _columns(tx: Tx, whole: Mapping[str, Any]) -> Json:
    created = read_time(whole["createdAt"]) if "createdAt" in whole else tx.now
    archived = read_time(whole["archivedAt"]) if "archivedAt" in whole else (tx.now if whole.get("archived") else None)
    times = {"created_at": created, "archived_at": archived}
    return columns_of(whole, (*DESCRIPTION, "name", "project", "position", "createdBy", "createdById")) | times


def add_tags(tx: Tx, wanted: Mapping[str, Sequence[tuple[str, str]]]) -> None:
    """Add tags to new features, pairs of type and value by feature, and create those that do not exist.

    Raises CallerError (400) for an unknown type.
    """
    create_tags(tx, [pair for each in wanted.values() for pair in each])
    now = {"created_at": tx.now, "created_by_id": None if tx.actor is None else tx.actor.id}
    given = [(name, *pair) for name, each in wanted.items() for pair in each]
    rows = [{"feature": name, "type": kind, "value": value} | now for name, kind, value in given]
    upsert(tx, feature_tags, rows, [])


def create_tags(tx: Tx, wanted: Iterable[tuple[str, str]]) -> None:
    """Create those tags that do not exist: type and value. Raises CallerError (400) for an unknown type."""
    pairs = list(dict.fromkeys(wanted))
    check_types_exist(tx, (kind for kind, _ in pairs))
    there = rows_in(tx, select(tags.c.type, tags.c.value), tags.c.value, (value for _, value in pairs))
    known = {(kind, value) for kind, value in there}
    upsert(tx, tags, [{"type": kind, "value": value, "created_at": tx.now} for kind, value in pairs], [])
    for kind, value in pairs:
        if (kind, value) not in known:
            tx.record_event("tag-created", data={"type": kind, "value": value})


def replace(tx: Tx, project: str, name: str, wanted: Mapping[str, Any]) -> Json:
    """Replace the description of a feature; absent members get their defaults. Raises CallerError (400, 404)."""
    if wanted.get("name") and wanted["name"] != name:
        raise bad_data("Cannot change name of feature flag")
    return change(tx, project, name, {**wanted, "name": name})


def patch(tx: Tx, project: str, name: str, operations: Sequence[Mapping[str, Any]]) -> Json:
    """Change the description of a feature by a JSON Patch. Raises CallerError (400, 403, 404)."""
    before = find(tx, name)
    if before is None:
        raise not_found(NO_FLAG)
    if any("/variants" in each["path"] for each in operations):
        raise CallerError("OperationDeniedError", VARIANTS_NOT_HERE)
    wanted = apply_patch(metadata(before), operations)
    if not isinstance(wanted, dict):
        raise invalid(make_detail('"value" must be of type object', wanted))
    after = change(tx, project, name, wanted)
    if after["stale"] != before.stale:
        record_stale(tx, project, name, stale=after["stale"])
    return after


def change(tx: Tx, project: str, name: str, wanted: Mapping[str, Any]) -> Json:
    """Store the description of a feature and return it. Raises CallerError (400, 404)."""
    before = require(tx, project, name)
    values = feature_columns(wanted)
    archived = values.pop("archived")
    values["archived_at"] = (before.archived_at or tx.now) if archived else None
    return metadata(describe(tx, {name: values})[0])


def put_back(tx: Tx, wanted: Mapping[str, Mapping[str, Any]]) -> None:
    """Describe features as events hold them, by name; a member that an old event lacks stays. Raises CallerError (404)."""
    there = {row.name: row for row in find_all(tx, list(wanted))}
    for name, held in wanted.items():
        project = None if name not in there else there[name].project
        if project != held["project"]:
            raise no_feature(name, held["project"], project)
    columns = {
        name: columns_of({**shown(there[name], *DESCRIPTION), **held}, DESCRIPTION)
        | {"archived_at": read_time(held.get("archivedAt"))}
        for name, held in wanted.items()
    }
    describe(tx, columns)


def describe(tx: Tx, wanted: Mapping[str, Mapping[str, Any]]) -> list[Row[Any]]:
    """Set the columns that describe features, by name, and return the rows of the features, in order of creation."""
    before = {row.name: row for row in find_all(tx, list(wanted))}
    rows = [{**columns, "which": name} for name, columns in wanted.items()]
    if rows:
        given: dict[str, Any] = {column: bindparam(column) for column in rows[0] if column != "which"}
        tx.db.execute(update(features).where(features.c.name == bindparam("which")).values(given), rows)
    after = find_all(tx, list(wanted))
    for row in after:
        sides: Json = {"before": metadata(before[row.name]), "data": metadata(row)}
        tx.record_event("feature-metadata-updated", project=row.project, feature=row.name, **sides)
    return after


def feature_columns(wanted: Mapping[str, Any]) -> Json:
    """Return the columns that describe a feature, with defaults for absent members. Raises CallerError (400) with all problems."""
    problems = [problem for problem in (_name_problem(wanted),) if problem]
    values = {
        "stale": _read_boolean(wanted, "stale", problems),
        "archived": _read_boolean(wanted, "archived", problems),
        "type": _read_type(wanted, problems),
        "description": _read_description(wanted, problems),
        "impression_data": _read_boolean(wanted, "impressionData", problems),
    }
    raise_problems(*problems)
    return values


def _name_problem(wanted: Mapping[str, Any]) -> dict[str, str] | None:
    if "name" not in wanted:
        return make_detail('"name" is required')
    name = wanted["name"]
    return name_problem(name) if isinstance(name, str) else make_detail('"name" must be a string', name)


def _read_boolean(wanted: Mapping[str, Any], name: str, problems: list[dict[str, str]]) -> bool:
    value = wanted.get(name, False)
    if isinstance(value, str):
        value = BOOLEAN_TEXTS.get(value.strip().lower(), value)
    if not isinstance(value, bool):
        problems.append(make_detail(f'"{name}" must be a boolean', value))
    return value is True


def _read_type(wanted: Mapping[str, Any], problems: list[dict[str, str]]) -> Any:
    value = wanted.get("type", DESCRIPTION["type"])
    if not isinstance(value, str):
        problems.append(make_detail('"type" must be a string', value))
    elif not value:
        problems.append(make_detail('"type" is not allowed to be empty'))
    return value


def _read_description(wanted: Mapping[str, Any], problems: list[dict[str, str]]) -> Any:
    value = wanted.get("description")
    if value is not None and not isinstance(value, str):
        problems.append(make_detail('"description" must be a string', value))
    return value or None


def set_stale(tx: Tx, project: str, names: Sequence[str], *, stale: bool) -> None:
    """Mark features as stale or not; unknown names are ignored. Raises CallerError (403) for features of another project."""
    rows = find_all(tx, names)
    require_project(project, rows)
    changed = [row.name for row in rows if row.stale != stale]
    for chunk in chunks(changed):
        tx.db.execute(update(features).where(features.c.name.in_(chunk)).values(stale=stale))
    for name in changed:
        record_stale(tx, project, name, stale=stale)


def record_stale(tx: Tx, project: str, name: str, *, stale: bool) -> None:
    """Record the event that a feature became stale, or is no longer."""
    kind = "feature-stale-on" if stale else "feature-stale-off"
    tx.record_event(kind, project=project, feature=name, before={"stale": not stale}, data={"stale": stale})
