"""Plans what flags use and an import does not contain: strategy types, context fields, tag types and segments. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from flagsvc.cli.batch.changes import DEFAULT_CONSTRAINT
from flagsvc.cli.batch.client import quote_path_part
from flagsvc.cli.moving.steps import AdminRequest, Json, MoveStep

EMPTY_VALUES: Json = {"description": "", "project": None}
"""Fields that can be emptied, and the value to send for that."""


def take_theirs(theirs: Json, _: Json) -> Json:
    """Return the other server's version."""
    return theirs


def add_legal_values(theirs: Json, own: Json) -> Json:
    """Return the own context field with the legal values that only the other server has added."""
    values = list(own.get("legalValues") or ())
    known = {item["value"] for item in values}
    return {
        **own,
        "legalValues": [*values, *(each for each in theirs.get("legalValues") or () if each["value"] not in known)],
    }


def keep_own(_: Json, own: Json) -> Json:
    """Return the own server's version."""
    return own


@dataclass(frozen=True)
class ResourceKind:
    """One kind of resource: its title, its path in the admin API, and the fields that are written.

    `key` is the member of the answer with the list, empty if the answer is the list. `wanted` returns the new version from the
    other server's and the own one; `by` is the field in the path of a single resource.
    """

    title: str
    path: str
    key: str
    fields: tuple[str, ...]
    wanted: Callable[[Json, Json], Json]
    by: str = "name"

    def body(self, row: Mapping[str, Any], *, new: bool) -> Json:
        """Return the body for a resource. For an existing one whose path has the name, the body does not have it."""
        fields = [name for name in self.fields if new or name not in ("project", self.by) or self.by == "id"]
        return {name: row[name] for name in fields if row.get(name) is not None}

    def change(self, row: Json, own: Json) -> Json:
        """Return the body to change an existing resource. Removed fields are sent empty, because a server keeps absent fields."""
        lost = [
            name
            for name in EMPTY_VALUES
            if own.get(name) and not row.get(name) and (name != "project" or self.by == "id")
        ]
        return {**self.body(row, new=False), **{name: EMPTY_VALUES[name] for name in lost}}


KINDS = (
    ResourceKind(
        "strategy type", "/api/admin/strategies", "strategies", ("name", "description", "parameters"), take_theirs
    ),
    ResourceKind(
        "context field",
        "/api/admin/context",
        "",
        ("name", "description", "stickiness", "sortOrder", "legalValues", "project"),
        add_legal_values,
    ),
    ResourceKind("tag type", "/api/admin/tag-types", "tagTypes", ("name", "description", "icon", "color"), keep_own),
    ResourceKind(
        "segment",
        "/api/admin/segments",
        "segments",
        ("name", "description", "constraints", "project"),
        take_theirs,
        by="id",
    ),
)
"""In the order of the move: context fields and their legal values come before the segments that use them."""


def plan_steps(
    kind: ResourceKind, source: Iterable[Json], target: Iterable[Json], projects: Mapping[str, str]
) -> Iterator[MoveStep]:
    """Yield the steps that bring the resources of `source` to `target`.

    `projects` maps the moved projects to their target projects. Resources of other projects stay behind.
    """
    there = {row["name"]: row for row in target}
    for row in list_moved_rows(source, projects):
        own = there.get(row["name"])
        wanted = row if own is None else kind.wanted(row, own)
        later = deprecation_requests(kind, row, own or {})
        if own is None:
            made = AdminRequest("POST", kind.path, kind.body(wanted, new=True))
            yield MoveStep(kind.title, row["name"], "new", (made, *later))
        elif comparison_text(kind, wanted) != comparison_text(kind, own):
            where = f"{kind.path}/{quote_path_part(str(own[kind.by]))}"
            yield MoveStep(
                kind.title, row["name"], "changed", (AdminRequest("PUT", where, kind.change(wanted, own)), *later)
            )
        elif later:
            yield MoveStep(kind.title, row["name"], "changed", later)


def list_moved_rows(rows: Iterable[Json], projects: Mapping[str, str]) -> Iterator[Json]:
    """Yield the rows to move, with their target projects: not built-in, and of no project or a moved one."""
    for row in rows:
        project = row.get("project")
        if not row.get("editable", True):
            continue
        if not project:
            yield {**row, "project": None}
        elif project in projects:
            yield {**row, "project": projects[project]}


def deprecation_requests(kind: ResourceKind, row: Json, own: Json) -> tuple[AdminRequest, ...]:
    """Return the request that marks a strategy type as deprecated, if it is deprecated only on the source."""
    if not row.get("deprecated") or own.get("deprecated"):
        return ()
    return (AdminRequest("POST", f"{kind.path}/{quote_path_part(row['name'])}/deprecate"),)


def comparison_text(kind: ResourceKind, row: Mapping[str, Any]) -> str:
    """Return the written fields as a text for comparison. Empty and missing fields are equal."""
    parts = {name: row.get(name) or None for name in kind.fields}
    parts["constraints"] = [DEFAULT_CONSTRAINT | each for each in row.get("constraints") or ()]
    return json.dumps(parts, sort_keys=True)
