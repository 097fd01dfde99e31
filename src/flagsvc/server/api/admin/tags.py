"""`/api/admin/tags`, and the tags of features, as on the real server."""

from __future__ import annotations

from flagsvc.http.answers import Answer
from flagsvc.http.shapes import Array, Integer, Named, Nullable, Object, String
from flagsvc.server.api.authorization import feature_project
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import Route, location_header
from flagsvc.server.shapes.features import TAG
from flagsvc.server.store.resources import tags
from flagsvc.server.store.resources.tag_types import MAX_LENGTH, MIN_LENGTH

KIND = String(min_length=MIN_LENGTH, max_length=MAX_LENGTH, description="The tag type.", example="simple")
COLOR = Nullable(String(pattern="^#[0-9A-Fa-f]{6}$"), description="The color of the type; has no effect when sent.")
REQUIRED = ("value", "type")
CREATE = Named(
    "createTagSchema",
    Object(
        {
            "value": String(
                pattern=rf"^\s*\S.{{{MIN_LENGTH - 2},{MAX_LENGTH - 2}}}\S\s*$",
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
ALL = Named(
    "tagsSchema",
    Object({"version": VERSION, "tags": Array(TAG)}, required=("version", "tags"), closed=True),
)
ONE = Named(
    "tagWithVersionSchema",
    Object({"version": VERSION, "tag": TAG}, required=("version", "tag"), closed=True),
)


def list_all(call: ApiCall) -> Answer:
    """Answer all tags, or those of one type."""
    with call.store.reading() as tx:
        return Answer({"version": 1, "tags": tags.list_tags(tx, call.params.get("type"))})


def show(call: ApiCall) -> Answer:
    """Answer one tag."""
    with call.store.reading() as tx:
        return Answer({"version": 1, "tag": tags.find(tx, call.params["type"], call.params["value"])})


def create(call: ApiCall) -> Answer:
    """Create a tag."""
    with call.store.writing(call.actor) as tx:
        created = tags.create(tx, call.body)
    return Answer({"version": 1, "tag": created}, 201, location_header(f"tags/{created['type']}/{created['value']}"))


def remove(call: ApiCall) -> Answer:
    """Delete a tag."""
    with call.store.writing(call.actor) as tx:
        tags.remove(tx, call.params["type"], call.params["value"])
    return Answer()


def list_for_feature(call: ApiCall) -> Answer:
    """Answer the tags of a feature."""
    with call.store.reading() as tx:
        return Answer({"version": 1, "tags": tags.tags_of(tx, call.params["featureName"])})


def add_to_feature(call: ApiCall) -> Answer:
    """Add a tag to a feature."""
    name = call.params["featureName"]
    with call.store.writing(call.actor) as tx:
        added = tags.add_to_feature(tx, name, call.body)
    return Answer(added, 201, location_header(f"{name}/tags"))


def change_for_feature(call: ApiCall) -> Answer:
    """Add tags to a feature, and remove tags."""
    body = call.body
    with call.store.writing(call.actor) as tx:
        found = tags.change_tags_of_feature(tx, call.params["featureName"], body["addedTags"], body["removedTags"])
    return Answer({"version": 1, "tags": found})


def remove_from_feature(call: ApiCall) -> Answer:
    """Remove a tag from a feature."""
    with call.store.writing(call.actor) as tx:
        tags.remove_from_feature(tx, call.params["featureName"], call.params["type"], call.params["value"])
    return Answer()


def change_for_features(call: ApiCall) -> Answer:
    """Add tags to features of a project, and remove tags."""
    names, changes = call.body["features"], call.body["tags"]
    with call.store.writing(call.actor) as tx:
        tags.change_tags_of_features(tx, call.params["projectId"], names, changes["addedTags"], changes["removedTags"])
    return Answer()


PATH = "/api/admin/tags"
OF_FEATURE = "/api/admin/features/:featureName/tags"
TAGS, FEATURES = "Tags", "Features"
MAY = "UPDATE_FEATURE"

ROUTES = (
    Route(path=PATH, handler=list_all, operation="getTags", summary="List tags", tag=TAGS, result=ALL),
    Route(
        path=PATH,
        method="POST",
        handler=create,
        operation="createTag",
        summary="Create a tag",
        description="White space at the ends of the value is removed.",
        tag=TAGS,
        body=CREATE,
        status=201,
        result=ONE,
    ),
    Route(
        path=f"{PATH}/:type",
        handler=list_all,
        operation="getTagsByType",
        summary="List the tags of a type",
        description="An empty list for a type that does not exist.",
        tag=TAGS,
        result=ALL,
    ),
    Route(
        path=f"{PATH}/:type/:value",
        handler=show,
        operation="getTag",
        summary="Show a tag",
        tag=TAGS,
        result=ONE,
    ),
    Route(
        path=f"{PATH}/:type/:value",
        method="DELETE",
        handler=remove,
        operation="deleteTag",
        summary="Delete a tag",
        description="It is removed from every feature. A missing tag is not an error.",
        tag=TAGS,
        permission=MAY,
    ),
    Route(
        path=OF_FEATURE,
        handler=list_for_feature,
        operation="listTags",
        summary="List the tags of a feature",
        tag=FEATURES,
        result=ALL,
    ),
    Route(
        path=OF_FEATURE,
        method="POST",
        handler=add_to_feature,
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
    Route(
        path=OF_FEATURE,
        method="PUT",
        handler=change_for_feature,
        operation="updateTags",
        summary="Add tags to a feature, and remove tags",
        tag=FEATURES,
        permission=MAY,
        project_of=feature_project,
        body=CHANGES,
        result=ALL,
    ),
    Route(
        path=f"{OF_FEATURE}/:type/:value",
        method="DELETE",
        handler=remove_from_feature,
        operation="removeTag",
        summary="Remove a tag from a feature",
        description="A missing tag is not an error.",
        tag=FEATURES,
        permission=MAY,
        project_of=feature_project,
    ),
    Route(
        path="/api/admin/projects/:projectId/tags",
        method="PUT",
        handler=change_for_features,
        operation="addTagToFeatures",
        summary="Add tags to features of a project, and remove tags",
        tag=TAGS,
        permission=MAY,
        body=BULK,
    ),
)
