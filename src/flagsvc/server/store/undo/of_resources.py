"""How changes are undone, by what they change: flags, parents, links, tags, resources with a writer, and roles in projects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Row, select

from flagsvc.server.store.checks import Json
from flagsvc.server.store.event_views import Side
from flagsvc.server.store.resources import (
    context_fields,
    dependencies,
    environments,
    feature_archive,
    features,
    links,
    project_access,
    project_changes,
    segments,
    strategies,
    strategy_types,
    tag_types,
    tags,
    whole_features,
)
from flagsvc.server.store.resources.dependencies import children_by_parent, find_related
from flagsvc.server.store.resources.feature_environments import FeatureState, save_variants, set_states
from flagsvc.server.store.resources.feature_environments import read_states as read_states_in
from flagsvc.server.store.resources.project_access import NUMBERS
from flagsvc.server.store.resources.strategies import Placed, read_all_whole
from flagsvc.server.store.schema import events, project_environments
from flagsvc.server.store.store import Tx
from flagsvc.server.store.undo.subjects import (
    Change,
    Path,
    Subject,
    held_of,
    in_environment,
    in_turn,
    named,
    of_flag,
    owner_of,
    place_of,
    places_of,
    written,
)


def read_states(tx: Tx, changes: Sequence[Change]) -> list[Side]:
    return [None if state is None else {"enabled": state.enabled} for state in _states_of(tx, changes)]


def _states_of(tx: Tx, changes: Sequence[Change]) -> list[FeatureState | None]:
    held = {
        name: read_states_in(tx, name or "", [each.feature or "" for each in changes if each.environment == name])
        for name in dict.fromkeys(each.environment for each in changes)
    }
    return [held[each.environment].get(each.feature or "") for each in changes]


def restore_states(tx: Tx, changes: Sequence[Change]) -> None:
    """Switch the flags back."""
    wanted = [bool((each.before or {}).get("enabled")) for each in changes]
    set_states(tx, dict(zip(places_of(tx, changes), wanted, strict=True)))


def read_strategies(tx: Tx, changes: Sequence[Change]) -> list[Side]:
    held = read_all_whole(tx, map(_strategy_of, changes))
    return [held.get(_strategy_of(each)) for each in changes]


def restore_strategies(tx: Tx, changes: Sequence[Change]) -> None:
    """Remove the strategies that were added; put back all other strategies, with their ids and places."""
    placed = list(zip(places_of(tx, changes), changes, strict=True))
    strategies.remove_all(tx, [Placed(place, each.after or {}) for place, each in placed if each.before is None])
    strategies.put(tx, [Placed(place, each.before) for place, each in placed if each.before is not None])


def _strategy_of(change: Change) -> str:
    return str(held_of(change)["id"])


def strategy_paths(change: Change) -> tuple[Path, ...]:
    return in_environment("strategies", _strategy_of(change))(change)


def strategy_uses(change: Change) -> tuple[Path, ...]:
    """Return the paths of the segments, context fields and type that the strategy needs after the event."""
    whole = change.after or {}
    used = [("segment", str(each)) for each in whole.get("segments", ())]
    used += [("context field", each["contextName"]) for each in whole.get("constraints", ())]
    return *used, ("strategy type", str(whole.get("name")))


def read_order(tx: Tx, change: Change) -> Side:
    return strategies.order_of(tx, place_of(tx, change))


def restore_order(tx: Tx, change: Change) -> None:
    """Sort the strategies as they were."""
    orders = (change.before or {})["sortOrders"]
    strategies.sort(tx, place_of(tx, change), [{"id": each, "sortOrder": order} for each, order in orders.items()])


def read_variants(tx: Tx, changes: Sequence[Change]) -> list[Side]:
    return [None if state is None else {"variants": state.variants} for state in _states_of(tx, changes)]


def restore_variants(tx: Tx, changes: Sequence[Change]) -> None:
    wanted = [(each.before or {})["variants"] for each in changes]
    save_variants(tx, dict(zip(places_of(tx, changes), wanted, strict=True)))


STATE = Subject("switch", read_states, restore_states, in_environment("state"))
STRATEGY = Subject("strategy", read_strategies, restore_strategies, strategy_paths, strategy_uses)
ORDER = in_turn("order of the strategies", read_order, restore_order, in_environment("strategies"))
VARIANTS = Subject("list of variants", read_variants, restore_variants, in_environment("variants"))


DESCRIPTION = "description"


def _rows_of(tx: Tx, changes: Sequence[Change]) -> list[Row[Any] | None]:
    """Return the rows of the flags of events; None for a flag that is not there."""
    rows = {row.name: row for row in features.find_all(tx, [each.feature or "" for each in changes])}
    return [rows.get(each.feature or "") for each in changes]


def read_descriptions(tx: Tx, changes: Sequence[Change]) -> list[Side]:
    return [None if row is None else features.metadata(row) for row in _rows_of(tx, changes)]


def restore_descriptions(tx: Tx, changes: Sequence[Change]) -> None:
    features.put_back(tx, {each.feature or "": each.before or {} for each in changes})


def read_stale(tx: Tx, changes: Sequence[Change]) -> list[Side]:
    return [None if row is None else {"stale": row.stale} for row in _rows_of(tx, changes)]


def restore_stale(tx: Tx, changes: Sequence[Change]) -> None:
    groups: defaultdict[tuple[str, bool], list[str]] = defaultdict(list)
    for row, change in zip(_rows_of(tx, changes), changes, strict=True):
        if row is not None:
            groups[row.project, (change.before or {})["stale"]].append(row.name)
    for (project, stale), names in groups.items():
        features.set_stale(tx, project, names, stale=stale)


def read_archiving(tx: Tx, changes: Sequence[Change]) -> list[Side]:
    """Return since when flags are archived and where they are on. For a flag that is archived again, return its children, too."""
    states = feature_archive.archive_states(tx, [row for row in _rows_of(tx, changes) if row is not None])
    archived = [each.feature or "" for each in changes if (each.before or {}).get("archivedAt")]
    children = {name: {"children": each} for name, each in children_by_parent(tx, archived).items()}
    found: list[Side] = []
    for change in changes:
        state = states.get(change.feature or "")
        needed: Json = children.get(change.feature or "", {})
        found.append(None if state is None else {name: state[name] for name in change.after or {}} | needed)
    return found


def restore_archiving(tx: Tx, changes: Sequence[Change]) -> None:
    """Archive or revive the flags. A revived flag is on where it was on."""
    feature_archive.put_back_states(tx, {each.feature or "": each.before or {} for each in changes})


def archiving_paths(change: Change) -> tuple[Path, ...]:
    flag = change.feature or ""
    return ("flag", flag, DESCRIPTION, "archived"), ("flag", flag, "in")


def read_flags(tx: Tx, changes: Sequence[Change]) -> list[Side]:
    """Return the flags with the members that their events hold; with all of a flag that has more than its event tells."""
    rows = [row for row in _rows_of(tx, changes) if row is not None]
    wholes, related = whole_features.read_whole(tx, rows), find_related(tx, [row.name for row in rows])
    return [_told(wholes.get(each.feature or ""), each, related) for each in changes]


def _told(whole: Json | None, change: Change, related: Collection[str]) -> Side:
    """Return a flag with the members that its event holds, and with all members that the flag has beside them."""
    if whole is None:
        return None
    held = change.after or {}
    needed: Json = {"hasDependencies": True} if whole["name"] in related else {}
    more = {name for name in whole if name not in held and not _is_bare(name, whole[name])}
    return {name: value for name, value in whole.items() if name in held or name in more} | needed


def _is_bare(name: str, value: Any) -> bool:
    if name == "environments":
        return all(state == features.OFF for state in value.values())
    return name in ("createdBy", "createdById", "position") or not value


def restore_flags(tx: Tx, changes: Sequence[Change]) -> None:
    """Delete the flags that were created; create the others as they were."""
    created = [each.feature or "" for each in changes if each.before is None]
    feature_archive.remove_rows(tx, features.find_all(tx, created))
    whole_features.put_back(tx, [each.before for each in changes if each.before is not None])


DESCRIBED = Subject("description", read_descriptions, restore_descriptions, of_flag(DESCRIPTION))
STALE = Subject("mark as stale", read_stale, restore_stale, of_flag(DESCRIPTION, "stale"))
ARCHIVING = Subject("flag", read_archiving, restore_archiving, archiving_paths)
FLAG = Subject("flag", read_flags, restore_flags, of_flag())


def read_parents(tx: Tx, change: Change) -> Side:
    """Return the event with the present parents of the flag; None if the event left no parent and the flag has none."""
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
    belongings=lambda tx, numbers: {number: {"strategies": uses} for number in numbers if (uses := segments.uses_of(tx, number))},
)
FIELD = written(
    "context field",
    context_fields.WRITER,
    context_fields.remove,
    belongings=lambda tx, names: {
        name: {"strategies": segments.strategies_to_json(rows)} for name, rows in context_fields.rows_using(tx, names).items()
    },
    together=True,
)
STRATEGY_TYPE = written(
    "strategy type",
    strategy_types.WRITER,
    strategy_types.remove,
    belongings=lambda tx, names: {name: {"used": True} for name in names if strategy_types.is_used(tx, name)},
)


def project_belongings(tx: Tx, created: Mapping[str, Change]) -> dict[str, Json]:
    """Return what projects have that the events of their creation do not tell."""
    found: dict[str, Json] = {}
    for project, change in created.items():
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
    """Return the event with the present roles of its users; None if the event left no role and the user has none."""
    held = [{"userId": user, "roles": project_access.roles_of(tx, change.project or "", user)} for user in _users_of(change)]
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
PROJECT_ENVIRONMENT = in_turn("environment in the project", read_link, restore_link, link_paths)
ENVIRONMENT = written("environment", environments.WRITER, environments.remove, belongings=owners_of)
ROLES = in_turn("roles in the project", read_roles, restore_roles, roles_paths)
ROLE = in_turn("role in the project", read_role, restore_role, roles_paths)
