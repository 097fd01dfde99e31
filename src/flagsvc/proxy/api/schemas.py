"""The shapes of bodies and of query strings (specification: Resources)."""

from __future__ import annotations

from flagsvc.http.first_page import Place
from flagsvc.http.route import Parameter
from flagsvc.http.shapes import Array, Boolean, Integer, Map, Named, Number, Object, OneOf, Record, Schema, String
from flagsvc.proxy.api.reports import MAX_COUNT

TEXT = String()
FLAG = Boolean()
NAMES = Array(TEXT)
COUNT = Integer(minimum=0, maximum=MAX_COUNT)
DATE = String(format="date-time")
SCALARS = ["string", "number", "boolean", "null"]


class Scalar(String):
    """A text. Any value that is neither array nor object may be sent for it."""

    def schema(self) -> Schema:
        """Return the schema."""
        return {"type": SCALARS}


class Time(Scalar):
    """A moment as callers of an evaluation write it."""

    def schema(self) -> Schema:
        """Return the schema."""
        return {
            "description": "A date as JavaScript reads it, or epoch milliseconds; anything else is ignored.",
            "type": SCALARS,
        }


CONTEXT_FIELDS = {
    "appName": "Name of the application; without it the proxy's own.",
    "environment": "Environment; an environment set on the proxy wins.",
    "userId": "The user.",
    "sessionId": "The session; without it each answer that is a list draws a random one.",
    "remoteAddress": "Address of the user; without it the caller's.",
}
CONTEXT_PARAMETERS = (
    *(Parameter(name, text) for name, text in CONTEXT_FIELDS.items()),
    Parameter("currentTime", "A date as JavaScript reads it."),
    Parameter(
        "properties",
        "Further fields: `properties[region]=eu`. A parameter of any other name is a property too.",
        style="deepObject",
        schema={
            "type": "object",
            "propertyNames": {"pattern": r"^[^\[\]]+$"},
            "additionalProperties": {"type": "string"},
            "examples": [{}],
        },
    ),
)
"""The parameters that make a context."""

PAYLOAD = Named("Payload", Record({"type": TEXT, "value": TEXT}))
VARIANT = Named("Variant", Record({"name": TEXT, "enabled": FLAG, "payload": PAYLOAD}, required=("name", "enabled")))
TOGGLE = Named(
    "Toggle",
    Record(
        {"name": TEXT, "enabled": FLAG, "impressionData": FLAG, "variant": VARIANT},
        required=("name", "enabled", "impressionData", "variant"),
    ),
)
TOGGLES = Named("Toggles", Record({"toggles": Array(TOGGLE)}, required=("toggles",), closed=True))
CONTEXT = Named(
    "Context",
    Record(
        {name: Scalar(description=text) for name, text in CONTEXT_FIELDS.items()}
        | {"currentTime": Time(), "properties": Map(Scalar())},
        description="Who asks. Any further field is a property of that name.",
    ),
)
LOOKUP = Named("Lookup", Record({"toggles": NAMES, "context": CONTEXT}))
COUNTS = Named("Counts", Record({"yes": COUNT, "no": COUNT, "variants": Map(COUNT)}))
BUCKET = Named(
    "Bucket", Record({"start": DATE, "stop": DATE, "toggles": Map(COUNTS)}, required=("start", "stop", "toggles"))
)
METRICS = Named(
    "Metrics",
    Record(
        {"appName": TEXT, "instanceId": TEXT, "environment": TEXT, "bucket": BUCKET},
        required=("appName", "instanceId", "bucket"),
    ),
)
REGISTRATION = Named(
    "Registration",
    Record(
        {
            "appName": TEXT,
            "instanceId": TEXT,
            "sdkVersion": TEXT,
            "interval": Number(),
            "started": OneOf(DATE, Number()),
            "strategies": NAMES,
        },
        required=("appName", "interval", "started", "strategies"),
    ),
)
FEATURES = Named("Features", Record({"version": Integer(), "features": Array()}, required=("features",)))
ENDPOINT = Named("Place", Record(dict.fromkeys(Place._fields, TEXT), required=Place._fields, closed=True))
FIRST_PAGE = Named(
    "Welcome",
    Record(
        {"name": TEXT, "description": TEXT, "endpoints": Array(ENDPOINT)},
        required=("name", "description", "endpoints"),
        closed=True,
    ),
)
DOCUMENT = Named("Document", Record({"openapi": TEXT, "info": Object(), "paths": Object()}, required=("openapi",)))
PROBLEM = Named(
    "Problem", Record({"instancePath": TEXT, "message": TEXT}, required=("instancePath", "message"), closed=True)
)
ERROR = Named("Error", Record({"error": TEXT, "validation": Array(PROBLEM)}, required=("error",), closed=True))

NAMED: tuple[Named, ...] = (
    *(PAYLOAD, VARIANT, TOGGLE, TOGGLES, CONTEXT, LOOKUP, COUNTS, BUCKET, METRICS, REGISTRATION),
    *(FEATURES, ENDPOINT, FIRST_PAGE, DOCUMENT, PROBLEM, ERROR),
)
"""Every shape with a name, in the order of the OpenAPI document."""

LOOKUP_EXAMPLE = {"context": {"userId": "7", "sessionId": "a1b2", "properties": {"region": "eu"}}}
METRICS_EXAMPLE = {
    "appName": "shop",
    "instanceId": "shop-1",
    "bucket": {
        "start": "2026-01-01T12:00:00Z",
        "stop": "2026-01-01T12:01:00Z",
        "toggles": {"new-checkout": {"yes": 12, "no": 3, "variants": {"disabled": 15}}},
    },
}
REGISTRATION_EXAMPLE = {
    "appName": "shop",
    "instanceId": "shop-1",
    "sdkVersion": "some-sdk:1.0.0",
    "interval": 60,
    "started": "2026-01-01T12:00:00Z",
    "strategies": ["default"],
}
"""A body of each shape that callers send: what the interactive page begins with."""
