"""How changes are undone of what flags belong to or use: parents, links, tags, resources with a writer, and roles in projects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import select

from flagsvc.server.store.checks import Json
from flagsvc.server.store.event_views import Side
from flagsvc.server.store.resources import (
    context_fields,
    dependencies,
    environments,
    features,
    links,
    project_access,
    project_changes,
    segments,
    strategy_types,
    tag_types,
    tags,
)
from flagsvc.server.store.resources.project_access import NUMBERS
from flagsvc.server.store.schema import events, project_environments
from flagsvc.server.store.store import Tx
from flagsvc.server.store.undo.subjects import (
    Change,
    Path,
    Subject,
    held_of,
    in_turn,
    named,
    of_flag,
    owner_of,
    places_of,
    written,
)


def read_parents(tx: Tx, change: Change) -> Side:
    """Return the event with the parents that the flag has now; None where the event left none and there is none."""
    parents = dependencies.parents_of(tx, change.feature or "")
    return None if not parents and change.after is None else {**(change.after or {}), "dependencies": parents}


def restore_parents(tx: Tx, change: Change) -> None:
    wanted = (change.before or {})["dependencies"]
    dependencies.put_back(tx, owner_of(tx, change) or "", change.feature or "", wanted)


def parents_uses(change: Change) -> tuple[Path, ...]:
    """Return the paths of the flags that are parents after the event."""
    return tuple(("flag", each["feature"]) for each in (change.after or {}).get("dependencies", ()))


def read_links(tx: Tx, changes: Sequence[Change]) -> list[Side]:
    """Return the events with the links that the flags have now."""
    held = links.links_of(tx, (each.feature or "" for each in changes))
    return [{**(each.after or {}), "links": held.get(each.feature or "", [])} for each in changes]


def restore_links(tx: Tx, changes: Sequence[Change]) -> None:
    projects = {place.feature: place.project for place in places_of(tx, changes)}
    links.set_links(tx, projects, {each.feature or "": (each.before or {})["links"] for each in changes})


def _tagged(change: Change) -> tuple[str, str, str]:
    held = held_of(change)
    return change.feature or "", held["type"], held["value"]


def read_taggings(tx: Tx, changes: Sequence[Change]) -> list[Side]:
    """Return the tags that the flags have."""
    held = tags.find_held(tx, (each.feature or "" for each in changes), list(map(held_of, changes)))
    return [held_of(each) if _tagged(each) in held else None for each in changes]


def restore_taggings(tx: Tx, changes: Sequence[Change]) -> None:
    """Take the tags off the flags, or give them back."""
    projects = {row.name: row.project for row in features.find_all(tx, [each.feature or "" for each in changes])}
    tags.remove_held(tx, projects, [_tagged(each) for each in changes if each.before is None])
    tags.give(tx, projects, [_tagged(each) for each in changes if each.before is not None])


def tagging_paths(change: Change) -> tuple[Path, ...]:
    """Return the paths of the tag on the flag, and of the tag."""
    held, flag = held_of(change), change.feature or ""
    return ("flag", flag, "tags", held["type"], held["value"]), ("tag", held["type"], held["value"], flag)


def read_tag(tx: Tx, change: Change) -> Side:
    """Return the tag with the members that the event holds, and with the flags that have it."""
    held = held_of(change)
    whole = tags.find_whole(tx, held["type"], held["value"])
    if whole is None or change.after is None:
        return whole
    return {name: value for name, value in whole.items() if name in change.after or (name == "features" and value)}


def restore_tag(tx: Tx, change: Change) -> None:
    """Delete the tag that was created; else create it again, for the flags that had it."""
    held = held_of(change)
    if change.before is None:
        tags.remove(tx, held["type"], held["value"])
    else:
        tags.put_back(tx, held)


def tag_scope(tx: Tx, change: Change) -> str | None:
    """Return the project of the flags for which a tag was created.

    None for a tag that was created alone, for flags of several projects, and for an old event that names no action.
    """
    if change.action is None:
        return None
    event = events.c
    together = event.action == change.action, event.type.in_(("feature-tagged", "feature-created"))
    found = tx.db.execute(select(event.project).where(*together).distinct().limit(2)).scalars().all()
    return found[0] if len(found) == 1 else None


PARENTS = in_turn("list of parents", read_parents, restore_parents, of_flag("dependencies"), parents_uses)
LINKS = Subject("list of links", read_links, restore_links, of_flag("links"))
TAGGING = Subject("tag", read_taggings, restore_taggings, tagging_paths)
TAG = in_turn("tag", read_tag, restore_tag, named("tag", "type", "value"))
TAG_TYPE = written(
    "tag type",
    tag_types.WRITER,
    tag_types.remove,
    paths=named("tag", "name"),
    belongings=lambda tx, names: {name: {"tags": tags} for name in names if (tags := tag_types.tags_of(tx, name))},
)


def segment_uses(change: Change) -> tuple[Path, ...]:
    """Return the paths of the context fields that the segment needs after the event."""
    return tuple(("context field", each["contextName"]) for each in (change.after or {}).get("constraints", ()))


SEGMENT = written(
    "segment",
    segments.WRITER,
    segments.remove,
    uses=segment_uses,
    belongings=lambda tx, numbers: {
        number: {"strategies": uses} for number in numbers if (uses := segments.uses_of(tx, number))
    },
)
FIELD = written(
    "context field",
    context_fields.WRITER,
    context_fields.remove,
    belongings=lambda tx, names: {
        name: {"strategies": segments.strategies_to_json(rows)}
        for name, rows in context_fields.rows_using(tx, names).items()
    },
    together=True,
)
STRATEGY_TYPE = written(
    "strategy type",
    strategy_types.WRITER,
    strategy_types.remove,
    belongings=lambda tx, names: {name: {"used": True} for name in names if strategy_types.is_used(tx, name)},
)


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
