"""`/api/admin/api-tokens`: the tokens of clients, as on the real server, but secrets are shown only once (decision 0017)."""

from __future__ import annotations

from flagsvc.http.shapes import Array, Enum, Named, Nullable, Object, OneOf, String
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.route import Route
from flagsvc.server.store.resources import api_tokens

TYPE = "^([Cc][Ll][Ii][Ee][Nn][Tt]|[Bb][Aa][Cc][Kk][Ee][Nn][Dd]|[Ff][Rr][Oo][Nn][Tt][Ee][Nn][Dd])$"
EXPIRY = "When the token expires."
DATE = String(format="date-time")

NEW = Object(
    {
        "expiresAt": String(format="date-time", description=EXPIRY, example="2030-07-04T11:26:24+02:00"),
        "type": String(pattern=TYPE, description="backend (or client, its old name) or frontend, in any letter case."),
        "environment": String(
            description="Environment to read flags of; development by default.", example="production"
        ),
        "project": String(description="Has no effect; give `projects`."),
        "projects": Array(
            String(), description="The projects whose flags the token reads; all by default.", example=["default"]
        ),
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

CREATED_HEADERS = ((b"location", b"api-tokens"), (b"cache-control", b"no-store"))
PERMISSIONS = {
    verb: ("ADMIN", f"{verb}_CLIENT_API_TOKEN", f"{verb}_FRONTEND_API_TOKEN")
    for verb in ("READ", "CREATE", "UPDATE", "DELETE")
}
"""Action on tokens → the permissions, any one of which is enough."""


def list_all(call: ApiCall) -> ApiAnswer:
    """Answer the tokens that the caller may read."""
    with call.store.reading() as tx:
        return ApiAnswer({"tokens": api_tokens.list_tokens(tx, call.actor)})


def list_named(call: ApiCall) -> ApiAnswer:
    """Answer the tokens with a name."""
    with call.store.reading() as tx:
        return ApiAnswer({"tokens": api_tokens.list_tokens(tx, call.actor, call.params["name"])})


def create(call: ApiCall) -> ApiAnswer:
    """Create a token."""
    with call.store.writing(call.actor) as tx:
        created = api_tokens.create(tx, call.body)
    return ApiAnswer(created, 201, CREATED_HEADERS)


def update(call: ApiCall) -> ApiAnswer:
    """Change the expiry of a token."""
    with call.store.writing(call.actor) as tx:
        api_tokens.set_expiry(tx, call.params["token"], call.body["expiresAt"])
    return ApiAnswer()


def remove(call: ApiCall) -> ApiAnswer:
    """Delete a token."""
    with call.store.writing(call.actor) as tx:
        api_tokens.remove(tx, call.params["token"])
    return ApiAnswer()


PATH = "/api/admin/api-tokens"
TAG = "API tokens"
NAMED = "The path contains the token's secret, or its masked secret from the list."
NAMED_BY = f"{NAMED} A missing token is not an error."

ROUTES = (
    Route(
        path=PATH,
        handler=list_all,
        operation="getAllApiTokens",
        summary="List tokens",
        description="Secrets are masked: they are stored as hashes.",
        tag=TAG,
        permission=PERMISSIONS["READ"],
        result=TOKENS,
    ),
    Route(
        path=f"{PATH}/:name",
        handler=list_named,
        operation="getApiTokensByName",
        summary="List the tokens with a name",
        tag=TAG,
        permission=PERMISSIONS["READ"],
        result=TOKENS,
    ),
    Route(
        path=PATH,
        method="POST",
        handler=create,
        operation="createApiToken",
        summary="Create a token",
        description="Only this answer contains the secret.",
        tag=TAG,
        permission=PERMISSIONS["CREATE"],
        body=CREATE,
        status=201,
        result=TOKEN,
    ),
    Route(
        path=f"{PATH}/:token",
        method="PUT",
        handler=update,
        operation="updateApiToken",
        summary="Change the expiry of a token",
        description=NAMED_BY,
        tag=TAG,
        permission=PERMISSIONS["UPDATE"],
        body=UPDATE,
    ),
    Route(
        path=f"{PATH}/:token",
        method="DELETE",
        handler=remove,
        operation="deleteApiToken",
        summary="Delete a token",
        description=NAMED_BY,
        tag=TAG,
        permission=PERMISSIONS["DELETE"],
    ),
)
