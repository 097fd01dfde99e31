"""`/api/admin/tags`, and the tags of features, as on the real server."""

from __future__ import annotations

from flagsvc.http.shapes import Array, Integer, Named, Nullable, Object, String
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.places import of_feature
from flagsvc.server.api.route import Route
from flagsvc.server.api.texts import location
from flagsvc.server.shapes.features import TAG
from flagsvc.server.store.nouns import tags
from flagsvc.server.store.nouns.tag_types import LONGEST, SHORTEST

KIND = String(min_length=SHORTEST, max_length=LONGEST, description="The tag type.", example="simple")
COLOR = Nullable(String(pattern="^#[0-9A-Fa-f]{6}$"), description="The color of the type; has no effect when sent.")
REQUIRED = ("value", "type")
CREATE = Named(
    "createTagSchema",
    Object(
        {
            "value": String(
                pattern=rf"^\s*\S.{{{SHORTEST - 2},{LONGEST - 2}}}\S\s*$",
                description="What the tag says.",
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
            "addedTags": Array(TAG, description="The tags to put on, made where there are none yet."),
            "removedTags": Array(TAG, description="The tags to take off afterwards."),
        },
        required=("addedTags", "removedTags"),
        closed=True,
        description="What changes of the tags of a feature.",
    ),
)
BULK = Named(
    "tagsBulkAddSchema",
    Object(
        {"features": Array(String(min_length=1), description="The features by name."), "tags": CHANGES},
        required=("features", "tags"),
        closed=True,
        description="What changes of the tags of several features.",
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


def list_all(call: ApiCall) -> ApiAnswer:
    """Answer the tags, all or those of one type."""
    with call.store.reading() as tx:
        return ApiAnswer({"version": 1, "tags": tags.list_tags(tx, call.params.get("type"))})


def show(call: ApiCall) -> ApiAnswer:
    """Answer one tag."""
    with call.store.reading() as tx:
        return ApiAnswer({"version": 1, "tag": tags.find(tx, call.params["type"], call.params["value"])})


def create(call: ApiCall) -> ApiAnswer:
    """Make a tag."""
    with call.store.writing(call.actor) as tx:
        made = tags.create(tx, call.body)
    return ApiAnswer({"version": 1, "tag": made}, 201, location(f"tags/{made['type']}/{made['value']}"))


def remove(call: ApiCall) -> ApiAnswer:
    """Delete a tag."""
    with call.store.writing(call.actor) as tx:
        tags.remove(tx, call.params["type"], call.params["value"])
    return ApiAnswer()


def of_feature_list(call: ApiCall) -> ApiAnswer:
    """Answer the tags of a feature."""
    with call.store.reading() as tx:
        return ApiAnswer({"version": 1, "tags": tags.tags_of(tx, call.params["featureName"])})


def of_feature_add(call: ApiCall) -> ApiAnswer:
    """Put a tag on a feature."""
    name = call.params["featureName"]
    with call.store.writing(call.actor) as tx:
        added = tags.add(tx, name, call.body)
    return ApiAnswer(added, 201, location(f"{name}/tags"))


def of_feature_change(call: ApiCall) -> ApiAnswer:
    """Put tags on a feature and take tags off."""
    body = call.body
    with call.store.writing(call.actor) as tx:
        found = tags.change(tx, call.params["featureName"], body["addedTags"], body["removedTags"])
    return ApiAnswer({"version": 1, "tags": found})


def of_feature_take(call: ApiCall) -> ApiAnswer:
    """Take a tag off a feature."""
    with call.store.writing(call.actor) as tx:
        tags.take(tx, call.params["featureName"], call.params["type"], call.params["value"])
    return ApiAnswer()


def change_several(call: ApiCall) -> ApiAnswer:
    """Put tags on features of a project and take tags off."""
    names, changes = call.body["features"], call.body["tags"]
    with call.store.writing(call.actor) as tx:
        tags.change_several(tx, call.params["projectId"], names, changes["addedTags"], changes["removedTags"])
    return ApiAnswer()


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
        summary="Make a tag",
        description="White space at the ends of the value is dropped.",
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
        description="None for a type that does not exist.",
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
        description="It goes from every feature. One that does not exist is no error.",
        tag=TAGS,
        permission=MAY,
    ),
    Route(
        path=OF_FEATURE,
        handler=of_feature_list,
        operation="listTags",
        summary="List the tags of a feature",
        tag=FEATURES,
        result=ALL,
    ),
    Route(
        path=OF_FEATURE,
        method="POST",
        handler=of_feature_add,
        operation="addTag",
        summary="Put a tag on a feature",
        description="The tag is made where there is none yet; its type must be there.",
        tag=FEATURES,
        permission=MAY,
        project_of=of_feature,
        body=TAG,
        status=201,
        result=TAG,
    ),
    Route(
        path=OF_FEATURE,
        method="PUT",
        handler=of_feature_change,
        operation="updateTags",
        summary="Put tags on a feature and take tags off",
        tag=FEATURES,
        permission=MAY,
        project_of=of_feature,
        body=CHANGES,
        result=ALL,
    ),
    Route(
        path=f"{OF_FEATURE}/:type/:value",
        method="DELETE",
        handler=of_feature_take,
        operation="removeTag",
        summary="Take a tag off a feature",
        description="One that it does not have is no error.",
        tag=FEATURES,
        permission=MAY,
        project_of=of_feature,
    ),
    Route(
        path="/api/admin/projects/:projectId/tags",
        method="PUT",
        handler=change_several,
        operation="addTagToFeatures",
        summary="Put tags on features of a project and take tags off",
        tag=TAGS,
        permission=MAY,
        body=BULK,
    ),
)
