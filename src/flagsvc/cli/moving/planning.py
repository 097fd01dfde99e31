"""Makes the plan of a move. It reads both servers and changes nothing.

Flags are moved in pieces: requests that are each below the server's body limit, parents before their children.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from flagsvc.cli.batch.changes import Change, ImportChanges, compare
from flagsvc.cli.batch.checking import read_environments
from flagsvc.cli.batch.client import AdminClient, encode_json, quote_path_part
from flagsvc.cli.export import OrderedExport, export_in_order
from flagsvc.cli.moving.resources import KINDS, AdminRequest, Json, MoveStep, plan_steps, plan_users
from flagsvc.core.errors import ConfigurationError, FlagsvcError
from flagsvc.settings.kinds import printable

BODY_LIMIT = 512_000
"""A flag server's default limit of a body, in bytes; a piece has fewer."""
MAX_FLAGS = 100
"""The most flags of one piece: a server writes it in one transaction, and answers only at the end."""
FLAG_FIELDS = {
    "features": "name", "featureStrategies": "featureName", "featureEnvironments": "name", "featureTags": "featureName",
    "dependencies": "feature", "links": "feature",
}  # fmt: skip
"""Lists of a data set → the field that says of which flag an item is."""


class TooLargeError(FlagsvcError):
    """A single flag exceeds the server's limit."""


class Piece(NamedTuple):
    """The names of some flags, and the request that imports them."""

    names: list[str]
    request: Json


@dataclass
class RequestParts:
    """A request, split into the items of each flag."""

    request: Json
    flags: dict[str, Json] = field(default_factory=dict)
    segments: dict[Any, Json] = field(default_factory=dict)
    ascii_only: bool = False
    """Whether the request escapes all characters that are not ASCII."""

    def request_for(self, names: list[str]) -> Json:
        """Return the request that imports some flags, with their segments."""
        data: Json = {key: [item for name in names for item in self.flags[name][key]] for key in FLAG_FIELDS}
        used = {id_ for name in names for id_ in self.uses(name)}
        segments = [item for id_, item in self.segments.items() if id_ in used]
        return self.request | {"data": data | {"segments": segments, "contextFields": [], "tagTypes": []}}

    def uses(self, name: str) -> set[Any]:
        """Return the ids of the segments that a flag uses."""
        return {id_ for item in self.flags[name]["featureStrategies"] for id_ in item.get("segments") or ()}

    def size(self, items: Iterable[Json]) -> int:
        """Return the bytes of items of a list, each with its comma."""
        return sum(len(encode_ascii(each) if self.ascii_only else encode_json(each)) + 1 for each in items)


def split_request(request: Json, names: Iterable[str], limit: int = BODY_LIMIT) -> Iterator[Piece]:
    """Yield requests that import these flags of a data set, each of fewer than `limit` bytes.

    Each request has whole flags, with their entries and segments. A parent is in the piece of its child or in an earlier piece.
    Context fields and tag types are left out, because the server already has them. Raises TooLargeError.
    """
    parts = split_by_flag(request)
    some: list[str] = []
    used: set[Any] = set()
    size = empty = len(encode_json(parts.request_for([])))
    for name in parents_first(request["data"], names):
        own = parts.size(item for items in parts.flags[name].values() for item in items)
        shared = parts.size(parts.segments[id_] for id_ in parts.uses(name) - used)
        if some and (size + own + shared >= limit or len(some) == MAX_FLAGS):
            yield Piece(some, parts.request_for(some))
            some, used, size = [], set(), empty
            shared = parts.size(parts.segments[id_] for id_ in parts.uses(name))
        size += own + shared
        if size >= limit:
            raise TooLargeError(f"the request for flag `{name}` has {size} bytes; the server takes fewer than {limit}")
        some.append(name)
        used |= parts.uses(name)
    if some:
        yield Piece(some, parts.request_for(some))


def without_flags(piece: Piece, names: Container[str]) -> Piece:
    left = [name for name in piece.names if name not in names]
    return piece if left == piece.names else Piece(left, split_by_flag(piece.request).request_for(left))


