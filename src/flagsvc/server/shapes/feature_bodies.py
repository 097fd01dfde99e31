"""Bodies of requests and answers about features and their strategies (the real server's OpenAPI, 7.5.1)."""

from __future__ import annotations

from flagsvc.http.shapes import Anything, Array, Boolean, Enum, Integer, Named, Nullable, Number, Object, String
from flagsvc.server.shapes.features import FEATURE_ENVIRONMENT, TAG, WHEN
from flagsvc.server.shapes.strategies import CONSTRAINT, CREATE_STRATEGY_VARIANT, PARAMETERS, STRATEGY_VARIANT, VARIANT

KINDS = ("experiment", "kill-switch", "release", "operational", "permission")
KIND = Enum(*KINDS, description="The type of the feature.", example="release")
IMPRESSION = Boolean(description="Whether SDKs emit an event for each evaluation.")
NAMES = Array(String(), description="Names of features.", example=["dark-mode"])

CREATE_FEATURE = Named(
    "createFeatureSchema",
    Object(
        {
            "name": String(description="The name; unique on the server, URL-friendly.", example="dark-mode"),
            "type": KIND,
            "description": Nullable(String(), description="What it is for.", example="A theme for the night"),
            "impressionData": IMPRESSION,
            "tags": Array(TAG, description="Its tags."),
        },
        required=("name",),
        description="A feature to create.",
    ),
)
UPDATE_FEATURE = Named(
    "updateFeatureSchema",
    Object(
        {
            "description": String(description="What it is for.", example="A theme for the night"),
            "type": KIND,
            "stale": Boolean(description="Whether the feature is no longer needed."),
            "archived": Boolean(description="Whether the feature is archived."),
            "impressionData": IMPRESSION,
        },
        description="The description of a feature; absent members get their defaults.",
    ),
)
CLONE_FEATURE = Named(
    "cloneFeatureSchema",
    Object(
        {
            "name": String(description="Name of the copy.", example="dark-mode-2"),
            "replaceGroupId": Boolean(description="Whether the groupId of strategies becomes the new name."),
        },
        required=("name",),
    ),
)
VALIDATE_FEATURE = Named(
    "validateFeatureSchema",
    Object(
        {
            "name": String(description="The name to check.", example="dark-mode"),
            "projectId": Nullable(String(), description="The project whose naming pattern applies.", example="default"),
        },
        required=("name",),
    ),
)
PATCH = Named(
    "patchSchema",
    Object(
        {
            "path": String(description="JSON Pointer to the member to change.", example="/description"),
            "op": Enum("add", "remove", "replace", "copy", "move", "test", description="The operation."),
            "from": String(description="JSON Pointer to the member to copy or move.", example="/type"),
            "value": Anything(description="The new value."),
        },
        required=("path", "op"),
        description="One operation of a JSON Patch (RFC 6902).",
    ),
)
PATCHES = Named("patchesSchema", Array(PATCH, description="A JSON Patch."))
BATCH = Named("batchFeaturesSchema", Object({"features": NAMES}, required=("features",)))
BULK_TOGGLE = Named("bulkToggleFeaturesSchema", Object({"features": NAMES}, required=("features",)))
BATCH_STALE = Named(
    "batchStaleSchema",
    Object({"features": NAMES, "stale": Boolean(description="Stale or not.")}, required=("features", "stale")),
)
ARCHIVING = Named(
    "validateArchiveFeaturesSchema",
    Object(
        {
            "parentsWithChildFeatures": Array(String(), description="Features that others depend on."),
            "hasDeletedDependencies": Boolean(description="Whether dependencies would be deleted."),
        },
        required=("parentsWithChildFeatures", "hasDeletedDependencies"),
        closed=True,
    ),
)
SEGMENT_IDS = Array(Number(), description="Ids of the segments that must hold.", example=[1])
STRATEGY_FIELDS = {
    "title": Nullable(String(), description="A title for people."),
    "disabled": Nullable(Boolean(), description="Whether evaluation skips the strategy."),
    "sortOrder": Number(description="Position among the strategies of the feature.", example=1),
    "constraints": Array(CONSTRAINT, description="Conditions that must all hold."),
}
CREATE_STRATEGY = Named(
    "createFeatureStrategySchema",
    Object(
        {
            "name": String(description="Strategy type.", example="flexibleRollout"),
            **STRATEGY_FIELDS,
            "variants": Array(CREATE_STRATEGY_VARIANT, description="Variants of the strategy."),
            "parameters": PARAMETERS,
            "segments": SEGMENT_IDS,
        },
        required=("name",),
        description="A strategy to add.",
    ),
)
UPDATE_STRATEGY = Named(
    "updateFeatureStrategySchema",
    Object(
        {
            "name": String(description="Strategy type.", example="flexibleRollout"),
            "sortOrder": STRATEGY_FIELDS["sortOrder"],
            "constraints": STRATEGY_FIELDS["constraints"],
            "title": STRATEGY_FIELDS["title"],
            "disabled": STRATEGY_FIELDS["disabled"],
            "variants": Array(STRATEGY_VARIANT, description="Variants of the strategy."),
            "segments": SEGMENT_IDS,
            "parameters": PARAMETERS,
        },
        description="The new content of a strategy.",
    ),
)
SORT_ORDER = Named(
    "setStrategySortOrderSchema",
    Array(
        Object(
            {"id": String(description="Id of a strategy."), "sortOrder": Number(description="Its position.")},
            required=("id", "sortOrder"),
            closed=True,
        )
    ),
)
VARIANTS = Named("variantsSchema", Array(VARIANT, description="Variants of a feature in an environment."))
PUSH_VARIANTS = Named(
    "pushVariantsSchema",
    Object(
        {
            "variants": Array(VARIANT, description="The variants."),
            "environments": Array(String(), description="The environments that get the variants.", example=["development"]),
        }
    ),
)
FEATURE_VARIANTS = Named(
    "featureVariantsSchema",
    Object({"version": Integer(example=1), "variants": Array(VARIANT)}, required=("version", "variants"), closed=True),
)
FEATURE_TYPE = Named(
    "featureTypeSchema",
    Object(
        {
            "id": Enum(*KINDS),
            "name": String(description="A title for people.", example="Release"),
            "description": String(description="What it is for."),
            "lifetimeDays": Nullable(Integer(), description="The expected lifetime in days; null: unlimited."),
        },
        required=("id", "name", "description", "lifetimeDays"),
        closed=True,
    ),
)
FEATURE_TYPES = Named(
    "featureTypesSchema",
    Object({"version": Integer(example=1), "types": Array(FEATURE_TYPE)}, required=("version", "types"), closed=True),
)
OVERVIEW_FIELDS = {
    "name": String(),
    "type": String(),
    "description": Nullable(String()),
    "stale": Boolean(),
    "favorite": Boolean(),
    "impressionData": Boolean(),
    "createdAt": String(format="date-time"),
    "lastSeenAt": WHEN,
    "environments": Array(FEATURE_ENVIRONMENT),
    "tags": Array(TAG),
}
SHOWN_FEATURE = Named(
    "featureDetailSchema",
    Object(
        OVERVIEW_FIELDS | {"project": String(), "archived": Boolean()},
        required=("name", "type", "project"),
        description="A feature, as answers to requests and changes contain it.",
    ),
)
PROJECT_FEATURE = Named(
    "projectFeatureSchema",
    Object(OVERVIEW_FIELDS, required=tuple(OVERVIEW_FIELDS)[:-1], description="A feature in a list."),
)
PROJECT_FEATURES = Named(
    "projectFeaturesSchema",
    Object(
        {"version": Integer(example=2), "features": Array(PROJECT_FEATURE)},
        required=("version", "features"),
        closed=True,
    ),
)
SEARCHED = Named(
    "featureSearchResponseSchema",
    Object(
        OVERVIEW_FIELDS
        | {
            "project": String(),
            "archivedAt": WHEN,
            "dependencyType": Nullable(Enum("parent", "child")),
            "segments": Array(String(), description="Names of its segments."),
        },
        required=("name", "type", "project", "environments", "segments"),
        description="A feature in a search result.",
    ),
)
SEARCH_RESULT = Named(
    "searchFeaturesSchema",
    Object(
        {"features": Array(SEARCHED), "total": Integer(description="The number of features on all pages.")},
        required=("features",),
        closed=True,
    ),
)
