"""Undoing one event, or all events of an action: the question before it, and doing it."""

from __future__ import annotations

from collections.abc import Sequence

from flagsvc.http.answers import Answer
from flagsvc.server.api.admin.events import read_event_id
from flagsvc.server.api.call import ApiCall
from flagsvc.server.pages.page import change, go_to, page
from flagsvc.server.pages.sign_in import local_page
from flagsvc.server.store.event_kinds import sentence_of
from flagsvc.server.store.store import Tx
from flagsvc.server.store.undo.opening import find_openings
from flagsvc.server.store.undo.subjects import (
    Change,
    may_see,
    require_action,
    unknown_action,
    unknown_event,
)
from flagsvc.server.store.undo.undo import UNSEEN, changes_of, foresee, undo_action, undo_event

HOME = "/history"
GONE = "-deleted"
"""The end of the kinds of events after which something no longer has a page."""


def ask_event(call: ApiCall) -> Answer:
    """Return the question before an event is undone. Raises CallerError (404), also for one that the caller may not see."""
    number = read_event_id(call)
    with call.store.reading() as tx:
        changes = changes_of(tx, number)
        if not sees_any(call, changes):
            raise unknown_event(number)
        return Answer(describe(call, tx, changes))


def ask_action(call: ApiCall) -> Answer:
    """Return the question before an action is undone. Raises CallerError (404), also if the caller may see none of its events."""
    with call.store.reading() as tx:
        changes = require_action(tx, call.params["groupId"])
        if not sees_any(call, changes):
            raise unknown_action()
        return Answer(describe(call, tx, changes))


def sees_any(call: ApiCall, changes: Sequence[Change]) -> bool:
    """Return whether the caller may see one of some events."""
    return any(may_see(call.actor, each) for each in changes)


def describe(call: ApiCall, tx: Tx, changes: Sequence[Change]) -> dict[str, object]:
    """Return what the page of the question shows."""
    obstacle = foresee(tx, call.actor, changes)
    opened = [{"feature": each.feature, "environment": each.environment} for each in find_openings(tx, changes)]
    return {
        "events": [sentence_of(each, each.by) if may_see(call.actor, each) else UNSEEN for each in changes],
        "opened": opened if obstacle is None else [],
        "obstacle": "" if obstacle is None else obstacle.reason,
        "later": 0 if obstacle is None else obstacle.later,
        "back": back_of(call.first_value("back") or ""),
    }


def send_event(call: ApiCall) -> Answer:
    """Undo an event. Raises CallerError: 403, 404, and 409 with the reason."""
    with call.store.writing(call.actor, "page") as tx:
        undo_event(tx, read_event_id(call))
    return go_back(call, tx)


def send_action(call: ApiCall) -> Answer:
    """Undo an action. Raises CallerError: 403, 404, and 409 with the reason."""
    with call.store.writing(call.actor, "page") as tx:
        undo_action(tx, call.params["groupId"])
    return go_back(call, tx)


def go_back(call: ApiCall, tx: Tx) -> Answer:
    """Go back to the page of the form, or to its section if the undo deleted something, and tell what was done."""
    place = back_of(call.form.text("back"))
    if any(each["type"].endswith(GONE) for each in tx.pending_events):
        place = "/" + place.split("?")[0].split("/")[1]
    return go_to(call, place, tx)


def back_of(text: str) -> str:
    """Return the page to go back to, below PAGES."""
    return local_page(text) if text else HOME


EVENT, ACTION = "/history/:id/undo", "/history/actions/:groupId/undo"
ROUTES = (
    page(EVENT, ask_event, "undo.html", "The question before an event is undone."),
    page(ACTION, ask_action, "undo.html", "The question before an action is undone."),
    change(EVENT, send_event, stands_for="undoEvent"),
    change(ACTION, send_action, stands_for="undoAction"),
)
