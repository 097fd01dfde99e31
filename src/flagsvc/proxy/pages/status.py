"""Status: what callers get, since when, and if it is not the newest, why. Without a key it names no flag.

Changes: the last revisions of an environment with the flags that each changed, and the changes of its state.
"""

from __future__ import annotations

from typing import Any, Final

from flagsvc.core.version import version_text
from flagsvc.http.answers import Answer
from flagsvc.http.metrics import STREAMS, Readings
from flagsvc.pages.site import redirect
from flagsvc.proxy.api.readiness import COLD, DRAINING, NO_WORKER, STALE
from flagsvc.proxy.configuration import State
from flagsvc.proxy.configuration.change_log import Names, Revision, StateChange
from flagsvc.proxy.pages.page import FIRST, PageCall, PageRow, Scene, ShownEnvironment, moment

STATES: Final[dict[str, tuple[str, str]]] = {
    State.COLD: ("no configuration yet", "Callers get 503 Not Ready."),
    State.RESTORED: ("restored", "Callers get the stored configuration. The flag server has not answered yet."),
    State.BOOTSTRAPPED: ("bootstrapped", "Callers get the bootstrap document. The flag server has not answered yet."),
    State.FRESH: ("fresh", "Callers get what the flag server has."),
    State.STALE: ("stale", "Callers get the last configuration. The flag server does not answer."),
    State.REFUSED: ("refused", "Callers get the last configuration. What the flag server answers now cannot be used."),
}
"""State of the life cycle → one word, and what it means for callers."""
OBJECTIONS: Final[dict[str, str]] = {
    "": "callers may be sent here",
    COLD: "there is no configuration yet",
    STALE: "the configuration is older than maxStaleness allows",
    DRAINING: "the process is about to end",
    NO_WORKER: "no worker answers",
}
"""Objection of readiness → why."""
WITHOUT_NAMES: Final = "(told with a key)"


async def show(call: PageCall) -> Answer:
    """Return the state of the process and of each environment."""
    scene = call.scene
    now = scene.clock.now()
    environments = scene.list_environments().values()
    return Answer(
        {
            "process": describe_process(scene, now, await scene.read_counts()),
            "environments": [describe_environment(scene, each, now, sees_all=call.sees_all) for each in environments],
            "names": call.sees_all,
        }
    )


def describe_process(scene: Scene, now: float, counts: Readings) -> dict[str, Any]:
    """Return what the environments share."""
    objection = scene.readiness.find_objection()
    workers = scene.read_workers()
    return {
        "name": scene.read_identity().app_name,
        "instance": scene.read_identity().instance_id,
        "version": version_text(),
        "started": moment(scene.started),
        "upSeconds": int(now - scene.started),
        "ready": not objection,
        "readiness": OBJECTIONS[objection],
        "workers": {"running": workers.workers, "replaced": workers.restarts, "hung": workers.hangs},
        "streams": {name: int(counts.get((STREAMS + name,), 0)) for name in ("open", "told")},
    }


def describe_environment(scene: Scene, shown: ShownEnvironment, now: float, *, sees_all: bool) -> dict[str, Any]:
    """Return the state of one environment. Only who `sees_all` is told what may hold the name of a flag."""
    holder, notes = shown.holder, shown.notes
    snapshot, document = holder.current, holder.document
    word, meaning = STATES[holder.state]
    error = str(scene.secrets.mask(notes.error))
    waits = None if notes.next_at is None else max(0, round(notes.next_at - now))
    return {
        "name": shown.name,
        "upstream": shown.upstream,
        "state": word,
        "meaning": meaning,
        "since": moment(notes.since),
        "sinceSeconds": int(now - notes.since),
        "checked": moment(holder.last_fetch_ms / 1000),
        "updated": moment(holder.last_update_ms / 1000),
        "error": error if sees_all or not error else WITHOUT_NAMES,
        "failures": holder.failures,
        "failedAt": moment(notes.failed_at or 0),
        "nextInSeconds": waits,
        "news": describe_news(shown),
        "shortRevision": None if document is None else document.revision,
        "revision": None if snapshot is None else snapshot.revision,
        "digest": None if document is None else document.etag.strip('"'),
        "flags": None if snapshot is None else len(snapshot.names),
        "leftOut": {"number": holder.problems, "parts": list(notes.left_out) if sees_all else []},
        "odd": {"number": holder.odd, "parts": list(notes.odd) if sees_all else []},
        "usageWaiting": shown.asked.entries,
    }


def describe_news(shown: ShownEnvironment) -> dict[str, Any]:
    """Return how news of the upstream arrive: by a stream or by polls, since when, and why there is no stream."""
    stream = shown.holder.stream
    return {
        "by": "stream" if stream.is_open else "polls",
        "since": moment(stream.since),
        "everySeconds": int(shown.refresh_s) if shown.refresh_s.is_integer() else shown.refresh_s,
        "whyNoStream": stream.why,
        "streams": stream.opened,
        "fallbacks": stream.fallbacks,
        "events": sum(stream.events.values()),
    }


async def home(call: PageCall) -> Answer:
    return redirect(call.address(FIRST))


ROWS = (
    PageRow("", "status.html", home, open=True),
    PageRow("/status", "status.html", show, open=True),
)


async def show_changes(call: PageCall) -> Answer:
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
    return Answer(
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
        "shortRevision": revision.short,
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
    return {
        "kind": "state",
        "when": moment(change.since),
        "before": STATES[change.before][0],
        "after": STATES[change.after][0],
        "meaning": STATES[change.after][1],
    }


CHANGES_ROW = PageRow("/changes", "changes.html", show_changes)
