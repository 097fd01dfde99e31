"""Creates, changes and deletes projects (decision 0024)."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import insert, select

from flagsvc.server.store.actors import ALL, DEFAULT_PROJECT
from flagsvc.server.store.checks import Json, invalid, make_detail, name_problem, raise_problems
from flagsvc.server.store.errors import CallerError, bad_data
from flagsvc.server.store.members import columns_of
from flagsvc.server.store.naming_pattern import pattern_problems
from flagsvc.server.store.resources import api_tokens, context_fields, feature_archive, projects, segments
from flagsvc.server.store.schema import context_fields as fields_table
from flagsvc.server.store.schema import environments, features, project_environments, project_roles, users
from flagsvc.server.store.schema import projects as table
from flagsvc.server.store.schema import segments as segments_table
from flagsvc.server.store.store import Tx
from flagsvc.server.store.texts import text_problem
from flagsvc.server.store.timestamps import read_time
from flagsvc.server.store.writer import Whole, Writer

MAX_TEXT_LENGTH = 255
"""UTF-16 code units of a name and of a stickiness; ours."""
MAX_SLUG_LENGTH = 90
MEMBERS = ("name", "description", "mode", "defaultStickiness", "featureLimit")
"""The members of a project that a body sets."""
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
    members = {"id": number} | _checked_members(wanted)
    members |= {"environments": _wanted_environments(tx, wanted.get("environments"))}
    owners = [{"userId": tx.actor.id, "role": OWNER}] if tx.actor is not None and tx.actor.is_user else []
    return describe_whole(WRITER.put(tx, members | {"roles": owners})[0])


def describe(tx: Tx, project: str) -> Json:
    """Return what can be set of a project. Raises CallerError (404)."""
    return describe_whole(WRITER.require(tx, project))


def describe_whole(whole: Whole) -> Json:
    """Return what can be set of a project."""
    return {name: whole[name] for name in ("id", *MEMBERS, "featureNaming", "environments")}


def check_new_id(tx: Tx, project: str) -> None:
    """Raise CallerError for an id that a new project cannot have: invalid (400) or in use (409)."""
    raise_problems(name_problem(project, "id"))
    if project == ALL:  # in the scope of a token
        raise invalid(make_detail('"id" must not be *, which stands for all projects', project))
    if WRITER.find(tx, project) is not None:
        raise CallerError("NameExistsError", "A project with this id already exists.")


def _free_id(tx: Tx, name: str) -> str:
    """Return an id made of a name, in lower case and URL-friendly, with a number if the id is in use."""
    plain = unicodedata.normalize("NFKD", name.casefold()).encode("ascii", "ignore").decode()
    slug = re.sub("[^a-z0-9]+", "-", plain).strip("-")[:MAX_SLUG_LENGTH] or "project"
    names = itertools.chain([slug], (f"{slug}-{number}" for number in itertools.count(1)))
    return next(each for each in names if WRITER.find(tx, each) is None)


def _checked_members(wanted: Mapping[str, Any]) -> Json:
    """Return the members that a body sets. Raises CallerError (400) for an empty or too long text."""
    texts = [key for key in ("name", "defaultStickiness") if key in wanted]
    raise_problems(*(text_problem(wanted[key], key, longest=MAX_TEXT_LENGTH) for key in texts))
    return {name: wanted[name] for name in MEMBERS if name in wanted}


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
    _change(tx, project, _checked_members(wanted))


def change_settings(tx: Tx, project: str, wanted: Mapping[str, Any]) -> None:
    """Change what is present of a project's mode and naming pattern. Raises CallerError (400, 404)."""
    members: Json = {"mode": wanted["mode"]} if "mode" in wanted else {}
    naming = wanted.get("featureNaming")
    if naming is not None:
        problems = pattern_problems(naming.get("pattern"), naming.get("example"), naming.get("description"))
        if problems:
            details = [{"message": each} for each in problems]
            raise CallerError("BadDataError", "The naming pattern, or what belongs to it, is invalid", details)
        members |= {"featureNaming": {name: naming.get(name) or None for name in NAMING}}
    _change(tx, project, members)


