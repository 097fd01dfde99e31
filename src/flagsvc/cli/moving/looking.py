"""What a move has to do: both servers are looked at, and nothing is changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

from flagsvc.cli.batch import order
from flagsvc.cli.batch.changes import Change, ImportChanges, compare
from flagsvc.cli.batch.client import AdminClient, in_path
from flagsvc.cli.batch.facts import read_environments
from flagsvc.cli.batch.pieces import OF_A_FLAG, Piece, pieces
from flagsvc.cli.moving.kinds import KINDS, steps
from flagsvc.cli.moving.people import people
from flagsvc.cli.moving.steps import AdminRequest, Json, MoveStep
from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.kinds import printable

PROJECTS, ENVIRONMENTS = "/api/admin/projects", "/api/admin/environments"
NAMES_AT_ONCE = 1000
"""Names of flags in one request."""
PAGE = 100
"""Rows of a page of a search."""
SENT = ("new", "changed")


class MoveRequest(NamedTuple):
    """What is to be moved: projects and environments by name, empty for all; the project that takes all of it, if one does."""

    projects: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    to_project: str | None = None


class ProjectEnvironment(NamedTuple):
    """The flags of a project in an environment: what happens to each, and the requests that import those that change."""

    project: str
    environment: str
    found: ImportChanges
    pieces: list[Piece]


@dataclass
class MovePlan:
    """All that is to be done, in order: single requests, flags to revive by project, imports by place, flags to archive, users.

    `left` stays behind.
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
        """Whether there is nothing to do."""
        return not self.steps and not self.users and not any(place.pieces for place in self.places)


def look(source: AdminClient, target: AdminClient, asked: MoveRequest) -> MovePlan:
    """Return what makes `target` have what is asked for of `source`. Raises CannotAskError, ConfigurationError, TooLargeError."""
    plan = MovePlan()
    projects = projects_of(source, target, asked, plan)
    environments = environments_of(source, target, asked, plan)
    for kind in KINDS:
        plan.steps += steps(kind, source.rows(kind.path, kind.key), target.rows(kind.path, kind.key), projects)
    found = people(source, target)
    plan.users += found.steps
    plan.left += [f"user {name}" for name in found.left or ()]
    if found.left is None:
        plan.warnings.append(
            f"users are not moved: `{source.target.shown}` does not list them over its API, or not for this token"
        )
    for project, becomes in projects.items():
        here = environments_in(source, target, (project, becomes), environments, plan)
        Flags(source, target, project, becomes, here, plan).look()
    return plan


def projects_of(source: AdminClient, target: AdminClient, asked: MoveRequest, plan: MovePlan) -> dict[str, str]:
    """Return the projects to move and what each becomes; those that are missing are to be made, where the server can."""
    rows = {row["id"]: row for row in source.rows(PROJECTS, "projects")}
    unknown(source, "project", asked.projects, rows)
    chosen = asked.projects or tuple(rows)
    becomes = {name: asked.to_project or name for name in chosen}
    known = {row["id"] for row in target.rows(PROJECTS, "projects")}
    missing = [name for name in dict.fromkeys(becomes.values()) if name not in known]
    for name in missing:
        plan.steps.append(new_project(target, rows.get(name, {"id": name})))
    return becomes


