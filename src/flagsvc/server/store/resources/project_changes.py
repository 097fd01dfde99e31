"""Creates, changes and deletes projects (decision 0055)."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import delete, insert, select, update

from flagsvc.server.store.actors import ALL, DEFAULT_PROJECT
from flagsvc.server.store.checks import Json, invalid, make_detail, name_problem
from flagsvc.server.store.errors import CallerError, Detail, bad_data
from flagsvc.server.store.naming_pattern import pattern_problems
from flagsvc.server.store.resources import api_tokens, context_fields, feature_archive, projects, segments
from flagsvc.server.store.schema import context_fields as fields_table
from flagsvc.server.store.schema import environments, features, project_environments, project_roles, users
from flagsvc.server.store.schema import projects as table
from flagsvc.server.store.schema import segments as segments_table
from flagsvc.server.store.store import Tx
from flagsvc.server.store.texts import text_problem
from flagsvc.server.store.timestamps import read_time

MAX_TEXT_LENGTH = 255
"""UTF-16 code units of a name and of a stickiness; ours."""
MAX_SLUG_LENGTH = 90
COLUMNS = {
    "name": "name",
    "description": "description",
    "mode": "mode",
    "defaultStickiness": "default_stickiness",
    "featureLimit": "feature_limit",
}
"""Member of a body → the column that it sets."""
NAMING = {"pattern": "naming_pattern", "example": "naming_example", "description": "naming_description"}
OWNER = "owner"
ACTIVE_FLAGS = "You can not delete a project with active feature flags"


def create(tx: Tx, wanted: Mapping[str, Any]) -> Json:
    """Create a project and return it; the user who creates it owns it. Raises CallerError (400, 409).

    `wanted` has a name, and may have an id, else one is derived from the name. Without `environments` the project gets every
    environment that is on.
    """
    number = wanted.get("id") or _free_id(tx, wanted["name"])
    check_new_id(tx, number)
    row = {"mode": "open", "default_stickiness": "default"} | _checked_columns(wanted)
    names = _wanted_environments(tx, wanted.get("environments"))
    tx.db.execute(insert(table).values(id=number, created_at=tx.now, updated_at=tx.now, **row))
    if names:
        tx.db.execute(insert(project_environments), [{"project": number, "environment": name} for name in names])
    if tx.actor is not None and tx.actor.is_user:
        tx.db.execute(insert(project_roles).values(user_id=tx.actor.id, project=number, role=OWNER))
    created = describe(tx, number)
    tx.record_event("project-created", project=number, data=created)
    return created


def describe(tx: Tx, project: str) -> Json:
    """Return what can be set of a project. Raises CallerError (404)."""
    row = projects.find(tx, project)
    plain = {key: row._mapping[column] for key, column in COLUMNS.items()}
    naming = {key: row._mapping[column] for key, column in NAMING.items()}
    return {"id": row.id, **plain, "featureNaming": naming, "environments": projects.environments_of(tx, project)}


def check_new_id(tx: Tx, project: str) -> None:
    """Raise CallerError for an id that a new project cannot have: invalid (400) or in use (409)."""
    problem = name_problem(project, "id")
    if problem is not None:
        raise invalid(problem)
    if project == ALL:  # in the scope of a token
        raise invalid(make_detail('"id" must not be *, which stands for all projects', project))
    if _exists(tx, project):
        raise CallerError("NameExistsError", "A project with this id already exists.")


def _exists(tx: Tx, project: str) -> bool:
    return tx.db.execute(select(table.c.id).where(table.c.id == project)).first() is not None


def _free_id(tx: Tx, name: str) -> str:
    """Return an id made of a name, in lower case and URL-friendly, with a number if the id is in use."""
    plain = unicodedata.normalize("NFKD", name.casefold()).encode("ascii", "ignore").decode()
    slug = re.sub("[^a-z0-9]+", "-", plain).strip("-")[:MAX_SLUG_LENGTH] or "project"
    names = itertools.chain([slug], (f"{slug}-{number}" for number in itertools.count(1)))
    return next(each for each in names if not _exists(tx, each))


def _checked_columns(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that a body sets. Raises CallerError (400) for an empty or too long text."""
    texts = [key for key in ("name", "defaultStickiness") if key in wanted]
    problems: Iterable[Detail | None] = (text_problem(wanted[key], key, longest=MAX_TEXT_LENGTH) for key in texts)
    found = [problem for problem in problems if problem is not None]
    if found:
        raise invalid(*found)
    return {column: wanted[key] for key, column in COLUMNS.items() if key in wanted}


def _wanted_environments(tx: Tx, names: Sequence[str] | None) -> list[str]:
    """Return the environments of a new project. Raises CallerError (400) with those that do not exist."""
    if names is None:
        return list(tx.db.execute(select(environments.c.name).where(environments.c.enabled)).scalars())
    known = set(tx.db.execute(select(environments.c.name)).scalars())
    unknown = ", ".join(f"'{name}'" for name in names if name not in known)
    if unknown:
        raise bad_data(f"These environments do not exist: {unknown}")
    return list(dict.fromkeys(names))


