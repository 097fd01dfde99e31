"""What clients get, as shapes: the document (dialects: Client API)."""

from __future__ import annotations

from flagsvc.http.shapes import Array, Boolean, Integer, Map, Named, Nullable, Object, String

TEXT = String()
TEXTS = Array(TEXT)
COUNT = Integer(minimum=0)

CONSTRAINTS = Array(Object({"contextName": TEXT, "operator": TEXT}, required=("contextName", "operator")))
STRATEGY = Object(
    {
        "name": TEXT,
        "constraints": CONSTRAINTS,
        "parameters": Map(TEXT),
        "variants": Array(Object({"name": TEXT, "weight": COUNT}, required=("name", "weight"))),
        "segments": Array(Integer(), description="Ids of segments of the document."),
    },
    required=("name", "constraints", "parameters"),
)

FEATURE = Named(
    "clientFeatureSchema",
    Object(
        {
            "name": TEXT,
            "type": TEXT,
            "enabled": Boolean(),
            "project": TEXT,
            "stale": Boolean(),
            "strategies": Array(STRATEGY),
            "variants": Array(Object({"name": TEXT, "weight": COUNT}, required=("name", "weight"))),
            "description": Nullable(TEXT),
            "impressionData": Boolean(),
            "dependencies": Array(
                Object({"feature": TEXT, "enabled": Boolean(), "variants": TEXTS}, required=("feature",))
            ),
        },
        required=("name", "enabled"),
    ),
)

FEATURES = Named(
    "clientFeaturesSchema",
    Object(
        {
            "version": Integer(description="2: the format of the document."),
            "features": Array(FEATURE),
            "query": Object(
                {
                    "tag": Array(TEXTS),
                    "project": TEXTS,
                    "namePrefix": TEXT,
                    "environment": TEXT,
                    "inlineSegmentConstraints": Boolean(),
                }
            ),
            "segments": Array(
                Object({"id": Integer(), "name": TEXT, "constraints": CONSTRAINTS}, required=("id", "constraints")),
                description="The segments in use; not there for SDKs that know none.",
            ),
            "meta": Object({"revisionId": Integer(), "etag": TEXT, "queryHash": TEXT}),
        },
        required=("version", "features"),
    ),
)
