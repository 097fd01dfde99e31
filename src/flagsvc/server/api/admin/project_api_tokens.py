"""`/api/admin/projects/…/api-tokens`: the tokens of one project, for its owners and members too (decision 0017)."""

from __future__ import annotations

from flagsvc.http.shapes import Named, Object
from flagsvc.server.api.admin.api_tokens import CREATED_HEADERS, NAMED, NEW, TOKEN, TOKENS
from flagsvc.server.api.admin.features import PROJECT
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.route import Route
from flagsvc.server.store.resources import api_tokens
from flagsvc.server.store.resources.projects import find as find_project

MEMBERS = ("type", "environment", "expiresAt", "tokenName")
CREATE = Named(
    "createProjectApiTokenSchema",
    Object(
        {name: NEW.properties[name] for name in MEMBERS},
        required=("tokenName", "type"),
        description="A token of the project in the path.",
    ),
)


def list_all(call: ApiCall) -> ApiAnswer:
    """Answer the tokens of a project."""
    with call.store.reading() as tx:
        return ApiAnswer({"tokens": api_tokens.list_for_project(tx, call.params["projectId"])})


def create(call: ApiCall) -> ApiAnswer:
    """Create a token of a project."""
    project = call.params["projectId"]
    with call.store.writing(call.actor) as tx:
        find_project(tx, project)
        created = api_tokens.create(tx, call.body | {"projects": [project]})
    return ApiAnswer(created, 201, CREATED_HEADERS)


def remove(call: ApiCall) -> ApiAnswer:
    """Delete a token of a project."""
    with call.store.writing(call.actor) as tx:
        api_tokens.remove_of_project(tx, call.params["projectId"], call.params["token"])
    return ApiAnswer()


PATH = f"{PROJECT}/api-tokens"
TAG = "Projects"

ROUTES = (
    Route(
        path=PATH,
        handler=list_all,
        operation="getProjectApiTokens",
        summary="List the tokens of a project",
        description="Secrets are masked: they are stored as hashes. Tokens of all projects are not listed.",
        tag=TAG,
        permission="READ_PROJECT_API_TOKEN",
        result=TOKENS,
    ),
    Route(
        path=PATH,
        method="POST",
        handler=create,
        operation="createProjectApiToken",
        summary="Create a token of a project",
        description="Only this answer contains the secret.",
        tag=TAG,
        permission="CREATE_PROJECT_API_TOKEN",
        body=CREATE,
        status=201,
        result=TOKEN,
    ),
    Route(
        path=f"{PATH}/:token",
        method="DELETE",
        handler=remove,
        operation="deleteProjectApiToken",
        summary="Delete a token of a project",
        description=f"{NAMED} 400 if the token reads other projects, too.",
        tag=TAG,
        permission="DELETE_PROJECT_API_TOKEN",
    ),
)
