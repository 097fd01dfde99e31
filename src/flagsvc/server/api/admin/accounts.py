"""The accounts elsewhere that a user is linked to; only ours has these routes (decision 0061)."""

from __future__ import annotations

from flagsvc.http.shapes import Array, Named, Object, String
from flagsvc.server.api.admin import users
from flagsvc.server.api.call import ApiAnswer, ApiCall
from flagsvc.server.api.route import Route
from flagsvc.server.api.shared import row_id
from flagsvc.server.store.resources import identities

ACCOUNT = Object(
    {
        "id": String(),
        "issuer": String(description="The issuer of the account; `header` for a proxy in front that names persons."),
        "subject": String(description="The user at the issuer, or the name in the header."),
        "createdAt": String(format="date-time"),
    },
    required=("id", "issuer", "subject", "createdAt"),
)
ACCOUNTS = Named("accountsSchema", Object({"accounts": Array(ACCOUNT)}, required=("accounts",)))


def list_(call: ApiCall) -> ApiAnswer:
    """Answer the accounts of a user."""
    with call.store.reading() as tx:
        return ApiAnswer({"accounts": identities.list_accounts(tx, row_id(call))})


def unlink(call: ApiCall) -> ApiAnswer:
    """Unlink a user from the account in the path."""
    with call.store.writing(call.actor) as tx:
        identities.unlink(tx, row_id(call), call.params["accountId"])
    return ApiAnswer()


PATH = f"{users.PATH}/:id/accounts"
TAG = "Users"

ROUTES = (
    Route(
        path=PATH,
        handler=list_,
        operation="getAccountsOfUser",
        summary="List the accounts elsewhere that a user is linked to",
        tag=TAG,
        permission="ADMIN",
        result=ACCOUNTS,
    ),
    Route(
        path=f"{PATH}/:accountId",
        method="DELETE",
        handler=unlink,
        operation="unlinkAccountOfUser",
        summary="Unlink a user from an account elsewhere",
        description="The sessions of the user that were opened in its way end.",
        tag=TAG,
        permission="ADMIN",
    ),
)
