"""`/api/admin/environments`, and the environments of projects.

The open-source edition of the real server cannot create, change and delete environments. These routes of ours have the paths and
bodies of its other editions (decision 0024).
"""

from __future__ import annotations

from functools import partial

from flagsvc.http.shapes import Array, Boolean, Integer, Map, Named, Nullable, Object, String
from flagsvc.server.api.admin.features import PROJECT
from flagsvc.server.api.route import (
    MAX_SORT_ORDER,
    MIN_SORT_ORDER,
    NAME_BODY,
    Handler,
    Route,
    by_path,
    reading,
    versioned,
    versioned_shape,
    writing,
)
from flagsvc.server.shapes.feature_bodies import CREATE_STRATEGY
from flagsvc.server.store.resources import environments

FIELDS = {
    "name": String(example="development"),
    "type": String(example="development"),
    "enabled": Boolean(),
    "protected": Boolean(),
    "sortOrder": Integer(example=2),
    "requiredApprovals": Nullable(Integer(minimum=1)),
}
NEEDS = ("name", "type", "enabled", "protected", "sortOrder")
COUNT = Nullable(Integer(minimum=0))

ENVIRONMENT = Named(
    "environmentSchema",
    Object(
        FIELDS | dict.fromkeys(("projectCount", "apiTokenCount", "enabledToggleCount"), COUNT),
        required=NEEDS,
        closed=True,
        description="An environment, with its numbers of projects, tokens and enabled features.",
    ),
)
VERSION = Integer(example=1)
ENVIRONMENTS = versioned_shape("environmentsSchema", "environments", Array(ENVIRONMENT), VERSION)
OF_PROJECT = Named(
    "environmentProjectSchema",
    Object(
        FIELDS | {"projectApiTokenCount": COUNT, "projectEnabledToggleCount": COUNT, "visible": Boolean()},
        required=NEEDS,
        closed=True,
        description="An environment, with its numbers for a project.",
    ),
)
ALL_OF_PROJECT = versioned_shape("environmentsProjectSchema", "environments", Array(OF_PROJECT), VERSION)
SORT_ORDER = Named(
    "sortOrderSchema",
    Map(Integer(minimum=MIN_SORT_ORDER, maximum=MAX_SORT_ORDER), description="Environment → its position in lists."),
)
ADD = Named(
    "projectEnvironmentSchema",
    Object(
        {
            "environment": String(description="The environment to add.", example="production"),
            "changeRequestsEnabled": Boolean(description="Has no effect."),
            "defaultStrategy": CREATE_STRATEGY,
        },
        required=("environment",),
        closed=True,
    ),
)


def switch(*, enabled: bool) -> Handler:
    return writing(lambda tx, call: environments.switch(tx, call.params["name"], enabled=enabled))


PATH = "/api/admin/environments"
route = partial(Route, tag="Environments")

SWITCHES = tuple(
    route(
        path=f"{PATH}/:name/{name}",
        method="POST",
        handler=switch(enabled=enabled),
        operation=f"toggleEnvironment{name.title()}",
        summary=f"Switch an environment {name}",
        permission="ADMIN",
        status=204,
    )
    for name, enabled in (("on", True), ("off", False))
)


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


ROUTES = (
    route(
        path=PATH,
        handler=reading(versioned("environments", by_path(environments.list_all))),
        operation="getAllEnvironments",
        summary="List environments",
        result=ENVIRONMENTS,
    ),
    route(
        path=f"{PATH}/:name",
        handler=reading(by_path(environments.get)),
        operation="getEnvironment",
        summary="Show an environment",
        result=ENVIRONMENT,
    ),
    route(
        path=f"{PATH}/project/:projectId",
        handler=reading(versioned("environments", by_path(environments.list_for_project))),
        operation="getProjectEnvironments",
        summary="List environments, with their numbers for a project",
        result=ALL_OF_PROJECT,
    ),
    route(
        path=f"{PATH}/sort-order",
        method="PUT",
        handler=writing(by_path(environments.sort)),
        operation="updateSortOrder",
        summary="Set the sort order of environments",
        permission="ADMIN",
        body=SORT_ORDER,
    ),
    *SWITCHES,
    route(
        path=f"{PROJECT}/environments",
        method="POST",
        handler=writing(lambda tx, call: environments.add_to_project(tx, call.params["projectId"], call.body["environment"])),
        operation="addEnvironmentToProject",
        summary="Add an environment to a project",
        tag="Projects",
        permission="UPDATE_PROJECT",
        body=ADD,
    ),
    route(
        path=f"{PROJECT}/environments/:environment",
        method="DELETE",
        handler=writing(by_path(environments.remove_from_project)),
        operation="removeEnvironmentFromProject",
        summary="Remove an environment from a project",
        description="Strategies stay, in case the environment is added again.",
        tag="Projects",
        permission="UPDATE_PROJECT",
    ),
    route(
        path=PATH,
        method="POST",
        handler=writing(by_path(environments.create), location="environments/{name}"),
        operation="createEnvironment",
        summary="Create an environment",
        description="No project has it until it is added there.",
        permission="ADMIN",
        body=CREATE,
        status=201,
        result=ENVIRONMENT,
    ),
    route(
        path=f"{PATH}/validate",
        method="POST",
        handler=reading(lambda tx, call: environments.check_new_name(tx, call.body["name"])),
        reads=True,
        operation="validateEnvironmentName",
        summary="Check that a name is valid and free",
        permission="ADMIN",
        body=NAME_BODY,
    ),
    route(
        path=f"{PATH}/update/:name",
        method="PUT",
        handler=writing(by_path(environments.change)),
        operation="updateEnvironment",
        summary="Change the type and the sort order of an environment",
        description="Absent members stay unchanged.",
        permission="ADMIN",
        body=UPDATE,
        result=ENVIRONMENT,
    ),
    route(
        path=f"{PATH}/:name",
        method="DELETE",
        handler=writing(by_path(environments.remove)),
        operation="removeEnvironment",
        summary="Delete an environment",
        description="403 for a protected one; 409 while a project has it or a token reads it, with every reason.",
        permission="ADMIN",
    ),
)
