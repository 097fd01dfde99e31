"""Changes: the last revisions of an environment with the flags that each changed, and the changes of its state."""

from __future__ import annotations

from typing import Any

from flagsvc.proxy.configuration.change_log import Names, Revision, StateChange
from flagsvc.proxy.pages.moments import moment
from flagsvc.proxy.pages.page import PageCall, PageRow, Shown
from flagsvc.proxy.pages.status import STATES


async def show(call: PageCall) -> Shown:
    """Return the changes of an environment, the last one first."""
    shown = call.environment(call.given("environment"))
    log = shown.changes
    found: list[Revision | StateChange] = [*log.states, *log.revisions]
    found.sort(key=lambda each: each.since)
    await call.slices.rest()
    changes = []
    for each in reversed(found):
        changes.append(describe_revision(each) if isinstance(each, Revision) else describe_state(each))
        await call.slices.rest()
    return Shown(
        {
            "environment": shown.name,
            "environments": [name for name in call.scene.list_environments() if name],
            "changes": changes,
        }
    )


def describe_revision(revision: Revision) -> dict[str, Any]:
    """Return a revision with the names of the flags that it changed."""
    return {
        "kind": "revision",
        "when": moment(revision.since),
        "revision": revision.revision,
        "flags": revision.flags,
        "first": revision.is_first,
        "compared": revision.is_compared,
        "added": describe_names(revision.added),
        "removed": describe_names(revision.removed),
        "changed": describe_names(revision.changed),
    }


def describe_names(names: Names) -> dict[str, Any]:
    """Return the names of some flags, in order, and their number."""
    return {"count": names.count, "names": sorted(names.first)}


def describe_state(change: StateChange) -> dict[str, Any]:
    """Return a change of the state."""
    return {
        "kind": "state",
        "when": moment(change.since),
        "before": STATES[change.before][0],
        "after": STATES[change.after][0],
        "meaning": STATES[change.after][1],
    }


ROWS = (PageRow("/changes", "changes.html", show),)
