"""`/api/admin/events`, `/api/admin/search/events`: what was changed, who changed it and how (decision 0027); and undoing it."""

from __future__ import annotations

import re
from datetime import datetime
from functools import partial

from flagsvc.http.route import Parameter
from flagsvc.http.shapes import Shape, check
from flagsvc.http.shapes.containers import Array, Object
from flagsvc.http.shapes.scalars import Enum, Integer, String
from flagsvc.http.shapes.shape import Named, Nullable
from flagsvc.server.api.authorization import read_number
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.errors import invalid
from flagsvc.server.api.route import Route, by_path, reading, writing
from flagsvc.server.shapes.features import MOMENT
from flagsvc.server.shapes.features import TAG as FEATURE_TAG
from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources import events
from flagsvc.server.store.resources.events import LAST, LAST_OF_ONE, EventSearch, read_day
from flagsvc.server.store.resources.feature_search import MAX_VALUES
from flagsvc.server.store.store import Tx
from flagsvc.server.store.texts import split_list
from flagsvc.server.store.undo.undo import undo_action, undo_event

TAG = "Events"
route = partial(Route, tag=TAG)
WORDS, NUMBERS, DAY = (
    String(pattern="^(IS|IS_ANY_OF):(.*?)(,([a-zA-Z0-9_]+))*$"),
    String(pattern="^(IS|IS_ANY_OF):(.*?)(,([0-9]+))*$"),
    String(pattern=r"^(IS):\d{4}-\d{2}-\d{2}$"),
)
FILTERS: dict[str, Shape] = {
    **dict.fromkeys(("feature", "project", "type", "createdBy", "environment"), WORDS),
    **dict.fromkeys(("id", "groupId"), NUMBERS),
}
"""Filter → the shape of its text, `OPERATOR:value,value`."""
DAYS: dict[str, Shape] = {"from": DAY, "to": DAY}
NUMERIC = ("id", "createdBy")
"""The filters whose values are numbers."""
ID = re.compile(r"-?\d{1,18}", re.ASCII)
NUMBER = re.compile(r"\s*([+-]?\d{1,9})(\.\d*)?\s*", re.ASCII)
MAX_LIMIT = 1000
MAX_OFFSET = 2**31

EVENT = Named(
    "eventSchema",
    Object(
        {
            "id": Integer(minimum=1),
            "type": String(description="What happened.", example="feature-created"),
            "createdBy": String(description="Who did it.", example="ada"),
            "createdAt": MOMENT,
            "createdByUserId": Nullable(Integer(), description="Their id; null for the server itself."),
            "data": Nullable(Object({}), description="What is there now, as far as the real server shows it."),
            "preData": Nullable(Object({}), description="What was there before, as far as the real server shows it."),
            "tags": Array(FEATURE_TAG, description="The tags of the feature after the change."),
            "featureName": Nullable(String()),
            "project": Nullable(String()),
            "environment": Nullable(String()),
            "groupType": Enum("transaction"),
            "groupId": String(description="The same for all events of one request."),
            "tokenName": Nullable(String(), description="The name of the token that was used."),
            "way": Nullable(
                Enum("api", "page", "import", "seed", "start", "command", "sign-in"),
                description="How the change came about.",
            ),
            "before": Nullable(Object({}), description="All that was there before."),
            "after": Nullable(Object({}), description="All that is there now."),
            "label": String(description="The type in words."),
            "summary": String(description="The event as a sentence, with names in bold (Markdown)."),
        },
        required=("id", "createdAt", "type", "createdBy"),
        closed=True,
        description="A change, with what was before and what is after it.",
    ),
)
LISTED = {"version": Integer(example=1), "events": Array(EVENT)}
TOTAL = Integer(minimum=0, description="How many there are, on all pages.")
EVENTS = Named("eventsSchema", Object(LISTED | {"totalEvents": TOTAL}, required=("version", "events"), closed=True))
FEATURE_EVENTS = Named(
    "featureEventsSchema",
    Object(LISTED | {"toggleName": String(), "totalEvents": TOTAL}, required=("events",), closed=True),
)
SEARCH_RESULT = Named(
    "eventSearchResponseSchema",
    Object({"events": Array(EVENT), "total": TOTAL}, required=("events", "total"), closed=True),
)
CREATORS = Named("eventCreatorsSchema", Array(Object({"id": Integer(), "name": String()}, required=("id", "name"), closed=True)))


def list_events(tx: Tx, call: ApiCall) -> Json:
    """Return the last events, of the server or of one project."""
    found, total = events.list_last(tx, project=_read(call, "project", String()))
    return {"version": 1, "events": found, "totalEvents": total}


def list_events_of_feature(tx: Tx, call: ApiCall) -> Json:
    """Return the last events of a feature, also of one that is deleted."""
    name = call.params["featureName"]
    found, total = events.list_last(tx, feature=name)
    return {"version": 1, "toggleName": name, "events": found, "totalEvents": total}


