"""The shapes of bodies and of query strings (specification: Resources)."""

from __future__ import annotations

from flagsvc.http.first_page import Place
from flagsvc.http.reports import TEXT
from flagsvc.http.route import Parameter
from flagsvc.http.shapes import Anything, Array, Boolean, Integer, Map, Named, Object, Record, Schema, String
from flagsvc.http.shapes.scalars import PLAIN_TEXT
from flagsvc.http.shapes.shape import MISMATCH, NO_TYPES
from flagsvc.proxy.api.body import loose_text, read_time
from flagsvc.proxy.api.route import ERROR, PROBLEM

FLAG = Boolean()
NAMES = Array(TEXT)
SCALARS = ["string", "number", "boolean", "null"]


class Scalar(String):
    """A text. A caller may send any value that is neither array nor object."""

    def schema(self) -> Schema:
        return {"type": SCALARS}


class Time(Scalar):
    """A time in the forms that callers send."""

    def __init__(self) -> None:
        super().__init__()
        self.plain = NO_TYPES

    def coerced(self, value: object) -> object:
        """Return epoch milliseconds; None for no date."""
        return MISMATCH if isinstance(value, list | dict) else read_time(value)

    def examined(self, value: object) -> object:
        return value

    def schema(self) -> Schema:
        return {
            "description": "A date as JavaScript reads it, or epoch milliseconds; anything else is ignored.",
            "type": SCALARS,
        }


class Loose(Anything):
    """Any value. It is read as the text that JavaScript makes of it; null counts as missing."""

    def __init__(self) -> None:
        super().__init__()
        self.plain = PLAIN_TEXT

    def coerced(self, value: object) -> object:
        return None if value is None else loose_text(value)


class ContextRecord(Record):
    """A record whose description mentions further properties, which its schema does not list."""

    def schema(self) -> Schema:
        return {name: each for name, each in super().schema().items() if name != "additionalProperties"}


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
"""The parameters of a context in a query string."""

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
    ContextRecord(
        {name: Scalar(description=text) for name, text in CONTEXT_FIELDS.items()}
        | {"currentTime": Time(), "properties": Map(Scalar())},
        rest=Loose(),
        description="Who asks. Any further field is a property of that name.",
    ),
)
LOOKUP = Named("Lookup", Record({"toggles": NAMES, "context": CONTEXT}))
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

OPERATION_SHAPES: tuple[Named, ...] = (ENDPOINT, FIRST_PAGE, DOCUMENT, PROBLEM, ERROR)
"""The named shapes that belong to no dialect, in the order of the OpenAPI document."""

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
"""Example bodies, with which the interactive page begins."""