def _change(tx: Tx, project: str, members: Mapping[str, Any]) -> None:
    WRITER.require(tx, project)
    if members:
        WRITER.put(tx, {**members, "id": project})


def remove(tx: Tx, *names: str) -> None:
    """Delete projects with their archived features, their segments, context fields and tokens.

    Raises CallerError: 403 for the default project and for one with active features, 404, 409 if other projects use its segments or
    context fields.
    """
    for project in names:
        _remove_features(tx, project)
        _remove_segments_and_fields(tx, project)
        api_tokens.remove_project(tx, project)
    WRITER.remove(tx, *names)


def _remove_features(tx: Tx, project: str) -> None:
    """Delete the features of a project to delete. Raises CallerError (403, 404)."""
    WRITER.require(tx, project)
    if project == DEFAULT_PROJECT:
        raise CallerError("InvalidOperationError", "You can not delete the default project!")
    rows = tx.db.execute(select(features.c.name, features.c.archived_at).where(features.c.project == project)).all()
    if any(row.archived_at is None for row in rows):
        raise CallerError("InvalidOperationError", ACTIVE_FLAGS)
    feature_archive.remove_all(tx, project, [row.name for row in rows])


def _roles(tx: Tx, names: Sequence[str]) -> dict[str, Json]:
    column = project_roles.c
    query = select(column.project, column.user_id, column.role).where(column.project.in_(names))
    found: dict[str, list[Json]] = {name: [] for name in names}
    for project, user, role in tx.db.execute(query.order_by(column.user_id, column.role)):
        found[project].append({"userId": user, "role": role})
    return {name: {"roles": roles} for name, roles in found.items()}


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


def _columns(tx: Tx, whole: Whole) -> Json:
    naming = {column: whole["featureNaming"][name] for name, column in NAMING.items()}
    return columns_of(whole, MEMBERS) | naming | {"archived_at": read_time(whole["archivedAt"]), "updated_at": tx.now}


def _bring(tx: Tx, wholes: Sequence[Whole]) -> None:
    """Give new projects those of their environments that exist, and the roles of users who exist."""
    places = set(tx.db.execute(select(environments.c.name)).scalars())
    people = {each["userId"] for whole in wholes for each in whole.get("roles", ())}
    known = set(tx.db.execute(select(users.c.id).where(users.c.id.in_(people))).scalars())
    links = [
        {"project": whole["id"], "environment": name}
        for whole in wholes
        for name in dict.fromkeys(whole["environments"])
        if name in places
    ]
    roles = [
        {"project": whole["id"], "user_id": each["userId"], "role": each["role"]}
        for whole in wholes
        for each in whole.get("roles", ())
        if each["userId"] in known
    ]
    for rows, belonging in ((links, project_environments), (roles, project_roles)):
        if rows:
            tx.db.execute(insert(belonging), rows)


def _remove_segments_and_fields(tx: Tx, project: str) -> None:
    own = select(segments_table.c.id, segments_table.c.name).where(segments_table.c.project == project)
    for number, name in tx.db.execute(own).all():
        if not segments.remove(tx, number):
            raise CallerError("ConflictError", f"The segment {name} of the project is used by flags of other projects")
    fields = tx.db.execute(select(fields_table.c.name).where(fields_table.c.project == project)).scalars().all()
    context_fields.remove(tx, *fields)


NEW: Json = {
    "description": None,
    "mode": "open",
    "defaultStickiness": "default",
    "featureLimit": None,
    "featureNaming": dict.fromkeys(NAMING),
    "archivedAt": None,
}
"""A new project, without its id, name and environments."""
WRITER = Writer(
    table=table,
    show=lambda tx, rows: [projects.settings_to_json(tx, row) for row in rows],
    columns=_columns,
    created="project-created",
    updated="project-updated",
    deleted="project-deleted",
    unknown=projects.NO_PROJECT,
    place=lambda whole: {"project": whole["id"]},
    more=_roles,
    bring=_bring,
    new=NEW,
    tell=describe_whole,
)
