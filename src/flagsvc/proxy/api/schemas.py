"""The shapes of bodies as JSON Schema, for the OpenAPI document (specification: Resources)."""

from __future__ import annotations

from flagsvc.proxy.api.reports import MAX_COUNT

TEXT = {"type": "string"}
SCALAR = {"type": ["string", "number", "boolean", "null"]}
COUNT = {"type": "integer", "minimum": 0, "maximum": MAX_COUNT}
DATE = {"type": "string", "format": "date-time"}
TIME = {
    "description": "A date as JavaScript reads it, or epoch milliseconds; anything else is ignored.",
    "type": ["string", "number", "boolean", "null"],
}
NAMES = {"type": "array", "items": TEXT}

CONTEXT_FIELDS = {
    "appName": "Name of the application; without it the proxy's own.",
    "environment": "Environment; an environment set on the proxy wins.",
    "userId": "The user.",
    "sessionId": "The session; without it each answer that is a list draws a random one.",
    "remoteAddress": "Address of the user; without it the caller's.",
}


def ref(name: str) -> dict[str, object]:
    """Return a reference to one of SCHEMAS."""
    return {"$ref": f"#/components/schemas/{name}"}


def record(properties: dict[str, object], *required: str, closed: bool = False) -> dict[str, object]:
    """Return the schema of an object; `closed` allows no further properties."""
    schema: dict[str, object] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)
    if closed:
        schema["additionalProperties"] = False
    return schema


SCHEMAS: dict[str, dict[str, object]] = {
    "Payload": record({"type": TEXT, "value": TEXT}),
    "Variant": record(
        {"name": TEXT, "enabled": {"type": "boolean"}, "payload": ref("Payload")},
        "name",
        "enabled",
    ),
    "Toggle": record(
        {
            "name": TEXT,
            "enabled": {"type": "boolean"},
            "impressionData": {"type": "boolean"},
            "variant": ref("Variant"),
        },
        "name",
        "enabled",
        "impressionData",
        "variant",
    ),
    "Toggles": record({"toggles": {"type": "array", "items": ref("Toggle")}}, "toggles", closed=True),
    "Context": {
        **record(
            {name: {**SCALAR, "description": text} for name, text in CONTEXT_FIELDS.items()}
            | {"currentTime": TIME, "properties": {"type": "object", "additionalProperties": SCALAR}}
        ),
        "description": "Who asks. Any further field is a property of that name.",
    },
    "Lookup": record({"toggles": NAMES, "context": ref("Context")}),
    "Counts": record({"yes": COUNT, "no": COUNT, "variants": {"type": "object", "additionalProperties": COUNT}}),
    "Bucket": record(
        {"start": DATE, "stop": DATE, "toggles": {"type": "object", "additionalProperties": ref("Counts")}},
        "start",
        "stop",
        "toggles",
    ),
    "Metrics": record(
        {"appName": TEXT, "instanceId": TEXT, "environment": TEXT, "bucket": ref("Bucket")},
        "appName",
        "instanceId",
        "bucket",
    ),
    "Registration": record(
        {
            "appName": TEXT,
            "instanceId": TEXT,
            "sdkVersion": TEXT,
            "interval": {"type": "number"},
            "started": {"oneOf": [DATE, {"type": "number"}]},
            "strategies": NAMES,
        },
        "appName",
        "interval",
        "started",
        "strategies",
    ),
    "Features": record({"version": {"type": "integer"}, "features": {"type": "array"}}, "features"),
    "Place": record(
        {"method": TEXT, "path": TEXT, "description": TEXT, "key": TEXT},
        *("method", "path", "description", "key"),
        closed=True,
    ),
    "Welcome": record(
        {"name": TEXT, "description": TEXT, "endpoints": {"type": "array", "items": ref("Place")}},
        *("name", "description", "endpoints"),
        closed=True,
    ),
    "Document": record({"openapi": TEXT, "info": {"type": "object"}, "paths": {"type": "object"}}, "openapi"),
    "Problem": record({"instancePath": TEXT, "message": TEXT}, "instancePath", "message", closed=True),
    "Error": record({"error": TEXT, "validation": {"type": "array", "items": ref("Problem")}}, "error", closed=True),
}
"""Every named shape."""

EXAMPLES: dict[str, object] = {
    "Lookup": {"context": {"userId": "7", "sessionId": "a1b2", "properties": {"region": "eu"}}},
    "Metrics": {
        "appName": "shop",
        "instanceId": "shop-1",
        "bucket": {
            "start": "2026-01-01T12:00:00Z",
            "stop": "2026-01-01T12:01:00Z",
            "toggles": {"new-checkout": {"yes": 12, "no": 3, "variants": {"disabled": 15}}},
        },
    },
    "Registration": {
        "appName": "shop",
        "instanceId": "shop-1",
        "sdkVersion": "some-sdk:1.0.0",
        "interval": 60,
        "started": "2026-01-01T12:00:00Z",
        "strategies": ["default"],
    },
}
"""A body of each shape that callers send: what the interactive page begins with."""
