"""Who polls this server, and whether each has the newest flags: proxies and server-side SDKs. Where a change has arrived."""

from __future__ import annotations

from typing import Any

from flagsvc.http.answers import Answer
from flagsvc.http.etag import short_revision
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.pollers import Poller, count_arrived, newest_digests
from flagsvc.server.pages.notices import describe_arrival
from flagsvc.server.pages.page import page
from flagsvc.server.store.documents import DocumentQuery
from flagsvc.server.store.undo.subjects import find_touched, unknown_action

SHOWN = 500
"""The most instances on the page. The counts are of all."""


def show(call: ApiCall) -> Answer:
    """Return the instances, those without the newest flags first."""
    now = call.server.clock.now()
    every = call.server.pollers.list_all()
    newest = newest_digests(call.server.documents, [each for each in every if not each.is_gone(now)])
    arrived, there = count_arrived(every, newest, now)
    rows = [describe(each, newest, now) for each in every]
    rows.sort(key=lambda each: (each["gone"], each["newest"]))
    return Answer({"proxies": rows[:SHOWN], "arrived": arrived, "there": there, "total": len(rows)})


def describe(poller: Poller, newest: dict[DocumentQuery, str], now: float) -> dict[str, Any]:
    """Return an instance. Times are in seconds before now."""
    return {
        "environment": poller.query.environment,
        "projects": list(poller.query.projects or ("*",)),
        "appName": poller.app_name,
        "instanceId": poller.instance_id,
        "sdk": poller.sdk,
        "revision": poller.revision,
        "shortRevision": short_revision(poller.digest),
        "newestRevision": short_revision(newest.get(poller.query, "")),
        "newest": newest.get(poller.query) == poller.digest,
        "since": round(now - poller.since, 1),
        "polled": round(now - poller.polled, 1),
        "interval": None if poller.interval is None else round(poller.interval, 1),
        "gone": poller.is_gone(now),
    }


def show_arrival(call: ApiCall) -> Answer:
    """Return at which proxies a change of the caller has arrived. Raises CallerError (404)."""
    action = call.params["groupId"]
    with call.store.reading() as tx:
        arrival = describe_arrival(call, action, find_touched(tx, action, call.actor.id))
    if arrival is None:
        raise unknown_action()
    return Answer({"arrival": arrival})


ROUTES = (
    page("/proxies", show, "proxies.html", "Who polls, and which revision each has."),
    page("/arrived/:groupId", show_arrival, "arrived.html", "At which proxies a change has arrived."),
)
