"""`/api/admin/api-tokens`: the tokens of clients, as on the real server, but secrets are shown only once (decision 0025).

At `/api/admin/projects/…/api-tokens` the owners and members of a project manage its tokens, too.
"""

from __future__ import annotations

from functools import partial

from flagsvc.http.shapes import Array, Enum, Named, Nullable, Object, OneOf, String
from flagsvc.server.api.admin.features import PROJECT
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import NO_STORE, Route, by_path, reading, writing
from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources import api_tokens
from flagsvc.server.store.resources.projects import find as find_project
from flagsvc.server.store.store import Tx

TYPE = "^([Cc][Ll][Ii][Ee][Nn][Tt]|[Bb][Aa][Cc][Kk][Ee][Nn][Dd]|[Ff][Rr][Oo][Nn][Tt][Ee][Nn][Dd])$"
EXPIRY = "When the token expires."
DATE = String(format="date-time")

NEW = Object(
    {
        "expiresAt": String(format="date-time", description=EXPIRY, example="2030-07-04T11:26:24+02:00"),
        "type": String(pattern=TYPE, description="backend (or client, its old name) or frontend, in any letter case."),
        "environment": String(description="Environment to read flags of; development by default.", example="production"),
        "project": String(description="Has no effect; give `projects`."),
        "projects": Array(String(), description="The projects whose flags the token reads; all by default.", example=["default"]),
        "tokenName": String(description="The name of the token; need not be unique.", example="checkout"),
    },
    required=("type", "tokenName"),
)
CREATE = Named("createApiTokenSchema", OneOf(NEW, base=Object({})))
UPDATE = Named(
    "updateApiTokenSchema",
    Object(
        {"expiresAt": String(format="date-time", description=EXPIRY, example="2030-09-04T11:26:24+02:00")},
        required=("expiresAt",),
    ),
)
TOKEN = Named(
    "apiTokenSchema",
    Object(
        {
            "secret": String(description="The secret in the answer that creates the token; later the masked secret."),
            "tokenName": String(),
            "type": Enum("client", "admin", "frontend", "backend"),
            "environment": String(),
            "project": String(description="The projects, joined by commas."),
            "projects": Array(String()),
            "expiresAt": Nullable(DATE),
            "createdAt": DATE,
            "seenAt": Nullable(DATE),
            "alias": Nullable(String()),
        },
        required=("secret", "tokenName", "type", "projects", "createdAt"),
        closed=True,
    ),
)
TOKENS = Named("apiTokensSchema", Object({"tokens": Array(TOKEN)}, required=("tokens",)))

PERMISSIONS = {
    verb: ("ADMIN", f"{verb}_CLIENT_API_TOKEN", f"{verb}_FRONTEND_API_TOKEN") for verb in ("READ", "CREATE", "UPDATE", "DELETE")
}
"""Action on tokens → the permissions, any one of which is enough."""


PATH = "/api/admin/api-tokens"
route = partial(Route, tag="API tokens")
NAMED = "The path contains the token's secret, or its masked secret from the list."
NAMED_BY = f"{NAMED} A missing token is not an error."


MEMBERS = ("type", "environment", "expiresAt", "tokenName")
CREATE_IN_PROJECT = Named(
    "createProjectApiTokenSchema",
    Object(
        {name: NEW.properties[name] for name in MEMBERS},
        required=("tokenName", "type"),
        description="A token of the project in the path.",
    ),
)


def create_in_project(tx: Tx, call: ApiCall) -> Json:
    project = call.params["projectId"]
    find_project(tx, project)
    return api_tokens.create(tx, call.body | {"projects": [project]})


OF_PROJECT = f"{PROJECT}/api-tokens"
PROJECTS = "Projects"

ROUTES = (
    route(
        path=PATH,
        handler=reading(lambda tx, call: {"tokens": api_tokens.list_tokens(tx, call.actor)}),
        operation="getAllApiTokens",
        summary="List tokens",
        description="Secrets are masked: they are stored as hashes.",
        permission=PERMISSIONS["READ"],
        result=TOKENS,
    ),
    route(
        path=f"{PATH}/:name",
        handler=reading(lambda tx, call: {"tokens": api_tokens.list_tokens(tx, call.actor, call.params["name"])}),
        operation="getApiTokensByName",
        summary="List the tokens with a name",
        permission=PERMISSIONS["READ"],
        result=TOKENS,
    ),
    route(
        path=PATH,
        method="POST",
        handler=writing(by_path(api_tokens.create), headers=NO_STORE, location="api-tokens"),
        operation="createApiToken",
        summary="Create a token",
        description="Only this answer contains the secret.",
        permission=PERMISSIONS["CREATE"],
        body=CREATE,
        status=201,
        result=TOKEN,
    ),
    route(
        path=f"{PATH}/:token",
        method="PUT",
        handler=writing(lambda tx, call: api_tokens.set_expiry(tx, call.params["token"], call.body["expiresAt"])),
        operation="updateApiToken",
        summary="Change the expiry of a token",
        description=NAMED_BY,
        permission=PERMISSIONS["UPDATE"],
        body=UPDATE,
    ),
    route(
        path=f"{PATH}/:token",
        method="DELETE",
        handler=writing(by_path(api_tokens.remove)),
        operation="deleteApiToken",
        summary="Delete a token",
        description=NAMED_BY,
        permission=PERMISSIONS["DELETE"],
    ),
    route(
        path=OF_PROJECT,
        handler=reading(lambda tx, call: {"tokens": api_tokens.list_for_project(tx, call.params["projectId"])}),
        operation="getProjectApiTokens",
        summary="List the tokens of a project",
        description="Secrets are masked: they are stored as hashes. Tokens of all projects are not listed.",
        tag=PROJECTS,
        permission="READ_PROJECT_API_TOKEN",
        result=TOKENS,
    ),
    route(
        path=OF_PROJECT,
        method="POST",
        handler=writing(create_in_project, headers=NO_STORE, location="api-tokens"),
        operation="createProjectApiToken",
        summary="Create a token of a project",
        description="Only this answer contains the secret.",
        tag=PROJECTS,
        permission="CREATE_PROJECT_API_TOKEN",
        body=CREATE_IN_PROJECT,
        status=201,
        result=TOKEN,
    ),
    route(
        path=f"{OF_PROJECT}/:token",
        method="DELETE",
        handler=writing(by_path(api_tokens.remove_of_project)),
        operation="deleteProjectApiToken",
        summary="Delete a token of a project",
        description=f"{NAMED} 400 if the token reads other projects, too.",
        tag=PROJECTS,
        permission="DELETE_PROJECT_API_TOKEN",
    ),
)
