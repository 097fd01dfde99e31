"""Who changed something last, and when: for the page that saves nothing because someone else changed it meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from flagsvc.server.api.call import ApiCall
from flagsvc.server.pages.edits import Look
from flagsvc.server.pages.history import unmarked
from flagsvc.server.store.checks import Json
from flagsvc.server.store.event_kinds import Side
from flagsvc.server.store.resources import events
from flagsvc.server.store.store import Tx

Identity: TypeAlias = str | int | None
Part: TypeAlias = Callable[[Json, Identity], object]


def _whole(side: Json, identity: Identity) -> object:
    return side


def _named_by(*members: str) -> Part:
    """Return what takes a side of an event whose member has the identity as its value; nothing of any other one."""
    return lambda side, identity: side if identity in [side.get(each) for each in members] else None


def _order(side: Json, identity: Identity) -> object:
    return side.get("sortOrder")


def _roles(side: Json, identity: Identity) -> object:
    return [each.get("roles") for each in side.get("users", [side]) if each.get("userId") == identity]


def _link(side: Json, identity: Identity) -> object:
    return [each for each in side.get("links", ()) if each["id"] == identity]


class Thing(NamedTuple):
    """What a form changes. `types` are the types of the events that change it, too; `part` takes it from a side of one.

    An event whose two sides have the same part did not change it.
    """

    types: tuple[str, ...]
    part: Part = _whole


OF_FIELD = ("context-field-created", "context-field-updated")
OF_TAG_TYPE = ("tag-type-created", "tag-type-updated")
OF_TAGS = ("tag-created", "tag-deleted", "feature-tagged", "feature-untagged")
OF_STRATEGY_TYPE = ("strategy-created", "strategy-updated", "strategy-deprecated", "strategy-reactivated")
OF_PARENTS = ("feature-dependency-added", "feature-dependency-removed", "feature-dependencies-removed")
OF_LINKS = ("feature-link-added", "feature-link-updated", "feature-link-removed")
OF_ORDER = ("environment-created", "environment-updated", "environment-deleted")
OF_ROLES = (
    "project-user-added",
    "project-access-added",
    "project-access-user-roles-updated",
    "project-access-user-roles-deleted",
)
THINGS: Final[Mapping[str, Thing]] = {
    "strategy": Thing(("feature-strategy-add", "feature-strategy-update", "feature-strategy-remove"), _named_by("id")),
    "flag": Thing(("feature-metadata-updated", "feature-stale-on", "feature-stale-off")),
    "variants": Thing(("feature-environment-variants-updated",)),
    "parents": Thing(OF_PARENTS),
    "link": Thing(OF_LINKS, _link),
    "segment": Thing(("segment-created", "segment-updated"), _named_by("id")),
    "context field": Thing(OF_FIELD, _named_by("name")),
    "tag type": Thing(OF_TAG_TYPE, _named_by("name")),
    "tag type with its tags": Thing((*OF_TAG_TYPE, *OF_TAGS), _named_by("name", "type")),
    "strategy type": Thing(OF_STRATEGY_TYPE, _named_by("name")),
    "project": Thing(("project-updated",)),
    "whole project": Thing(("project-updated", "project-environment-added", "project-environment-removed")),
    "roles": Thing(OF_ROLES, _roles),
    "user": Thing(("user-updated",), _named_by("id")),
    "webhook": Thing(("addon-config-created", "addon-config-updated"), _named_by("id")),
    "environment": Thing(("environment-updated",)),
    "order": Thing(OF_ORDER, _order),
}


def last_change(call: ApiCall, tx: Tx, look: Look, name: str, identity: Identity = None, **place: str) -> Json | None:
    """Return the last change of a thing of THINGS for a page that tells of one: its `words`, and `at`, when it was.

    `identity` is the id or the name of the thing, `place` its feature, environment or project. None where the page tells of no
    change, where the event is deleted by its age, and where the caller may not see it: events of no project need the permission
    ADMIN.
    """
    if not (look.conflict or look.by_whom):
        return None
    thing = THINGS[name]

    def changes(before: Side, after: Side) -> bool:
        return thing.part(dict(before or {}), identity) != thing.part(dict(after or {}), identity)

    found = events.find_last(tx, thing.types, changes, **place)
    if found is None or (found["project"] is None and not call.actor.may("ADMIN")):
        return None
    return {"words": unmarked(found["summary"]), "at": found["createdAt"]}
