"""What a page says first: what its user just did, with a button that undoes it, and at which proxies it has arrived."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from flagsvc.pages.templates import Notice, segment
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.pollers import Commit, Poller, find_arrival
from flagsvc.server.store.actors import ALL
from flagsvc.server.store.checks import Json
from flagsvc.server.store.event_kinds import sentence_of
from flagsvc.server.store.resources.environments import list_protected
from flagsvc.server.store.store import Tx
from flagsvc.server.store.timestamps import format_time
from flagsvc.server.store.undo.subjects import Change, Touched, find_action
from flagsvc.server.store.undo.undo import find_obstacle

QUERY = "undo"
"""The parameter of an address that has the id of what was just done."""
NOTHING = "nothing"
"""The id where nothing was different."""
UNCHANGED = Notice(("Nothing was different, so nothing is changed.",))
SHOWN = 3
"""The most sentences of a notice."""
YOU = "You"
SWITCHING = ("feature-archived", "feature-revived")
"""The types whose undo switches a flag on or off in all environments, also in protected ones."""
SERVED: Final = re.compile("feature(?!-link|-tag|-untag|s-exported)|strategy-order|segment-|project-(environment-|deleted)|backup-")
"""The beginnings of the kinds of events after which proxies may get other flags."""
PROXY: Final = "flagsvc:"
"""How the name of a client of ours begins."""
NAMED: Final = 3
"""The most proxies that are named."""


def note_done(call: ApiCall, tx: Tx) -> str:
    """Return the id of what a transaction did. Pages tell for a while at which proxies it has arrived."""
    if not tx.pending_events:
        return NOTHING
    call.server.pollers.note_commit(tx.action, Commit(tx.revision, call.server.clock.now()))
    return tx.action


def kept_notice(call: ApiCall) -> str:
    """Return the id in the address, to keep its notice where a page leads to another one."""
    return call.first_value(QUERY) or ""


def find_notice(call: ApiCall, pages: str, back: str) -> Notice | None:
    """Return what the address says was done, if this user did it; else None. `pages` is the path of the pages."""
    action = call.first_value(QUERY)
    if not action or call.caller.actor is None:
        return None
    if action == NOTHING:
        return UNCHANGED
    with call.store.reading() as tx:
        changes = find_action(tx, action)
        if not changes or any(each.by_id != call.actor.id for each in changes):
            return None
        obstacle = find_obstacle(tx, call.actor, changes)
        protected = list_protected(tx)
    may_ever = obstacle is None or not obstacle.permissions or any(map(call.actor.may_ever, obstacle.permissions))
    return Notice(
        tell(changes),
        undo=f"{pages}/history/actions/{segment(action)}/undo" if may_ever else "",
        obstacle="" if obstacle is None else obstacle.reason,
        asks=any(each.environment in protected or (protected and each.type in SWITCHING) for each in changes),
        back=back,
        arrival=describe_arrival(call, action, {Touched(each.type, each.environment, each.project, each.at) for each in changes}),
    )


def tell(changes: Sequence[Change]) -> tuple[str, ...]:
    """Return what the user did, as sentences."""
    shown = [sentence_of(each, YOU) for each in changes[:SHOWN]]
    more = len(changes) - SHOWN
    rest = [f"And {more} more change{'' if more == 1 else 's'}."] if more > 0 else []
    return (*(f"{each}." for each in shown), *rest)


def describe_arrival(call: ApiCall, action: str, touched: Iterable[Touched]) -> Json | None:
    """Return at which proxies a change has arrived; None if it gives proxies no other flags.

    Of an action that another server did, or this server before it started or long ago, the time is not `known`: commits are in
    memory.
    """
    served = [each for each in touched if SERVED.match(each.type)]
    if not served:
        return None
    pollers = call.server.pollers
    known = pollers.find_commit(action)
    commit = known or Commit(None, served[0].at.timestamp())
    places = {(each.environment, each.project) for each in served}
    every = pollers.list_all()
    concerned = [each for each in every if any(is_concerned(each, *place) for place in places)]
    arrival = find_arrival(concerned, commit)
    return arrival._asdict() | {
        "action": action,
        "polled": bool(every),
        "known": known is not None,
        "onlyProxies": all(each.sdk.startswith(PROXY) for each in concerned),
        "missing": [describe_missing(each) for each in arrival.missing[:NAMED]],
        "more": max(0, len(arrival.missing) - NAMED),
    }


def is_concerned(poller: Poller, environment: str | None, project: str | None) -> bool:
    """Return whether an instance asks for the flags of a place; None is every environment, or every project."""
    projects = poller.query.projects
    return environment in (None, poller.query.environment) and (
        project is None or projects is None or ALL in projects or project in projects
    )


def describe_missing(poller: Poller) -> Json:
    polled = format_time(datetime.fromtimestamp(poller.polled, UTC))
    return {"appName": poller.app_name, "instanceId": poller.instance_id, "polled": polled}
