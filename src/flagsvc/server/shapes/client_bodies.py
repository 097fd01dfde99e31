"""What clients send and get, as shapes: registrations, usage metrics, and the document (dialects: Client API)."""

from __future__ import annotations

from flagsvc.http.shapes import AnyOf, Array, Boolean, Enum, Integer, Map, Named, Nullable, Number, Object, String

TEXT = String()
TEXTS = Array(TEXT)
COUNT = Integer(minimum=0)
MOMENT = AnyOf(
    String(format="date-time"),
    Number(),
    description="A date-time, or a time in seconds or milliseconds since the epoch.",
    example="2026-03-04T12:00:00.000Z",
)
ABOUT = dict.fromkeys(("platformName", "platformVersion", "yggdrasilVersion", "specVersion"), TEXT)
SDK = String(description="Name and version of the SDK.", example="some-sdk:1.2.3")

REGISTRATION = Named(
    "clientApplicationSchema",
    Object(
        {
            "appName": String(description="The application that uses the SDK.", example="shop"),
            "instanceId": String(description="One running instance of it; `default` if absent."),
            "sdkVersion": SDK,
            "environment": String(description="Ignored: the token has an environment."),
            **ABOUT,
            "interval": Number(minimum=0, description="How often it fetches the configuration."),
            "started": MOMENT,
            "strategies": Array(TEXT, description="Names of the strategies that the SDK knows."),
        },
        required=("appName", "interval", "started", "strategies"),
    ),
)

COUNTS = Object(
    {
        "yes": Number(minimum=0, description="How often it was on."),
        "no": Integer(minimum=0, description="How often it was off."),
        "variants": Nullable(Map(COUNT), description="How often each variant was given, by name."),
    }
)

METRICS = Named(
    "clientMetricsSchema",
    Object(
        {
            "appName": TEXT,
            "instanceId": TEXT,
            "environment": String(description="Ignored: the token has an environment."),
            "sdkVersion": SDK,
            **ABOUT,
            "bucket": Object(
                {
                    "start": MOMENT,
                    "stop": MOMENT,
                    "toggles": Map(COUNTS, description="By name of the flag.", example={"flag": {"yes": 3, "no": 1}}),
                },
                required=("start", "stop", "toggles"),
                description="What was counted since the last report.",
            ),
        },
        required=("appName", "bucket"),
    ),
)

BULK_REGISTRATION = Named(
    "bulkRegistrationSchema",
    Object(
        {
            "connectVia": Array(Object({"appName": TEXT, "instanceId": TEXT}, required=("appName", "instanceId"))),
            "appName": TEXT,
            "environment": TEXT,
            "instanceId": TEXT,
            "interval": Number(),
            "started": MOMENT,
            "strategies": TEXTS,
            "projects": TEXTS,
            "sdkVersion": SDK,
            "sdkType": Nullable(Enum("frontend", "backend")),
        },
        required=("appName", "instanceId", "environment"),
    ),
)

BULK_METRICS = Named(
    "bulkMetricsSchema",
    Object(
        {
            "applications": Array(BULK_REGISTRATION),
            "metrics": Array(
                Named(
                    "clientMetricsEnvSchema",
                    Object(
                        {
                            "featureName": TEXT,
                            "appName": TEXT,
                            "environment": String(
                                description="Counts of another environment than the token's are dropped."
                            ),
                            "timestamp": MOMENT,
                            "yes": COUNT,
                            "no": COUNT,
                            "variants": Map(COUNT),
                        },
                        required=("featureName", "appName", "environment"),
                    ),
                )
            ),
        },
        required=("applications", "metrics"),
    ),
)

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
