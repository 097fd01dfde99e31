"""`/api/admin/api-tokens`: the tokens of clients, as on the real server but for secrets: shown once (decision 0017)."""

from __future__ import annotations

from flagsvc.http.shapes import Array, Enum, Named, Nullable, Object, OneOf, String
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.route import Route
from flagsvc.server.store.nouns import api_tokens

TYPE = "^([Cc][Ll][Ii][Ee][Nn][Tt]|[Bb][Aa][Cc][Kk][Ee][Nn][Dd]|[Ff][Rr][Oo][Nn][Tt][Ee][Nn][Dd])$"
END = "When the token stops working."
DATE = String(format="date-time")

NEW = Object(
    {
        "expiresAt": String(format="date-time", description=END, example="2030-07-04T11:26:24+02:00"),
        "type": String(pattern=TYPE, description="backend (or client, its old name) or frontend, in any letter case."),
        "environment": String(description="Whose flags the token sees; development by default.", example="production"),
        "project": String(description="Has no effect; give `projects`."),
        "projects": Array(
            String(), description="Whose flags the token sees; of all projects by default.", example=["default"]
        ),
        "tokenName": String(description="What the token is called; need not be unique.", example="checkout"),
    },
    required=("type", "tokenName"),
)
CREATE = Named("createApiTokenSchema", OneOf(NEW, base=Object({})))
UPDATE = Named(
    "updateApiTokenSchema",
    Object(
        {"expiresAt": String(format="date-time", description=END, example="2030-09-04T11:26:24+02:00")},
        required=("expiresAt",),
    ),
)
TOKEN = Named(
    "apiTokenSchema",
    Object(
        {
            "secret": String(description="The secret when it is made, later what is left of it to name the token by."),
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

ANY = {
    verb: ("ADMIN", f"{verb}_CLIENT_API_TOKEN", f"{verb}_FRONTEND_API_TOKEN")
    for verb in ("READ", "CREATE", "UPDATE", "DELETE")
}
"""What somebody does with tokens → the permissions of which one is enough."""


def list_all(call: ApiCall) -> ApiAnswer:
    """Answer the tokens that the caller may see."""
    with call.store.reading() as tx:
        return ApiAnswer({"tokens": api_tokens.list_tokens(tx, call.actor)})


def list_named(call: ApiCall) -> ApiAnswer:
    """Answer the tokens of one name."""
    with call.store.reading() as tx:
        return ApiAnswer({"tokens": api_tokens.list_tokens(tx, call.actor, call.params["name"])})


def create(call: ApiCall) -> ApiAnswer:
    """Make a token."""
    with call.store.writing(call.actor) as tx:
        made = api_tokens.create(tx, call.body)
    return ApiAnswer(made, 201, ((b"location", b"api-tokens"), (b"cache-control", b"no-store")))


def update(call: ApiCall) -> ApiAnswer:
    """Change when a token ends."""
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
NAMED_BY = "The token is named by its secret, or by the masked secret of the list. One that does not exist is no error."

ROUTES = (
    Route(
        path=PATH,
        handler=list_all,
        operation="getAllApiTokens",
        summary="List tokens",
        description="Secrets are masked: they are stored as hashes.",
        tag=TAG,
        permission=ANY["READ"],
        result=TOKENS,
    ),
    Route(
        path=f"{PATH}/:name",
        handler=list_named,
        operation="getApiTokensByName",
        summary="List tokens of a name",
        tag=TAG,
        permission=ANY["READ"],
        result=TOKENS,
    ),
    Route(
        path=PATH,
        method="POST",
        handler=create,
        operation="createApiToken",
        summary="Make a token",
        description="The answer holds the secret, this one time.",
        tag=TAG,
        permission=ANY["CREATE"],
        body=CREATE,
        status=201,
        result=TOKEN,
    ),
    Route(
        path=f"{PATH}/:token",
        method="PUT",
        handler=update,
        operation="updateApiToken",
        summary="Change when a token ends",
        description=NAMED_BY,
        tag=TAG,
        permission=ANY["UPDATE"],
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
        permission=ANY["DELETE"],
    ),
)