def unknown(server: AdminClient, kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Raise CannotAskError for a name that a server does not have, with the nearest that it has."""
    for name in names:
        if name not in known:
            server.check_named(**{kind: name})


def new_project(target: AdminClient, row: Mapping[str, Any]) -> MoveStep:
    """Return what makes a project; raises ConfigurationError where the server makes none."""
    name = str(row["id"])
    if not target.takes("POST", f"{PROJECTS}/validate", {"id": name}):
        text = f"`{target.target.shown}` has no project `{printable(name)}` and makes none over its API"
        raise ConfigurationError(
            [f"{text}: make it there, or choose projects with --project, or name one with --to-project"]
        )
    body = {"id": name, "name": row.get("name") or name} | (
        {"description": row["description"]} if row.get("description") else {}
    )
    return MoveStep("project", name, "new", (AdminRequest("POST", PROJECTS, body),))


def environments_of(source: AdminClient, target: AdminClient, asked: MoveRequest, plan: MovePlan) -> list[str]:
    """Return the environments to move, by default those that both servers have; what only one has is said."""
    theirs, own = ([row["name"] for row in server.rows(ENVIRONMENTS, "environments")] for server in (source, target))
    for server, known in ((source, theirs), (target, own)):
        unknown(server, "environment", asked.environments, known)
    both = [name for name in theirs if name in own]
    if not asked.environments:
        plan.left += [
            f"environment {name}, which {target.target.shown} does not have" for name in theirs if name not in own
        ]
    if not both:
        raise ConfigurationError(["the servers have no environment in common"])
    return list(asked.environments) or both


def environments_in(
    source: AdminClient, target: AdminClient, projects: tuple[str, str], environments: list[str], plan: MovePlan
) -> list[str]:
    """Return the environments of a project that are moved: without those that neither server's project has.

    `projects` are its name on each server. One that only the other server's project lacks is to be added to it.
    """
    theirs, own = read_environments(source, projects[0]), read_environments(target, projects[1])
    if own is None:
        return environments
    wanted = [name for name in environments if theirs is None or name in theirs or name in own]
    steps = (project_environment(projects[1], name) for name in wanted if name not in own)
    plan.steps += (step for step in steps if step not in plan.steps)
    if not wanted:
        plan.left.append(f"project {projects[0]}, which has none of these environments")
    return wanted


def project_environment(project: str, name: str) -> MoveStep:
    """Return what gives a project an environment."""
    request = AdminRequest("POST", f"{PROJECTS}/{in_path(project)}/environments", {"environment": name})
    return MoveStep("project environment", f"{name} of {project}", "new", (request,))


@dataclass
class Flags:
    """The flags of one project, in all environments."""

    source: AdminClient
    target: AdminClient
    project: str
    becomes: str
    environments: Sequence[str]
    plan: MovePlan

    def look(self) -> None:
        """Add to the plan what is to be done to these flags."""
        archived = list(self.archived())
        for environment in self.environments:
            data = self.exported(environment, archived)
            names = [item["name"] for item in data["features"]]
            there = merged(self.exports(self.target, environment, names))
            self.refuse_elsewhere(there)
            gone = {item["name"] for item in there["features"] if item.get("archived")}
            self.plan.places.append(self.place(environment, data, there, gone, set(archived)))

    def archived(self) -> Iterator[str]:
        """Give the names of the archived flags."""
        where = f"/api/admin/search/features?archived=IS:true&project=IS:{in_path(self.project)}&limit={PAGE}"
        for number in count():
            page = self.source.rows(f"{where}&offset={number * PAGE}", "features")
            yield from (item["name"] for item in page)
            if len(page) < PAGE:
                return

    def exported(self, environment: str, archived: Sequence[str]) -> Json:
        """Return the flags of an environment as they are to be; one that is archived is off, and asks nothing of others."""
        whole = order.exported(self.source, {"environment": environment, "project": self.project})
        old = list(self.exports(self.source, environment, archived))
        if unknown := whole.unknown + sum(each.unknown for each in old):
            text = f"`{self.source.target.shown}` does not tell the order of strategies of {unknown} flags in `{environment}`"
            self.plan.warnings.append(text)
        data = merged([whole, *old])
        names = set(archived)
        off = [{**item, "enabled": False} if item["name"] in names else item for item in data["featureEnvironments"]]
        asks = [item for item in data["dependencies"] if item["feature"] not in names]
        return {**data, "featureEnvironments": off, "dependencies": asks}

    def exports(self, server: AdminClient, environment: str, names: Sequence[str]) -> Iterator[order.Ordered]:
        """Give what a server exports of flags, some at a time."""
        for first in range(0, len(names), NAMES_AT_ONCE):
            some = list(names[first : first + NAMES_AT_ONCE])
            yield order.exported(server, {"environment": environment, "features": some})

    def refuse_elsewhere(self, there: Json) -> None:
        """Raise ConfigurationError where the other server has one of the flags in another project."""
        wrong = [item for item in there["features"] if item.get("project", self.becomes) != self.becomes]
        if wrong:
            names = ", ".join(f"`{printable(item['name'])}` (in `{printable(item['project'])}`)" for item in wrong[:10])
            text = f"`{self.target.target.shown}` has flags of `{printable(self.project)}` in other projects: {names}"
            raise ConfigurationError([f"{text}{f', and {len(wrong) - 10} more' if len(wrong) > 10 else ''}"])

    def place(self, environment: str, whole: Json, there: Json, gone: set[str], old: set[str]) -> ProjectEnvironment:
        """Return what happens to the flags of an environment: `gone` are archived on the other server, `old` here."""
        data = without(whole, gone & old)
        back = gone - old
        found = compare(data, active(there), None, None)
        flags = [revived(change) if change.name in back else change for change in found.flags]
        sent = [change.name for change in flags if change.kind in SENT]
        self.remember(self.plan.revive, (name for name in sent if name in back))
        self.remember(self.plan.archive, (name for name in sent if name in old))
        request = {"project": self.becomes, "environment": environment, "data": active(data)}
        changes = ImportChanges((*flags, *(Change(name, "same") for name in sorted(gone & old))))
        return ProjectEnvironment(self.becomes, environment, changes, list(pieces(request, sent)))

    def remember(self, flags: dict[str, list[str]], names: Iterable[str]) -> None:
        """Put names of flags into a list of the plan, each once for all environments."""
        for name in names:
            if name not in (known := flags.setdefault(self.becomes, [])):
                known.append(name)


def active(data: Json) -> Json:
    """Return a data set whose flags are not archived."""
    return {**data, "features": [{**item, "archived": False} for item in data["features"]]}


def revived(change: Change) -> Change:
    """Return what happens to a flag that is revived: it comes back switched off, so that each environment is sent."""
    return Change(change.name, "changed", ("archived: yes → no", *change.details))


def without(data: Json, names: set[str]) -> Json:
    """Return a data set without some flags and what is theirs."""
    left = {key: [item for item in data[key] if item.get(flag) not in names] for key, flag in OF_A_FLAG.items()}
    return {**data, **left}


def merged(found: Iterable[order.Ordered]) -> Json:
    """Return several data sets, of other flags each, as one; a segment is in it once."""
    lists: dict[str, dict[object, Json]] = {key: {} for key in (*OF_A_FLAG, "segments")}
    for data, _ in found:
        for key, known in lists.items():
            for item in data.get(key) or ():
                known.setdefault(item["id"] if key == "segments" else len(known), item)
    return {key: list(known.values()) for key, known in lists.items()}
