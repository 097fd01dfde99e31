"""Plans what flags use and an import does not contain: strategy types, context fields, tag types, segments and users. Pure.

Missing users are created, without a password. Where the target's API has no users, they stay behind.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from flagsvc.cli.batch.changes import DEFAULT_CONSTRAINT
from flagsvc.cli.batch.client import AdminClient, quote_path_part

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
        """Return the body for a resource. If the path of an existing resource has the name, the body has no name."""
        fields = [name for name in self.fields if new or name not in ("project", self.by) or self.by == "id"]
        return {name: row[name] for name in fields if row.get(name) is not None}

    def change(self, row: Json, own: Json) -> Json:
        """Return the body to change an existing resource. Removed fields are sent empty, because a server keeps absent fields."""
        lost = [name for name in EMPTY_VALUES if own.get(name) and not row.get(name) and (name != "project" or self.by == "id")]
        return {**self.body(row, new=False), **{name: EMPTY_VALUES[name] for name in lost}}


KINDS = (
    ResourceKind("strategy type", "/api/admin/strategies", "strategies", ("name", "description", "parameters"), take_theirs),
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
            yield MoveStep(kind.title, row["name"], "changed", (AdminRequest("PUT", where, kind.change(wanted, own)), *later))
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


PATH = "/api/admin/user-admin"


class UserPlan(NamedTuple):
    """The steps that create users, and the names of those that stay behind; None if the source does not list its users."""

    steps: tuple[MoveStep, ...]
    left: list[str] | None


def plan_users(source: AdminClient, target: AdminClient) -> UserPlan:
    """Return the plan for the users of `source`."""
    theirs, own = read_users(source.value(PATH)), read_users(target.value(PATH))
    if theirs is None:
        return UserPlan((), None)
    users, roles = theirs
    if own is None:
        return UserPlan((), [display_name(user) for user in users])
    there = {name for user in own[0] for name in names_of(user)}
    numbers = {name: number for number, name in own[1].items()}
    new = [(user, numbers.get(roles.get(user.get("rootRole"), ""))) for user in users if not names_of(user) & there]
    made = tuple(user_step(user, role) for user, role in new if role is not None)
    return UserPlan(made, [display_name(user) for user, role in new if role is None])


def read_users(answer: Any) -> tuple[list[Json], dict[Any, str]] | None:
    """Return users and the names of root roles by number; None if the answer does not list users."""
    if not isinstance(answer, dict) or not isinstance(answer.get("users"), list):
        return None
    return answer["users"], {role["id"]: role["name"] for role in answer.get("rootRoles") or ()}


def names_of(user: Json) -> set[str]:
    """Return the email and the username of a user, in lower case."""
    return {str(user[key]).lower() for key in ("email", "username") if user.get(key)}


def display_name(user: Json) -> str:
    return str(user.get("username") or user.get("email") or user.get("name") or user.get("id"))


def user_step(user: Json, role: Any) -> MoveStep:
    """Return the step that creates a user; no mail is sent."""
    body = {key: user[key] for key in ("username", "email", "name") if user.get(key)}
    request = AdminRequest("POST", PATH, {**body, "rootRole": role, "sendEmail": False})
    return MoveStep("user", display_name(user), "new", (request,))


Json = dict[str, Any]


class AdminRequest(NamedTuple):
    """One request of the admin API. With `may_exist`, a 409 is fine: what it adds is there already."""

    method: str
    path: str
    body: Json | None = None
    may_exist: bool = False


class MoveStep(NamedTuple):
    """One resource to create or change: its title and name, `new` or `changed`, and the requests for it."""

    title: str
    name: str
    kind: str
    requests: tuple[AdminRequest, ...]
