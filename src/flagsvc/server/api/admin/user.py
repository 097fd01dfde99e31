"""`/api/admin/user`: the caller, and the caller's personal tokens (import validation 6).

Administrators manage the tokens of other users at `/api/admin/user-admin/…/tokens`. Only ours has that (decision 0025).
"""

from __future__ import annotations

from flagsvc.http.shapes import Anything, Array, Boolean, Integer, Map, Named, Nullable, Object, String
from flagsvc.server.api.route import NO_STORE, Route, reading, row_id, writing
from flagsvc.server.store.resources import personal_tokens, users
from flagsvc.server.store.resources.personal_tokens import user_of

DATE = String(format="date-time")
CREATE = Named(
    "createPatSchema",
    Object(
        {
            "description": String(description="What the token is for; unique among the user's.", example="laptop"),
            "expiresAt": String(format="date-time", description="When the token expires.", example="2030-04-19T08:15:14Z"),
        },
        required=("description", "expiresAt"),
    ),
)
TOKEN = Named(
    "patSchema",
    Object(
        {
            "id": Integer(minimum=1),
            "description": String(),
            "expiresAt": Nullable(DATE),
            "userId": Integer(),
            "createdAt": DATE,
            "seenAt": Nullable(DATE),
            "secret": String(description="Only in the answer that creates the token."),
        },
        required=("id", "description", "expiresAt", "createdAt"),
    ),
)
TOKENS = Named("patsSchema", Object({"pats": Array(TOKEN)}, required=("pats",)))
PERMISSION = Named(
    "permissionSchema",
    Object({"permission": String(), "project": String(), "environment": String()}, required=("permission",), closed=True),
)
ME = Named(
    "meSchema",
    Object(
        {
            "user": Object({}, description="The user, or the admin token."),
            "permissions": Array(PERMISSION),
            "feedback": Array(Anything()),
            "splash": Map(Boolean()),
        },
        required=("user", "permissions", "feedback", "splash"),
        closed=True,
    ),
)


PATH = "/api/admin/user"
TAG = "Personal access tokens"


OF_USER = "/api/admin/user-admin/:id/tokens"
USERS = "Users"

ROUTES = (
    Route(
        path=PATH,
        handler=reading(lambda tx, call: personal_tokens.describe(tx, call.actor), headers=NO_STORE),
        operation="getMe",
        summary="Show the caller",
        tag="Users",
        result=ME,
    ),
    Route(
        path=f"{PATH}/tokens",
        handler=reading(lambda tx, call: {"pats": personal_tokens.list_tokens(tx, user_of(call.actor))}),
        operation="getPats",
        summary="List the caller's personal tokens",
        tag=TAG,
        result=TOKENS,
    ),
    Route(
        path=f"{PATH}/tokens",
        method="POST",
        handler=writing(lambda tx, call: personal_tokens.create(tx, user_of(call.actor), call.body), headers=NO_STORE),
        operation="createPat",
        summary="Create a personal token",
        description="Only this answer contains the secret. An import needs such a token.",
        tag=TAG,
        body=CREATE,
        status=201,
        result=TOKEN,
    ),
    Route(
        path=f"{PATH}/tokens/:id",
        method="DELETE",
        handler=writing(lambda tx, call: personal_tokens.remove(tx, user_of(call.actor), row_id(call))),
        operation="deletePat",
        summary="Delete a personal token",
        tag=TAG,
    ),
    Route(
        path=OF_USER,
        handler=reading(lambda tx, call: {"pats": personal_tokens.list_tokens(tx, users.get(tx, row_id(call))["id"])}),
        operation="getTokensOfUser",
        summary="List the personal tokens of a user",
        description="Without their secrets.",
        tag=USERS,
        permission="ADMIN",
        result=TOKENS,
    ),
    Route(
        path=OF_USER,
        method="POST",
        handler=writing(
            lambda tx, call: personal_tokens.create(tx, users.get(tx, row_id(call))["id"], call.body), headers=NO_STORE
        ),
        operation="createTokenOfUser",
        summary="Create a personal token of a user",
        description="Only this answer contains the secret. The token has the user's rights.",
        tag=USERS,
        permission="ADMIN",
        body=CREATE,
        status=201,
        result=TOKEN,
    ),
    Route(
        path=f"{OF_USER}/:tokenId",
        method="DELETE",
        handler=writing(lambda tx, call: personal_tokens.remove(tx, users.get(tx, row_id(call))["id"], row_id(call, "tokenId"))),
        operation="deleteTokenOfUser",
        summary="Delete a personal token of a user",
        description="It is refused at once.",
        tag=USERS,
        permission="ADMIN",
    ),
)
