"""`/api/admin/events/:id/undo` and `…/events/actions/:groupId/undo`: undo as new events (ours)."""

from __future__ import annotations

from flagsvc.http.shapes.containers import Array, Object
from flagsvc.http.shapes.scalars import Integer, String
from flagsvc.http.shapes.shape import Named
from flagsvc.server.api.authorization import read_number
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.route import Route
from flagsvc.server.store.store import Tx
from flagsvc.server.store.undo.undo import undo_action, undo_event

TAG = "Events"
UNDONE = Named(
    "undoneSchema",
    Object(
        {
            "groupId": String(description="The id of the new events, which undoes the undo."),
            "events": Integer(minimum=0, description="How many new events there are."),
            "types": Array(String(), description="What happened: the types of the new events."),
        },
        required=("groupId", "events", "types"),
        closed=True,
    ),
)
DESCRIPTION = (
    "What was there before comes back, with id and place, by new events of one transaction, which can be undone, too. It "
    "needs the permission of the opposite operation. 403 names the permission; 409 the later event that stands in its way, by "
    "whom and when, or says why this kind of event has no undo. Then nothing changes. The undo of `features-imported` undoes the "
    "whole import. The real server has no such operation."
)


def read_event_id(call: ApiCall) -> int:
    """Return the id of the event in the path. Raises ShapeError (400) for no number."""
    return read_number(call, "id")


def undo_one(call: ApiCall) -> ApiAnswer:
    """Undo an event."""
    with call.store.writing(call.actor) as tx:
        undo_event(tx, read_event_id(call))
    return answer(tx)


def undo_together(call: ApiCall) -> ApiAnswer:
    """Undo all events of an action."""
    with call.store.writing(call.actor) as tx:
        undo_action(tx, call.params["groupId"])
    return answer(tx)


def answer(tx: Tx) -> ApiAnswer:
    """Return what an undo did."""
    kinds = [each["type"] for each in tx.pending_events]
    return ApiAnswer({"groupId": tx.action, "events": len(kinds), "types": list(dict.fromkeys(kinds))})


ROUTES = (
    Route(
        path="/api/admin/events/:id/undo",
        method="POST",
        handler=undo_one,
        operation="undoEvent",
        summary="Undo an event.",
        description=DESCRIPTION,
        tag=TAG,
        result=UNDONE,
    ),
    Route(
        path="/api/admin/events/actions/:groupId/undo",
        method="POST",
        handler=undo_together,
        operation="undoAction",
        summary="Undo all events of an action.",
        description=DESCRIPTION,
        tag=TAG,
        result=UNDONE,
    ),
)
