"""`/api/admin/tag-types`: the types of tags, as on the real server."""

from __future__ import annotations

from functools import partial

from flagsvc.http.answers import Answer
from flagsvc.http.shapes import Array, Boolean, Integer, Named, Nullable, Object, String
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import Route, by_path, reading, versioned, versioned_shape, writing
from flagsvc.server.shapes.batch import TAG_TYPE
from flagsvc.server.store.resources import tag_types

COLOR = "^#[0-9A-Fa-f]{6}$"
DESCRIPTION = String(description="The meaning of tags of this type.", example="Who looks after a feature")
SHOWN = Named(
    "shownTagTypeSchema",
    Object(
        {
            "name": String(),
            "description": Nullable(String()),
            "icon": Nullable(String()),
            "color": Nullable(String(pattern=COLOR)),
        },
        required=("name", "description", "icon", "color"),
        closed=True,
        description="A tag type as it is stored.",
    ),
)
UPDATE = Named(
    "updateTagTypeSchema",
    Object(
        {"description": DESCRIPTION, "icon": String(), "color": String(pattern=COLOR)},
        description="The changes of a tag type.",
    ),
)
VERSION = Integer(description="Always 1.")
ONE = versioned_shape("tagTypeWithVersionSchema", "tagType", SHOWN, VERSION)
ALL = versioned_shape("tagTypesSchema", "tagTypes", Array(SHOWN), VERSION)
VALID = Named(
    "validateTagTypeSchema",
    Object({"valid": Boolean(), "tagType": TAG_TYPE}, required=("valid", "tagType")),
)


def validate(call: ApiCall) -> Answer:
    """Check that a tag type can be created."""
    with call.store.reading() as tx:
        tag_types.check_new_name(tx, call.body["name"])
    return Answer({"valid": True, "tagType": call.body})


PATH = "/api/admin/tag-types"
route = partial(Route, tag="Tags")

ROUTES = (
    route(
        path=PATH,
        handler=reading(versioned("tagTypes", by_path(tag_types.list_types))),
        operation="getTagTypes",
        summary="List tag types",
        result=ALL,
    ),
    route(
        path=PATH,
        method="POST",
        handler=writing(by_path(tag_types.create), location="tag-types/{name}"),
        operation="createTagType",
        summary="Create a tag type",
        permission="CREATE_TAG_TYPE",
        body=TAG_TYPE,
        status=201,
        result=TAG_TYPE,
    ),
    route(
        path=f"{PATH}/validate",
        method="POST",
        handler=validate,
        reads=True,
        operation="validateTagType",
        summary="Check that a tag type can be created",
        body=TAG_TYPE,
        result=VALID,
    ),
    route(
        path=f"{PATH}/:name",
        handler=reading(versioned("tagType", by_path(tag_types.find))),
        operation="getTagType",
        summary="Show a tag type",
        result=ONE,
    ),
    route(
        path=f"{PATH}/:name",
        method="PUT",
        handler=writing(by_path(tag_types.change)),
        operation="updateTagType",
        summary="Change a tag type",
        description="Absent members stay unchanged. A missing tag type is not an error.",
        permission="UPDATE_TAG_TYPE",
        body=UPDATE,
    ),
    route(
        path=f"{PATH}/:name",
        method="DELETE",
        handler=writing(by_path(tag_types.remove)),
        operation="deleteTagType",
        summary="Delete a tag type",
        description="Its tags are deleted too, from every feature.",
        permission="DELETE_TAG_TYPE",
    ),
)
