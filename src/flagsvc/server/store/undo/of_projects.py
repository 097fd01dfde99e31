"""How changes of projects and environments are undone, and of the roles of users in projects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy import select

from flagsvc.server.store.checks import Json
from flagsvc.server.store.event_views import Side
from flagsvc.server.store.resources import environments, project_access, project_changes
from flagsvc.server.store.resources.project_access import NUMBERS
from flagsvc.server.store.schema import project_environments
from flagsvc.server.store.store import Tx
from flagsvc.server.store.undo.subjects import Change, Path, in_turn, written


def project_belongings(tx: Tx, made: Mapping[str, Change]) -> dict[str, Json]:
    """Return what projects have that the events of their creation do not tell."""
    found: dict[str, Json] = {}
    for project, change in made.items():
        has = project_changes.belongings_of(tx, project, change.by_id)
        if left := [each for each in has if each != "members" or "roles" not in (change.after or {})]:
            found[project] = {"has": left}
    return found


def project_paths(change: Change) -> tuple[Path, ...]:
    """Return the path of the project; only its description where it was there before and after."""
    changed = change.before is not None and change.after is not None
    return (("project", change.project or "", *(("description",) if changed else ())),)


def read_link(tx: Tx, change: Change) -> Side:
    """Return the states of the project's flags in the environment; None where the project does not have it."""
    return environments.states_in(tx, change.project or "", change.environment or "")


def restore_link(tx: Tx, change: Change) -> None:
    """Take the environment from the project, or add it with the states that its flags had there."""
    project, environment = change.project or "", change.environment or ""
    if change.before is None:
        environments.remove_from_project(tx, project, environment)
    else:
        environments.add_to_project(tx, project, environment, change.before["features"])


def link_paths(change: Change) -> tuple[Path, ...]:
    """Return the paths of the environment in the project."""
    project, environment = change.project or "", change.environment or ""
    return ("project", project, "in", environment), ("environment", environment, project)


def owners_of(tx: Tx, names: Iterable[str]) -> dict[str, Json]:
    """Return the projects that have environments, by environment."""
    link = project_environments.c
    queries = {name: select(link.project).where(link.environment == name) for name in names}
    found = {name: list(tx.db.execute(query).scalars()) for name, query in queries.items()}
    return {name: {"projects": owners} for name, owners in found.items() if owners}


def read_roles(tx: Tx, change: Change) -> Side:
    """Return the event with the roles that its users have now; None where the event left none and there are none."""
    held = [
        {"userId": user, "roles": project_access.roles_of(tx, change.project or "", user)} for user in _users_of(change)
    ]
    after = change.after
    if after is None:
        return held[0] if held[0]["roles"] else None
    return {**after, "users": held} if "users" in after else held[0]


def restore_roles(tx: Tx, change: Change) -> None:
    """Give the users the roles that they had."""
    before = change.before or {}
    for each in before.get("users", [before]):
        project_access.replace(tx, change.project or "", each["userId"], each["roles"])


def _users_of(change: Change) -> list[int]:
    held = change.before or change.after or {}
    return [each["userId"] for each in held.get("users", [held])]


def read_role(tx: Tx, change: Change) -> Side:
    """Return the event of a role that a seed gave, if the user has the role."""
    after = change.after or {}
    held = project_access.roles_of(tx, change.project or "", after["userId"])
    return after if NUMBERS[after["role"]] in held else None


def restore_role(tx: Tx, change: Change) -> None:
    """Take the role that a seed gave."""
    after, project = change.after or {}, change.project or ""
    held = project_access.roles_of(tx, project, after["userId"])
    project_access.replace(tx, project, after["userId"], [each for each in held if each != NUMBERS[after["role"]]])


def roles_paths(change: Change) -> tuple[Path, ...]:
    """Return the paths of the users' roles in the project."""
    return tuple(("project", change.project or "", "roles", str(each)) for each in _users_of(change))


PROJECT = written(
    "project",
    project_changes.WRITER,
    project_changes.remove,
    paths=project_paths,
    aside=("environments",),
    belongings=project_belongings,
)
LINK = in_turn("environment in the project", read_link, restore_link, link_paths)
ENVIRONMENT = written("environment", environments.WRITER, environments.remove, belongings=owners_of)
ROLES = in_turn("roles in the project", read_roles, restore_roles, roles_paths)
ROLE = in_turn("role in the project", read_role, restore_role, roles_paths)