def change(tx: Tx, project: str, wanted: Mapping[str, Any]) -> None:
    """Change what is present of a project's texts, mode and limit. Raises CallerError (400, 404)."""
    _write(tx, project, _checked_columns(wanted))


def change_settings(tx: Tx, project: str, wanted: Mapping[str, Any]) -> None:
    """Change what is present of a project's mode and naming pattern. Raises CallerError (400, 404)."""
    columns = {"mode": wanted["mode"]} if "mode" in wanted else {}
    naming = wanted.get("featureNaming")
    if naming is not None:
        problems = pattern_problems(naming.get("pattern"), naming.get("example"), naming.get("description"))
        if problems:
            details = [{"message": each} for each in problems]
            raise CallerError("BadDataError", "The naming pattern, or what belongs to it, is invalid", details)
        columns |= {column: naming.get(key) or None for key, column in NAMING.items()}
    _write(tx, project, columns)


def _write(tx: Tx, project: str, columns: Mapping[str, Any]) -> None:
    before = describe(tx, project)
    if not columns:
        return
    tx.db.execute(update(table).where(table.c.id == project).values(updated_at=tx.now, **columns))
    after = describe(tx, project)
    if after != before:
        tx.record_event("project-updated", project=project, before=before, data=after)


def remove(tx: Tx, project: str) -> None:
    """Delete a project with its archived features, its segments, context fields and tokens.

    Raises CallerError: 403 for the default project and for one with active features, 404, 409 if other projects use its segments or
    context fields.
    """
    before = find_whole(tx, project)
    if project == DEFAULT_PROJECT:
        raise CallerError("InvalidOperationError", "You can not delete the default project!")
    rows = tx.db.execute(select(features.c.name, features.c.archived_at).where(features.c.project == project)).all()
    if any(row.archived_at is None for row in rows):
        raise CallerError("InvalidOperationError", ACTIVE_FLAGS)
    feature_archive.remove_all(tx, project, [row.name for row in rows])
    _remove_segments_and_fields(tx, project)
    api_tokens.remove_project(tx, project)
    tx.db.execute(delete(table).where(table.c.id == project))
    tx.record_event("project-deleted", project=project, before=before)


def find_whole(tx: Tx, project: str) -> Json:
    """Return a project with the roles in it, as the event of its end holds it. Raises CallerError (404)."""
    row = projects.find(tx, project)
    columns = project_roles.c.user_id, project_roles.c.role
    query = select(*columns).where(project_roles.c.project == project).order_by(*columns)
    roles = [{"userId": user, "role": role} for user, role in tx.db.execute(query)]
    return projects.settings_to_json(tx, row) | {"roles": roles}


def belongings_of(tx: Tx, project: str, creator: int | None) -> list[str]:
    """Return what kinds of things a project has that its creation did not give it; `creator` is the user who created it."""
    roles = project_roles.c
    others = roles.user_id != creator if creator is not None else roles.user_id.is_not(None)
    queries = {
        "flags": select(features.c.name).where(features.c.project == project),
        "segments": select(segments_table.c.id).where(segments_table.c.project == project),
        "context fields": select(fields_table.c.name).where(fields_table.c.project == project),
        "members": select(roles.user_id).where(roles.project == project, others),
    }
    found = [word for word, query in queries.items() if tx.db.execute(query.limit(1)).first() is not None]
    return found + (["tokens"] if api_tokens.reads_project(tx, project) else [])


def put_back(tx: Tx, held: Mapping[str, Any]) -> None:
    """Make a project what an event holds: it is changed, or created with its environments and the roles of users who exist."""
    project = held["id"]
    columns = {column: held[key] for key, column in COLUMNS.items()}
    columns |= {column: held["featureNaming"][key] for key, column in NAMING.items()}
    if _exists(tx, project):
        _write(tx, project, columns)
        return
    times = {"created_at": read_time(held["createdAt"]), "archived_at": read_time(held["archivedAt"])}
    tx.db.execute(insert(table).values(id=project, updated_at=tx.now, **times, **columns))
    names = set(tx.db.execute(select(environments.c.name)).scalars())
    rows = [{"project": project, "environment": name} for name in held["environments"] if name in names]
    if rows:
        tx.db.execute(insert(project_environments), rows)
    _put_back_roles(tx, project, held["roles"])
    tx.record_event("project-created", project=project, data=find_whole(tx, project))


def _put_back_roles(tx: Tx, project: str, roles: Sequence[Mapping[str, Any]]) -> None:
    there = set(tx.db.execute(select(users.c.id).where(users.c.id.in_([each["userId"] for each in roles]))).scalars())
    rows = [{"user_id": each["userId"], "project": project, "role": each["role"]} for each in roles]
    known = [row for row in rows if row["user_id"] in there]
    if known:
        tx.db.execute(insert(project_roles), known)


def _remove_segments_and_fields(tx: Tx, project: str) -> None:
    own = select(segments_table.c.id, segments_table.c.name).where(segments_table.c.project == project)
    for number, name in tx.db.execute(own).all():
        if not segments.remove(tx, number):
            raise CallerError("ConflictError", f"The segment {name} of the project is used by flags of other projects")
    fields = tx.db.execute(select(fields_table.c.name).where(fields_table.c.project == project)).scalars().all()
    context_fields.remove_all(tx, fields)
