"""`/api/admin/user-admin/…/tokens`, which only ours has: administrators manage personal tokens of others (decision 0017)."""

from __future__ import annotations

from flagsvc.server.api.admin.user import CREATE, TOKEN, TOKENS
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.route import Route
from flagsvc.server.api.shared import row_id
from flagsvc.server.store.resources import personal_tokens, users


def list_all(call: ApiCall) -> ApiAnswer:
    """Answer the personal tokens of a user."""
    with call.store.reading() as tx:
        return ApiAnswer({"pats": personal_tokens.list_tokens(tx, users.get(tx, row_id(call))["id"])})


def create(call: ApiCall) -> ApiAnswer:
    """Create a personal token of a user."""
    with call.store.writing(call.actor) as tx:
        created = personal_tokens.create(tx, users.get(tx, row_id(call))["id"], call.body)
    return ApiAnswer(created, 201, ((b"cache-control", b"no-store"),))


def remove(call: ApiCall) -> ApiAnswer:
    """Delete a personal token of a user."""
    with call.store.writing(call.actor) as tx:
        personal_tokens.remove(tx, users.get(tx, row_id(call))["id"], row_id(call, "tokenId"))
    return ApiAnswer()


PATH = "/api/admin/user-admin/:id/tokens"
TAG = "Users"

ROUTES = (
    Route(
        path=PATH,
        handler=list_all,
        operation="getTokensOfUser",
        summary="List the personal tokens of a user",
        description="Without their secrets.",
        tag=TAG,
        permission="ADMIN",
        result=TOKENS,
    ),
    Route(
        path=PATH,
        method="POST",
        handler=create,
        operation="createTokenOfUser",
        summary="Create a personal token of a user",
        description="Only this answer contains the secret. The token has the user's rights.",
        tag=TAG,
        permission="ADMIN",
        body=CREATE,
        status=201,
        result=TOKEN,
    ),
    Route(
        path=f"{PATH}/:tokenId",
        method="DELETE",
        handler=remove,
        operation="deleteTokenOfUser",
        summary="Delete a personal token of a user",
        description="It is refused at once.",
        tag=TAG,
        permission="ADMIN",
    ),
)
