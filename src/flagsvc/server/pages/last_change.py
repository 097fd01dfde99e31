"""Who changed something last, and when: for the page that saves nothing because someone else changed it meanwhile."""

from __future__ import annotations

from typing import Final

from flagsvc.server.api.call import ApiCall
from flagsvc.server.pages.edits import Look
from flagsvc.server.pages.history import unmarked
from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources import events
from flagsvc.server.store.store import Tx

TYPES: Final = {
    "strategy": ("feature-strategy-add", "feature-strategy-update", "feature-strategy-remove"),
    "flag": ("feature-metadata-updated", "feature-stale-on", "feature-stale-off"),
    "segment": ("segment-created", "segment-updated"),
    "project": ("project-updated",),
    "user": ("user-updated",),
    "environment": ("environment-updated",),
}
"""What a form changes → the types of events that change it, too."""


def last_change(
    call: ApiCall, tx: Tx, look: Look, thing: str, identity: str | int | None = None, **place: str
) -> Json | None:
    """Return the last change of a thing for a page that tells of one: its `words`, and `at`, when it was.

    `identity` is the id of the thing, `place` its feature, environment or project. None where the page tells of no change, where
    the event is deleted by its age, and where the caller may not see it: events of no project need the permission ADMIN.
    """
    if not (look.conflict or look.by_whom):
        return None
    found = events.find_last(tx, TYPES[thing], identity, **place)
    if found is None or (found["project"] is None and not call.actor.may("ADMIN")):
        return None
    return {"words": unmarked(found["summary"]), "at": found["createdAt"]}
