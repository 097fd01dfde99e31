"""`/api/admin/context`: the context fields for constraints, as on the real server."""

from __future__ import annotations

from functools import partial

from flagsvc.http.answers import Answer
from flagsvc.http.shapes import Array, Boolean, Integer, Named, Object, String
from flagsvc.server.api.authorization import body_project, context_field_project
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import MAX_SORT_ORDER, MIN_SORT_ORDER, NAME_BODY, Route, by_path, reading, writing
from flagsvc.server.shapes.batch import CONTEXT_FIELD, LEGAL_VALUE
from flagsvc.server.store.errors import CallerError, not_found
from flagsvc.server.store.resources import context_fields

LEGAL_VALUES = Array(LEGAL_VALUE, description="The values that constraints may use; empty for any.")
CHANGES = {
    "description": String(description="What the field contains.", example="What the customer pays for"),
    "stickiness": Boolean(description="Whether a rollout may stick to the field."),
    "sortOrder": Integer(minimum=MIN_SORT_ORDER, maximum=MAX_SORT_ORDER, description="The position of the field in lists."),
    "legalValues": LEGAL_VALUES,
    "project": String(description="The only project that may use it; absent for all."),
}
UPDATE = Named("updateContextFieldSchema", Object(CHANGES, description="A context field with new content."))
CREATE = Named(
    "createContextFieldSchema",
    Object(
        {**CHANGES, "name": String(description="The name of the field in SDKs.", example="tier")},
        required=("name",),
        description="A new context field.",
    ),
)
FIELDS = Named("contextFieldsSchema", Array(CONTEXT_FIELD, description="Every context field."))
USE = {name: String() for name in ("id", "projectId", "featureName", "strategyName", "environment")}
STRATEGIES = Named(
    "contextFieldStrategiesSchema",
    Object(
        {"strategies": Array(Object(USE, required=tuple(USE)))},
        required=("strategies",),
        description="The strategies that constrain a context field.",
    ),
)


def show(call: ApiCall) -> Answer:
    try:
        with call.store.reading() as tx:
            return Answer(context_fields.find(tx, call.params["contextField"]))
    except CallerError:
        raise not_found("Could not find context field") from None


PATH = "/api/admin/context"
FIELD_PATH = f"{PATH}/:contextField"
route = partial(Route, tag="Context")
MAY_CREATE = ("CREATE_CONTEXT_FIELD", "UPDATE_PROJECT_CONTEXT")
MAY_UPDATE = ("UPDATE_CONTEXT_FIELD", "UPDATE_PROJECT_CONTEXT")
MAY_DELETE = ("DELETE_CONTEXT_FIELD", "UPDATE_PROJECT_CONTEXT")

ROUTES = (
    route(
        path=PATH,
        handler=reading(by_path(context_fields.list_fields)),
        operation="getContextFields",
        summary="List context fields",
        result=FIELDS,
    ),
    route(
        path=PATH,
        method="POST",
        handler=writing(by_path(context_fields.create), location="context/{name}"),
        operation="createContextField",
        summary="Create a context field",
        permission=MAY_CREATE,
        project_of=body_project,
        body=CREATE,
        status=201,
        result=CONTEXT_FIELD,
    ),
    route(
        path=f"{PATH}/validate",
        method="POST",
        handler=reading(lambda tx, call: context_fields.check_name(tx, call.body["name"])),
        reads=True,
        operation="validateContextFieldName",
        summary="Check that a name is valid and free",
        permission=MAY_UPDATE,
        project_of=body_project,
        body=NAME_BODY,
    ),
    route(
        path=FIELD_PATH,
        handler=show,
        operation="getContextField",
        summary="Show a context field",
        result=CONTEXT_FIELD,
    ),
    route(
        path=FIELD_PATH,
        method="PUT",
        handler=writing(by_path(context_fields.change)),
        operation="updateContextField",
        summary="Change a context field",
        description="Absent stickiness becomes false, absent legal values become empty, and the sort order becomes 0.",
        permission=MAY_UPDATE,
        project_of=context_field_project,
        body=UPDATE,
    ),
    route(
        path=FIELD_PATH,
        method="DELETE",
        handler=writing(by_path(context_fields.remove)),
        operation="deleteContextField",
        summary="Delete a context field",
        description="409 while a strategy of an active feature constrains it.",
        permission=MAY_DELETE,
        project_of=context_field_project,
    ),
    route(
        path=f"{FIELD_PATH}/legal-values",
        method="POST",
        handler=writing(by_path(context_fields.set_legal_value)),
        operation="updateContextFieldLegalValue",
        summary="Add a legal value, or change its description",
        permission=MAY_UPDATE,
        project_of=context_field_project,
        body=LEGAL_VALUE,
    ),
    route(
        path=f"{FIELD_PATH}/legal-values/:legalValue",
        method="DELETE",
        handler=writing(by_path(context_fields.remove_legal_value)),
        operation="deleteContextFieldLegalValue",
        summary="Remove a legal value",
        description="Constraints with this value do not change.",
        permission=MAY_UPDATE,
        project_of=context_field_project,
    ),
    route(
        path=f"{FIELD_PATH}/strategies",
        handler=reading(lambda tx, call: {"strategies": context_fields.strategies_using(tx, call.params["contextField"])}),
        operation="getStrategiesByContextField",
        summary="List the strategies that constrain a context field",
        description="An empty list for a field that does not exist.",
        result=STRATEGIES,
    ),
)
