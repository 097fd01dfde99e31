"""The bodies of batch validation, import and export (import validation 2; 4; 7).

Version 7.5.1 differs in these places, which tests/integration/test_shapes_real_server.py names: an operator list without
SEMVER_GTE and SEMVER_LTE, no least length of a constraint's `value`, no `safeguards` of a feature environment, and a few
properties that 8.2.0 has dropped.
"""

from __future__ import annotations

from typing import Final

from flagsvc.http.shapes.alternatives import AnyOf
from flagsvc.http.shapes.containers import Array, Object
from flagsvc.http.shapes.scalars import Boolean, Integer, Number, String
from flagsvc.http.shapes.shape import Named, Nullable
from flagsvc.server.shapes.features import COLOR, DEPENDENT, FEATURE, FEATURE_ENVIRONMENT, WHEN
from flagsvc.server.shapes.strategies import FEATURE_STRATEGY

LEGAL_VALUE: Final = Named(
    "legalValueSchema",
    Object(
        {
            "value": String(description="The value.", example="web"),
            "description": String(description="What it stands for.", example="The site"),
        },
        required=("value",),
        closed=True,
        description="A value that a context field may have.",
    ),
)

CONTEXT_FIELD: Final = Named(
    "contextFieldSchema",
    Object(
        {
            "name": String(description="Name of the field.", example="userId"),
            "description": Nullable(String(), description="What it holds.", example="Who is asking"),
            "stickiness": Boolean(description="Whether rollouts may stick to it."),
            "sortOrder": Integer(description="Place in lists.", example=900),
            "createdAt": WHEN,
            "usedInFeatures": Nullable(Integer(minimum=0), description="Number of features that use it."),
            "usedInProjects": Nullable(Integer(minimum=0), description="Number of projects that use it."),
            "legalValues": Array(LEGAL_VALUE, description="The values it may have; none: any."),
            "project": String(description="Project it belongs to, if to one.", example="my-project"),
        },
        required=("name",),
        closed=True,
        description="A field of the evaluation context.",
    ),
)

FEATURE_TAG: Final = Named(
    "featureTagSchema",
    Object(
        {
            "featureName": String(description="Feature.", example="dark-mode"),
            "tagType": String(description="Tag type.", example="simple"),
            "tagValue": String(description="Value of the tag.", example="team-a"),
            "createdByUserId": Nullable(Number(), description="Who put it there.", example=1),
        },
        required=("featureName", "tagValue"),
        closed=True,
        description="A tag of a feature.",
    ),
)

SEGMENT: Final = Object(
    {
        "id": Number(description="Id that strategies of this batch use.", example=1),
        "name": String(example="Beta users"),
    },
    required=("id", "name"),
    closed=True,
    description="A segment that strategies use; it is found by its name.",
)

TAG_TYPE: Final = Named(
    "tagTypeSchema",
    Object(
        {
            "name": String(description="Name of the tag type.", example="simple"),
            "description": String(description="What it is for.", example="Any tag"),
            "icon": Nullable(String(), description="Icon, null for none.", example="#"),
            "color": COLOR,
        },
        required=("name",),
        closed=True,
        description="A tag type.",
    ),
)

FEATURE_DEPENDENCIES: Final = Named(
    "featureDependenciesSchema",
    Object(
        {
            "feature": String(description="Child feature.", example="child-feature"),
            "dependencies": Array(DEPENDENT, description="Its parents."),
        },
        required=("feature", "dependencies"),
        closed=True,
        description="The parents of a feature.",
    ),
)

FEATURE_LINK: Final = Named(
    "featureLinkSchema",
    Object(
        {
            "url": String(description="Address of the page.", example="https://tickets.example.com/1"),
            "title": Nullable(String(), description="Its title.", example="The ticket"),
        },
        required=("url",),
        description="A page about a feature.",
    ),
)

FEATURE_LINKS: Final = Named(
    "featureLinksSchema",
    Object(
        {"feature": String(description="Feature.", example="dark-mode"), "links": Array(FEATURE_LINK)},
        required=("feature", "links"),
        closed=True,
        description="The links of a feature.",
    ),
)

EXPORT_RESULT: Final = Named(
    "exportResultSchema",
    Object(
        {
            "features": Array(FEATURE, description="Features, sorted by name."),
            "featureStrategies": Array(FEATURE_STRATEGY, description="Their strategies in the environment."),
            "featureEnvironments": Array(FEATURE_ENVIRONMENT, description="Whether each is on, and its variants."),
            "contextFields": Array(CONTEXT_FIELD, description="Context fields they use."),
            "featureTags": Array(FEATURE_TAG, description="Their tags."),
            "segments": Array(SEGMENT, description="Segments their strategies use."),
            "tagTypes": Array(TAG_TYPE, description="Types of their tags."),
            "dependencies": Array(FEATURE_DEPENDENCIES, description="Their parents."),
            "links": Array(FEATURE_LINKS, description="Their links."),
        },
        required=("features", "featureStrategies", "tagTypes"),
        closed=True,
        description="A data set: features with what belongs to them in one environment.",
    ),
)

IMPORT: Final = Named(
    "importTogglesSchema",
    Object(
        {
            "project": String(description="Project to import into.", example="default"),
            "environment": String(description="Environment to import into.", example="development"),
            "data": EXPORT_RESULT,
        },
        required=("project", "environment", "data"),
        closed=True,
        description="A data set and where it is to go.",
    ),
)

VALIDATION_ITEM: Final = Named(
    "importTogglesValidateItemSchema",
    Object(
        {
            "message": String(description="What was found."),
            "affectedItems": Array(String(), description="What it was found in.", example=["some-feature"]),
        },
        required=("message", "affectedItems"),
        closed=True,
        description="One finding.",
    ),
)

VALIDATION: Final = Named(
    "importTogglesValidateSchema",
    Object(
        {
            "errors": Array(VALIDATION_ITEM, description="What makes the import impossible."),
            "warnings": Array(VALIDATION_ITEM, description="What an importer should know."),
            "permissions": Array(VALIDATION_ITEM, description="What the caller is not allowed to do, in one item."),
        },
        required=("errors", "warnings"),
        closed=True,
        description="What stands in the way of an import.",
    ),
)

ENVIRONMENT: Final = String(description="Environment to export from; empty: all.", example="development")
DOWNLOAD: Final = Boolean(description="Changes nothing.")

EXPORT_QUERY: Final = Named(
    "exportQuerySchema",
    AnyOf(
        *(
            Object({"environment": ENVIRONMENT, "downloadFile": DOWNLOAD, name: shape}, required=("environment", name))
            for name, shape in {
                "features": Array(String(min_length=1), description="Names of features; none: all."),
                "tag": String(description="Value of a tag that the features have.", example="release"),
                "project": String(description="Project of the features.", example="default"),
            }.items()
        ),
        base=Object(),
        description="What to export: features by name, by tag or of a project.",
    ),
)
