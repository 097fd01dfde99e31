"""The shapes of events."""

from __future__ import annotations

from flagsvc.http.shapes.containers import Array, Object
from flagsvc.http.shapes.scalars import Enum, Integer, String
from flagsvc.http.shapes.shape import Named, Nullable
from flagsvc.server.shapes.features import MOMENT, TAG

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
            "tags": Array(TAG, description="The tags of the feature after the change."),
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
CREATORS = Named(
    "eventCreatorsSchema", Array(Object({"id": Integer(), "name": String()}, required=("id", "name"), closed=True))
)
