"""`/api/admin/environments`: environments are created, changed and deleted.

The open-source edition of the real server cannot do that. These routes of ours have the paths and bodies of its other editions
(decision 0055).
"""

from __future__ import annotations

from flagsvc.http.shapes import Boolean, Integer, Named, Object, String
from flagsvc.server.api.admin.environments import ENVIRONMENT, PATH, TAG
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.route import Route
from flagsvc.server.api.shared import MAX_SORT_ORDER, MIN_SORT_ORDER, NAME_BODY, location_header
from flagsvc.server.store.resources import environments

TYPE = String(description="What the environment is for.", example="test")
ORDER = Integer(minimum=MIN_SORT_ORDER, maximum=MAX_SORT_ORDER, description="Its position in lists.", example=5)
CREATE = Named(
    "createEnvironmentSchema",
    Object(
        {
            "name": String(description="The name of the environment, part of paths.", example="staging"),
            "type": TYPE,
            "enabled": Boolean(description="Whether new projects get it; true by default."),
            "sortOrder": ORDER,
        },
        required=("name", "type"),
        description="An environment to create.",
    ),
)
UPDATE = Named(
    "updateEnvironmentSchema",
    Object({"type": TYPE, "sortOrder": ORDER}, description="An environment with new content."),
)


def create(call: ApiCall) -> ApiAnswer:
    """Create an environment."""
    with call.store.writing(call.actor) as tx:
        created = environments.create(tx, call.body)
    return ApiAnswer(created, 201, location_header(f"environments/{created['name']}"))


def validate(call: ApiCall) -> ApiAnswer:
    """Check that a name is valid and free."""
    with call.store.reading() as tx:
        environments.check_new_name(tx, call.body["name"])
    return ApiAnswer()


def update(call: ApiCall) -> ApiAnswer:
    """Change an environment."""
    with call.store.writing(call.actor) as tx:
        return ApiAnswer(environments.change(tx, call.params["name"], call.body))


def delete(call: ApiCall) -> ApiAnswer:
    """Delete an environment."""
    with call.store.writing(call.actor) as tx:
        environments.remove(tx, call.params["name"])
    return ApiAnswer()


ROUTES = (
    Route(
        path=PATH,
        method="POST",
        handler=create,
        operation="createEnvironment",
        summary="Create an environment",
        description="No project has it until it is added there.",
        tag=TAG,
        permission="ADMIN",
        body=CREATE,
        status=201,
        result=ENVIRONMENT,
    ),
    Route(
        path=f"{PATH}/validate",
        method="POST",
        handler=validate,
        reads=True,
        operation="validateEnvironmentName",
        summary="Check that a name is valid and free",
        tag=TAG,
        permission="ADMIN",
        body=NAME_BODY,
    ),
    Route(
        path=f"{PATH}/update/:name",
        method="PUT",
        handler=update,
        operation="updateEnvironment",
        summary="Change the type and the sort order of an environment",
        description="Absent members stay unchanged.",
        tag=TAG,
        permission="ADMIN",
        body=UPDATE,
        result=ENVIRONMENT,
    ),
    Route(
        path=f"{PATH}/:name",
        method="DELETE",
        handler=delete,
        operation="removeEnvironment",
        summary="Delete an environment",
        description="403 for a protected one; 409 while a project has it or a token reads it, with every reason.",
        tag=TAG,
        permission="ADMIN",
    ),
)