def split_by_flag(request: Json) -> RequestParts:
    data = request["data"]
    names = [item["name"] for item in data["features"]]
    parts = RequestParts(request, {name: {key: [] for key in FLAG_FIELDS} for name in names})
    for key, flag in FLAG_FIELDS.items():
        for item in data.get(key) or ():
            if item.get(flag) in parts.flags:
                parts.flags[item[flag]][key].append(item)
    parts.segments = {item["id"]: item for item in data.get("segments") or ()}
    parts.ascii_only = encode_json(data).isascii()
    return parts


def encode_ascii(value: object) -> str:
    """Return compact JSON, with escapes for all characters that are not ASCII."""
    return json.dumps(value, separators=(",", ":"))


def parents_first(data: Mapping[str, Any], names: Iterable[str]) -> Iterator[str]:
    """Yield names of flags, parents before their children, otherwise in their order."""
    asked = {item["feature"]: [parent["feature"] for parent in item["dependencies"]] for item in data.get("dependencies") or ()}
    left = dict.fromkeys(names)
    for name in list(left):
        stack = {name: iter(asked.get(name, ()))}
        while stack:
            parents = next(reversed(stack.values()))
            waiting = next((parent for parent in parents if parent in left and parent not in stack), None)
            if waiting is not None:
                stack[waiting] = iter(asked.get(waiting, ()))
                continue
            done, _ = stack.popitem()
            if done in left:
                del left[done]
                yield done


PROJECTS, ENVIRONMENTS = "/api/admin/projects", "/api/admin/environments"
NAMES_PER_REQUEST = 1000
"""The most names of flags in one request."""
IMPORTED_KINDS = ("new", "changed")


class MoveRequest(NamedTuple):
    """What to move: projects and environments by name, empty for all; and the one project that gets all flags, if given."""

    projects: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    to_project: str | None = None


class ProjectEnvironment(NamedTuple):
    """The flags of a project in an environment: their changes, and the requests that import the changed ones."""

    project: str
    environment: str
    found: ImportChanges
    pieces: list[Piece]

    def without(self, names: Container[str]) -> ProjectEnvironment:
        """Return the place without some of its flags."""
        flags = tuple(change for change in self.found.flags if change.name not in names)
        pieces = [piece for piece in (without_flags(each, names) for each in self.pieces) if piece.names]
        return self._replace(found=self.found._replace(flags=flags), pieces=pieces)


@dataclass
class MovePlan:
    """The whole plan, in order: single requests, flags to revive by project, imports, flags to archive by project, users.

    `left` names what stays behind.
    """

    steps: list[MoveStep] = field(default_factory=list)
    revive: dict[str, list[str]] = field(default_factory=dict)
    places: list[ProjectEnvironment] = field(default_factory=list)
    archive: dict[str, list[str]] = field(default_factory=dict)
    users: list[MoveStep] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        return not self.steps and not self.users and not any(place.pieces for place in self.places)


def make_plan(source: AdminClient, target: AdminClient, requested: MoveRequest) -> MovePlan:
    """Return the plan that moves what was requested from `source` to `target`.

    Raises AdminApiError, ConfigurationError, TooLargeError.
    """
    plan = MovePlan()
    projects = choose_projects(source, target, requested, plan)
    environments = choose_environments(source, target, requested, plan)
    for kind in KINDS:
        plan.steps += plan_steps(kind, source.rows(kind.path, kind.key), target.rows(kind.path, kind.key), projects)
    found = plan_users(source, target)
    plan.users += found.steps
    plan.left += [f"user {name}" for name in found.left or ()]
    if found.left is None:
        plan.warnings.append(f"users are not moved: `{source.target.shown}` does not list them over its API, or not for this token")
    for project, becomes in projects.items():
        here = choose_project_environments(source, target, (project, becomes), environments, plan)
        ProjectFlags(source, target, project, becomes, here, plan).make_plan()
    return plan


