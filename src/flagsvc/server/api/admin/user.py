"""`/api/admin/user`: who asks, and their personal tokens ; an import needs one (import validation 6)."""

from __future__ import annotations

from flagsvc.http.shapes import Anything, Array, Boolean, Integer, Map, Named, Nullable, Object, String, check
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.route import Route
from flagsvc.server.store.nouns import personal_tokens

DATE = String(format="date-time")
CREATE = Named(
    "createPatSchema",
    Object(
        {
            "description": String(description="What the token is for; unique among the user's.", example="laptop"),
            "expiresAt": String(
                format="date-time", description="When it stops working.", example="2030-04-19T08:15:14Z"
            ),
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
            "secret": String(description="Only in the answer that makes the token."),
        },
        required=("id", "description", "expiresAt", "createdAt"),
    ),
)
TOKENS = Named("patsSchema", Object({"pats": Array(TOKEN)}, required=("pats",)))
PERMISSION = Named(
    "permissionSchema",
    Object(
        {"permission": String(), "project": String(), "environment": String()}, required=("permission",), closed=True
    ),
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
NUMBER = Integer()
LARGEST = 2**53
NOBODYS = 0
"""The number of no token: databases count from 1, and the largest ones of JavaScript are too large for them."""


def me(call: ApiCall) -> ApiAnswer:
    """Answer who asks."""
    with call.store.reading() as tx:
        return ApiAnswer(personal_tokens.describe(tx, call.actor), headers=((b"cache-control", b"no-store"),))


def list_own(call: ApiCall) -> ApiAnswer:
    """Answer the user's tokens."""
    with call.store.reading() as tx:
        return ApiAnswer({"pats": personal_tokens.list_tokens(tx, call.actor)})


def create(call: ApiCall) -> ApiAnswer:
    """Make a token of the user."""
    with call.store.writing(call.actor) as tx:
        made = personal_tokens.create(tx, call.actor, call.body)
    return ApiAnswer(made, 201, ((b"cache-control", b"no-store"),))


def remove(call: ApiCall) -> ApiAnswer:
    """Delete a token of the user."""
    number = check(NUMBER, call.params["id"], "/params/id")
    with call.store.writing(call.actor) as tx:
        personal_tokens.remove(tx, call.actor, number if isinstance(number, int) and number < LARGEST else NOBODYS)
    return ApiAnswer()


PATH = "/api/admin/user"
TAG = "Personal access tokens"

ROUTES = (
    Route(
        path=PATH,
        handler=me,
        operation="getMe",
        summary="Tell who asks",
        tag="Users",
        result=ME,
    ),
    Route(
        path=f"{PATH}/tokens",
        handler=list_own,
        operation="getPats",
        summary="List one's personal tokens",
        tag=TAG,
        result=TOKENS,
    ),
    Route(
        path=f"{PATH}/tokens",
        method="POST",
        handler=create,
        operation="createPat",
        summary="Make a personal token",
        description="The answer holds the secret, this one time. An import needs such a token.",
        tag=TAG,
        body=CREATE,
        status=201,
        result=TOKEN,
    ),
    Route(
        path=f"{PATH}/tokens/:id",
        method="DELETE",
        handler=remove,
        operation="deletePat",
        summary="Delete a personal token",
        tag=TAG,
    ),
)
