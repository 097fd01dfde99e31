"""`/api/admin/tags`, and the tags of features, as on the real server."""

from __future__ import annotations

from functools import partial

from flagsvc.http.shapes import Array, Integer, Named, Nullable, Object, String
from flagsvc.server.api.authorization import feature_project
from flagsvc.server.api.route import Route, by_path, reading, versioned, versioned_shape, writing
from flagsvc.server.shapes.features import TAG
from flagsvc.server.store.resources import tags
from flagsvc.server.store.texts import LONGEST_TAG, SHORTEST_TAG

KIND = String(min_length=SHORTEST_TAG, max_length=LONGEST_TAG, description="The tag type.", example="simple")
COLOR = Nullable(String(pattern="^#[0-9A-Fa-f]{6}$"), description="The color of the type; has no effect when sent.")
REQUIRED = ("value", "type")
CREATE = Named(
    "createTagSchema",
    Object(
        {
            "value": String(
                pattern=rf"^\s*\S.{{{SHORTEST_TAG - 2},{LONGEST_TAG - 2}}}\S\s*$",
                description="The value of the tag.",
                example="web",
            ),
            "type": KIND,
            "color": COLOR,
        },
        required=REQUIRED,
        closed=True,
        description="A new tag.",
    ),
)
CHANGES = Named(
    "updateTagsSchema",
    Object(
        {
            "addedTags": Array(TAG, description="The tags to add; missing ones are created."),
            "removedTags": Array(TAG, description="The tags to remove afterwards."),
        },
        required=("addedTags", "removedTags"),
        closed=True,
        description="The changes of a feature's tags.",
    ),
)
BULK = Named(
    "tagsBulkAddSchema",
    Object(
        {"features": Array(String(min_length=1), description="Names of features."), "tags": CHANGES},
        required=("features", "tags"),
        closed=True,
        description="The changes of the tags of several features.",
    ),
)
VERSION = Integer(description="Always 1.")
ALL = versioned_shape("tagsSchema", "tags", Array(TAG), VERSION)
ONE = versioned_shape("tagWithVersionSchema", "tag", TAG, VERSION)


PATH = "/api/admin/tags"
OF_FEATURE = "/api/admin/features/:featureName/tags"
TAGS, FEATURES = "Tags", "Features"
MAY = "UPDATE_FEATURE"

LIST = reading(versioned("tags", by_path(tags.list_tags)))

route = partial(Route, tag=TAGS)

ROUTES = (
    route(path=PATH, handler=LIST, operation="getTags", summary="List tags", result=ALL),
    route(
        path=PATH,
        method="POST",
        handler=writing(versioned("tag", by_path(tags.create)), location="tags/{tag[type]}/{tag[value]}"),
        operation="createTag",
        summary="Create a tag",
        description="White space at the ends of the value is removed.",
        body=CREATE,
        status=201,
        result=ONE,
    ),
    route(
        path=f"{PATH}/:type",
        handler=LIST,
        operation="getTagsByType",
        summary="List the tags of a type",
        description="An empty list for a type that does not exist.",
        result=ALL,
    ),
    route(
        path=f"{PATH}/:type/:value",
        handler=reading(versioned("tag", by_path(tags.find))),
        operation="getTag",
        summary="Show a tag",
        result=ONE,
    ),
    route(
        path=f"{PATH}/:type/:value",
        method="DELETE",
        handler=writing(by_path(tags.remove)),
        operation="deleteTag",
        summary="Delete a tag",
        description="It is removed from every feature. A missing tag is not an error.",
        permission=MAY,
    ),
    route(
        path=OF_FEATURE,
        handler=reading(versioned("tags", by_path(tags.tags_of))),
        operation="listTags",
        summary="List the tags of a feature",
        tag=FEATURES,
        result=ALL,
    ),
    route(
        path=OF_FEATURE,
        method="POST",
        handler=writing(by_path(tags.add_to_feature), location="{featureName}/tags"),
        operation="addTag",
        summary="Add a tag to a feature",
        description="A missing tag is created; its type must exist.",
        tag=FEATURES,
        permission=MAY,
        project_of=feature_project,
        body=TAG,
        status=201,
        result=TAG,
    ),
    route(
        path=OF_FEATURE,
        method="PUT",
        handler=writing(
            versioned(
                "tags",
                lambda tx, call: tags.change_tags_of_feature(
                    tx, call.params["featureName"], call.body["addedTags"], call.body["removedTags"]
                ),
            )
        ),
        operation="updateTags",
        summary="Add tags to a feature, and remove tags",
        tag=FEATURES,
        permission=MAY,
        project_of=feature_project,
        body=CHANGES,
        result=ALL,
    ),
    route(
        path=f"{OF_FEATURE}/:type/:value",
        method="DELETE",
        handler=writing(by_path(tags.remove_from_feature)),
        operation="removeTag",
        summary="Remove a tag from a feature",
        description="A missing tag is not an error.",
        tag=FEATURES,
        permission=MAY,
        project_of=feature_project,
    ),
    route(
        path="/api/admin/projects/:projectId/tags",
        method="PUT",
        handler=writing(
            lambda tx, call: tags.change_tags_of_features(
                tx,
                call.params["projectId"],
                call.body["features"],
                call.body["tags"]["addedTags"],
                call.body["tags"]["removedTags"],
            )
        ),
        operation="addTagToFeatures",
        summary="Add tags to features of a project, and remove tags",
        permission=MAY,
        body=BULK,
    ),
)
