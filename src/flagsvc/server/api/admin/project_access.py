"""`/api/admin/projects/…/access`: owners and administrators give roles in a project.

The open-source edition of the real server cannot do that. These routes of ours have the paths and bodies of its other editions
(decision 0024).
"""

from __future__ import annotations

from functools import partial

from flagsvc.http.shapes import Anything, Array, Integer, Named, Object, String
from flagsvc.server.api.admin.features import PROJECT
from flagsvc.server.api.route import Route, by_path, reading, row_id, writing
from flagsvc.server.store.resources import project_access

MAX_ID = 2**53
ROLES = Array(Integer(minimum=0), description="Roles by number: 4 owner, 5 member.", example=[5])
ADD = Named(
    "projectAddAccessSchema",
    Object(
        {
            "roles": ROLES,
            "users": Array(Integer(minimum=0, maximum=MAX_ID), description="Users by id."),
            "groups": Array(Anything(), description="Must be absent or empty: there are no groups."),
        },
        required=("roles", "users"),
        description="Roles, and the users who get them.",
    ),
)
SET = Named("projectUserRolesSchema", Object({"roles": ROLES}, required=("roles",), description="The roles of a user."))
ACCESS = Named(
    "projectAccessSchema",
    Object(
        {
            "users": Array(
                Object(
                    {
                        "id": Integer(),
                        "name": String(),
                        "username": String(),
                        "email": String(),
                        "roleId": Integer(description="The first of the roles."),
                        "roles": ROLES,
                    },
                    required=("id", "roleId", "roles"),
                )
            ),
            "groups": Array(Anything(), description="Always empty."),
            "roles": Array(
                Object(
                    {"id": Integer(), "type": String(), "name": String(), "description": String()},
                    required=("id", "name"),
                )
            ),
        },
        required=("users", "groups", "roles"),
        description="The users with a role in a project, and the roles that there are.",
    ),
)


PATH = f"{PROJECT}/access"
OF_USER = f"{PROJECT}/users/:userId/roles"
route = partial(Route, tag="Projects")
PERMISSION = "UPDATE_PROJECT"
LIMIT = "Those who are neither owner nor administrator give and take only roles that they have."

ROUTES = (
    route(
        path=PATH,
        handler=reading(by_path(project_access.list_access)),
        operation="getProjectAccess",
        summary="List the users with a role in a project",
        permission=PERMISSION,
        result=ACCESS,
    ),
    route(
        path=PATH,
        method="POST",
        handler=writing(
            lambda tx, call: project_access.add(
                tx, call.params["projectId"], call.body["roles"], call.body["users"], call.body.get("groups")
            )
        ),
        operation="addAccessToProject",
        summary="Give roles in a project to users",
        description=LIMIT,
        permission=PERMISSION,
        body=ADD,
    ),
    route(
        path=OF_USER,
        method="PUT",
        handler=writing(
            lambda tx, call: project_access.replace(tx, call.params["projectId"], row_id(call, "userId"), call.body["roles"])
        ),
        operation="setRolesForUser",
        summary="Set the roles of a user in a project",
        description=LIMIT,
        permission=PERMISSION,
        body=SET,
    ),
    route(
        path=OF_USER,
        method="DELETE",
        handler=writing(by_path(project_access.remove)),
        operation="removeUserAccess",
        summary="Take all roles of a user in a project away",
        description=LIMIT,
        permission=PERMISSION,
    ),
)