def search(tx: Tx, call: ApiCall) -> Json:
    """Return a page of events. Without the permission ADMIN, only events of projects are found."""
    wanted = EventSearch(
        text=_read(call, "query", String()) or "",
        filters={name: _values(call, name) for name in FILTERS},
        since=_day(call, "from"),
        until=_day(call, "to"),
        all_projects=call.actor.may("ADMIN"),
        offset=_number(call.first_value("offset"), 0, least=0, most=MAX_OFFSET),
        limit=_number(call.first_value("limit"), LAST_OF_ONE, least=1, most=MAX_LIMIT),
    )
    found, total = events.search(tx, wanted)
    return {"events": found, "total": total}


def _read(call: ApiCall, name: str, shape: Shape) -> str | None:
    """Return a parameter of the query string; None without one. Raises ShapeError, also for a repeated one."""
    given = call.query.get(name)
    if given is None:
        return None
    return str(check(shape, given[0] if len(given) == 1 else given, f"/query/{name}"))


def _values(call: ApiCall, name: str) -> list[str | int]:
    """Return the values of a filter; none for a filter without values. Raises ShapeError, and ApiError (400) for no number."""
    text = _read(call, name, FILTERS[name]) or ""
    values = [each for each in split_list(text.partition(":")[2], name, MAX_VALUES) if each]
    if name not in NUMERIC:
        return list(values)
    wrong = next((each for each in values if not ID.fullmatch(each)), None)
    if wrong is not None:
        raise _unreadable(name, "numbers", wrong)
    return [int(each) for each in values]


def _day(call: ApiCall, name: str) -> datetime | None:
    """Return a day. Raises ShapeError, and ApiError (400) for a day that does not exist."""
    text = _read(call, name, DAYS[name])
    if text is None:
        return None
    try:
        return read_day(text.partition(":")[2])
    except ValueError:
        raise _unreadable(name, "a day that exists", text) from None


def _unreadable(name: str, wanted: str, given: str) -> Exception:
    """Return the 400 for a value that fits its pattern and means nothing (ours: the real server answers 500)."""
    place = f"/query/{name}"
    return invalid([{"message": f'The `{place}` property must be {wanted}. You sent "{given[:100]}".', "path": place}])


def _number(text: str | None, default: int, *, least: int, most: int) -> int:
    """Return a number without its fraction; `default` for any other text, and for one out of bounds."""
    found = NUMBER.fullmatch(text or "")
    value = int(found[1]) if found else default
    return value if least <= value <= most else default


FILTER = "`OPERATOR:value,value`, the operator IS or IS_ANY_OF."


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


def undo(tx: Tx, call: ApiCall) -> Json:
    """Undo an event, or all events of an action, and return what that did."""
    if "groupId" in call.params:
        undo_action(tx, call.params["groupId"])
    else:
        undo_event(tx, read_event_id(call))
    kinds = [each["type"] for each in tx.pending_events]
    return {"groupId": tx.action, "events": len(kinds), "types": list(dict.fromkeys(kinds))}


ROUTES = (
    route(
        path="/api/admin/events",
        handler=reading(list_events),
        operation="getEvents",
        summary=f"List the last {LAST} events, or the last {LAST_OF_ONE} of a project.",
        permission="ADMIN",
        query=(Parameter("project", "Only events of this project."),),
        result=EVENTS,
    ),
    route(
        path="/api/admin/events/:featureName",
        handler=reading(list_events_of_feature),
        operation="getEventsForToggle",
        summary=f"List the last {LAST_OF_ONE} events of a feature.",
        result=FEATURE_EVENTS,
    ),
    route(
        path="/api/admin/search/events",
        handler=reading(search),
        operation="searchEvents",
        summary="Search events.",
        description="Without the permission ADMIN, only events that belong to a project are found.",
        query=(
            Parameter("query", "A text that what was before or after contains, or a tag of the feature."),
            *(Parameter(name, FILTER) for name in FILTERS),
            Parameter("from", "`IS:2024-01-01`: the first day (UTC)."),
            Parameter("to", "`IS:2024-01-31`: the last day (UTC)."),
            Parameter("offset", "How many events to skip."),
            Parameter("limit", f"How many events to return, {LAST_OF_ONE} by default, {MAX_LIMIT} at most."),
        ),
        result=SEARCH_RESULT,
    ),
    route(
        path="/api/admin/event-creators",
        handler=reading(by_path(events.list_creators)),
        operation="getEventCreators",
        summary="List the authors of events.",
        result=CREATORS,
    ),
    route(
        path="/api/admin/events/:id/undo",
        method="POST",
        handler=writing(undo),
        operation="undoEvent",
        summary="Undo an event.",
        description=DESCRIPTION,
        result=UNDONE,
    ),
    route(
        path="/api/admin/events/actions/:groupId/undo",
        method="POST",
        handler=writing(undo),
        operation="undoAction",
        summary="Undo all events of an action.",
        description=DESCRIPTION,
        result=UNDONE,
    ),
)