def choose_projects(source: AdminClient, target: AdminClient, requested: MoveRequest, plan: MovePlan) -> dict[str, str]:
    """Return the projects to move and their target projects; add steps that create missing ones."""
    rows = {row["id"]: row for row in source.rows(PROJECTS, "projects")}
    check_names(source, "project", requested.projects, rows)
    chosen = requested.projects or tuple(rows)
    becomes = {name: requested.to_project or name for name in chosen}
    known = {row["id"] for row in target.rows(PROJECTS, "projects")}
    missing = [name for name in dict.fromkeys(becomes.values()) if name not in known]
    for name in missing:
        plan.steps.append(project_step(target, rows.get(name, {"id": name})))
    return becomes


def check_names(server: AdminClient, kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Raise AdminApiError for an unknown name, with the nearest known one."""
    for name in names:
        if name not in known:
            server.check_exists(**{kind: name})


def project_step(target: AdminClient, row: Mapping[str, Any]) -> MoveStep:
    """Return the step that creates a project; raises ConfigurationError if the server cannot create projects."""
    name = str(row["id"])
    if not target.takes_post(f"{PROJECTS}/validate", {"id": name}):
        text = f"`{target.target.shown}` has no project `{printable(name)}` and cannot create projects over its API"
        raise ConfigurationError([f"{text}: create it there, or choose projects with --project, or name one with --to-project"])
    body = {"id": name, "name": row.get("name") or name} | ({"description": row["description"]} if row.get("description") else {})
    return MoveStep("project", name, "new", (AdminRequest("POST", PROJECTS, body),))


def choose_environments(source: AdminClient, target: AdminClient, requested: MoveRequest, plan: MovePlan) -> list[str]:
    """Return the environments to move, by default those of both servers; those that only `source` has stay behind."""
    theirs, own = ([row["name"] for row in server.rows(ENVIRONMENTS, "environments")] for server in (source, target))
    for server, known in ((source, theirs), (target, own)):
        check_names(server, "environment", requested.environments, known)
    both = [name for name in theirs if name in own]
    if not requested.environments:
        plan.left += [f"environment {name}, which {target.target.shown} does not have" for name in theirs if name not in own]
    if not both:
        raise ConfigurationError(["the servers have no environment in common"])
    return list(requested.environments) or both


def choose_project_environments(
    source: AdminClient, target: AdminClient, projects: tuple[str, str], environments: list[str], plan: MovePlan
) -> list[str]:
    """Return the environments to move that a project has on at least one server.

    `projects` are its names on both servers. An environment that the target's project lacks is added to it.
    """
    theirs, own = read_environments(source, projects[0]), read_environments(target, projects[1])
    if own is None:
        return environments
    wanted = [name for name in environments if theirs is None or name in theirs or name in own]
    steps = (project_environment_step(projects[1], name) for name in wanted if name not in own)
    plan.steps += (step for step in steps if step not in plan.steps)
    if not wanted:
        plan.left.append(f"project {projects[0]}, which has none of these environments")
    return wanted


def project_environment_step(project: str, name: str) -> MoveStep:
    """Return the step that adds an environment to a project. A new project may have the environment already."""
    path = f"{PROJECTS}/{quote_path_part(project)}/environments"
    request = AdminRequest("POST", path, {"environment": name}, may_exist=True)
    return MoveStep("project environment", f"{name} of {project}", "new", (request,))


@dataclass
class ProjectFlags:
    """Plans the flags of one project, in all environments."""

    source: AdminClient
    target: AdminClient
    project: str
    becomes: str
    environments: Sequence[str]
    plan: MovePlan

    def make_plan(self) -> None:
        """Add these flags to the plan."""
        archived = list(self.archived())
        for environment in self.environments:
            data = self.exported(environment, archived)
            names = [item["name"] for item in data["features"]]
            there = merge_exports(self.exports(self.target, environment, names))
            self.refuse_elsewhere(there)
            gone = {item["name"] for item in there["features"] if item.get("archived")}
            self.plan.places.append(self.place(environment, data, there, gone, set(archived)))

    def archived(self) -> Iterator[str]:
        found = self.source.search_flags(archived="IS:true", project=f"IS:{self.project}")
        yield from (item["name"] for item in found)

    def exported(self, environment: str, archived: Sequence[str]) -> Json:
        """Return the flags of an environment for the target; archived ones are off and have no dependencies."""
        whole = export_in_order(self.source, {"environment": environment, "project": self.project})
        old = list(self.exports(self.source, environment, archived))
        if unknown := whole.unknown + sum(each.unknown for each in old):
            text = f"`{self.source.target.shown}` does not tell the order of strategies of {unknown} flags in `{environment}`"
            self.plan.warnings.append(text)
        data = merge_exports([whole, *old])
        names = set(archived)
        off = [{**item, "enabled": False} if item["name"] in names else item for item in data["featureEnvironments"]]
        asks = [item for item in data["dependencies"] if item["feature"] not in names]
        return {**data, "featureEnvironments": off, "dependencies": asks}

    def exports(self, server: AdminClient, environment: str, names: Sequence[str]) -> Iterator[OrderedExport]:
        """Yield the exports of flags from a server, some flags at a time."""
        for first in range(0, len(names), NAMES_PER_REQUEST):
            some = list(names[first : first + NAMES_PER_REQUEST])
            yield export_in_order(server, {"environment": environment, "features": some})

    def refuse_elsewhere(self, there: Json) -> None:
        """Raise ConfigurationError if the target has one of the flags in another project."""
        wrong = [item for item in there["features"] if item.get("project", self.becomes) != self.becomes]
        if wrong:
            names = ", ".join(f"`{printable(item['name'])}` (in `{printable(item['project'])}`)" for item in wrong[:10])
            text = f"`{self.target.target.shown}` has flags of `{printable(self.project)}` in other projects: {names}"
            raise ConfigurationError([f"{text}{f', and {len(wrong) - 10} more' if len(wrong) > 10 else ''}"])

    def place(self, environment: str, whole: Json, there: Json, gone: set[str], old: set[str]) -> ProjectEnvironment:
        """Return the plan for an environment: the flags in `gone` are archived on the target, those in `old` on the source."""
        data = data_without_flags(whole, gone & old)
        back = gone - old
        found = compare(data, without_archived_marks(there), None, None)
        flags = [mark_revived(change) if change.name in back else change for change in found.flags]
        sent = [change.name for change in flags if change.kind in IMPORTED_KINDS]
        self.remember(self.plan.revive, (name for name in sent if name in back))
        self.remember(self.plan.archive, (name for name in sent if name in old))
        request = {"project": self.becomes, "environment": environment, "data": without_archived_marks(data)}
        changes = ImportChanges((*flags, *(Change(name, "same") for name in sorted(gone & old))))
        return ProjectEnvironment(self.becomes, environment, changes, list(split_request(request, sent)))

    def remember(self, flags: dict[str, list[str]], names: Iterable[str]) -> None:
        """Add names of flags to a list of the plan, each once for all environments."""
        for name in names:
            if name not in (known := flags.setdefault(self.becomes, [])):
                known.append(name)


def without_archived_marks(data: Json) -> Json:
    """Return a data set with all flags marked as not archived."""
    return {**data, "features": [{**item, "archived": False} for item in data["features"]]}


def mark_revived(change: Change) -> Change:
    """Return the change of a revived flag. Reviving switches the flag off, so each environment must be imported."""
    return Change(change.name, "changed", ("archived: yes → no", *change.details))


def data_without_flags(data: Json, names: set[str]) -> Json:
    """Return a data set without some flags and their entries."""
    left = {key: [item for item in data[key] if item.get(flag) not in names] for key, flag in FLAG_FIELDS.items()}
    return {**data, **left}


def merge_exports(found: Iterable[OrderedExport]) -> Json:
    """Merge data sets of different flags into one; each segment is in it once."""
    lists: dict[str, dict[object, Json]] = {key: {} for key in (*FLAG_FIELDS, "segments")}
    for data, _ in found:
        for key, known in lists.items():
            for item in data.get(key) or ():
                known.setdefault(item["id"] if key == "segments" else len(known), item)
    return {key: list(known.values()) for key, known in lists.items()}
