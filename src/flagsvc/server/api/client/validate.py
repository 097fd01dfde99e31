"""POST /edge/validate: which of some texts are API tokens, and what they open (dialects: POST /edge/validate of the flag server).

A proxy asks this for the tokens of its callers. The answer tells no more than a request with each token would. It comes from
memory. A token may be new, so the database is asked before, for a moment and in no thread of other requests (`Route.renews`).
"""

from __future__ import annotations

from typing import Any

from flagsvc.http.answers import Answer
from flagsvc.http.shapes import Named
from flagsvc.http.token_questions import ANSWER, QUESTION, describe_tokens, known_token
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import Auth, Route
from flagsvc.server.store.actors import ALL, ClientToken
from flagsvc.server.store.keyring import TokenOwner

TYPES = {"backend": "client"}
"""Kind of a token → its type in the answer, if it has another name there."""
NOT_STORED = ((b"cache-control", b"no-store"),)


def validate_tokens(call: ApiCall) -> Answer:
    """Return the known tokens. An expired token is unknown, and so is a user's: it opens only the admin API."""
    find = call.server.keyring.find
    found = describe_tokens(call.sent["tokens"], lambda secret: describe(secret, find(secret)))
    return Answer(found, headers=NOT_STORED)


def describe(secret: str, owner: TokenOwner | None) -> dict[str, Any] | None:
    """Return the entry of a token with this owner; None for no API token."""
    if isinstance(owner, ClientToken):
        return known_token(secret, TYPES.get(owner.kind, owner.kind), owner.projects, owner.environment)
    return None if owner is None or owner.is_user else known_token(secret, "admin", (ALL,), ALL)


ROUTES = (
    Route(
        path="/edge/validate",
        method="POST",
        handler=validate_tokens,
        operation="getValidTokens",
        summary="Tell which of these are API tokens, and which projects and environment they open.",
        description="For proxies, which ask about the tokens of their callers. Unknown and expired tokens are left out.",
        tag="Client",
        auth=Auth.NONE,
        body=Named("validateEdgeTokensSchema", QUESTION),
        result=Named("validatedEdgeTokensSchema", ANSWER),
        reads=True,
        renews=True,
    ),
)
