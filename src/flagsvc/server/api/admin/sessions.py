"""Sessions of the pages, and links that open one; only ours has these routes (decision 0032)."""

from __future__ import annotations

from functools import partial

from flagsvc.http.shapes import Array, Boolean, Enum, Integer, Named, Nullable, Object, String
from flagsvc.server.api.admin import user, users
from flagsvc.server.api.authorization import PAGES
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import NO_STORE, Route, reading, row_id, writing
from flagsvc.server.store.checks import Json
from flagsvc.server.store.resources import sessions
from flagsvc.server.store.resources.personal_tokens import user_of
from flagsvc.server.store.resources.users import find as find_user
from flagsvc.server.store.store import Tx

DATE = String(format="date-time")
SESSION = Object(
    {
        "id": Integer(),
        "createdAt": DATE,
        "seenAt": DATE,
        "expiresAt": DATE,
        "openedBy": Enum("token", "link", "header", "provider", description="What opened it."),
        "tokenName": Nullable(String(description="The personal token that opened it, else null.")),
        "current": Boolean(description="Always false: a request of the API has no session."),
    },
    required=("id", "createdAt", "seenAt", "expiresAt", "openedBy", "tokenName", "current"),
)
SESSIONS = Named("sessionsSchema", Object({"sessions": Array(SESSION)}, required=("sessions",)))
LINK = Named(
    "signInLinkSchema",
    Object(
        {
            "path": String(description="The path of the link, with its code in the fragment.", example="/ui/sign-in#…"),
            "expiresAt": DATE,
        },
        required=("path", "expiresAt"),
        description="A link that signs the user in once.",
    ),
)


def end_own(tx: Tx, call: ApiCall) -> None:
    """End the caller's sessions, or the one in the path."""
    sessions.end_sessions(tx, user_of(call.actor), row_id(call) if "id" in call.params else None)


def end_of_user(tx: Tx, call: ApiCall) -> None:
    number = row_id(call, "sessionId") if "sessionId" in call.params else None
    sessions.end_sessions(tx, row_id(call), number)


def invite(tx: Tx, call: ApiCall) -> Json:
    """Create a sign-in link of a user."""
    made = sessions.invite(tx, row_id(call))
    return {"path": f"{call.root}{link_path(made['code'])}", "expiresAt": made["expiresAt"]}


def link_path(code: str) -> str:
    """Return the path of a sign-in link. The code is in the fragment, which no server and no log sees."""
    return f"{PAGES}/sign-in#{code}"


OWN, OF_USER = f"{user.PATH}/sessions", f"{users.PATH}/:id/sessions"
route = partial(Route, tag="Users")

ROUTES = (
    route(
        path=OWN,
        handler=reading(lambda tx, call: {"sessions": sessions.list_sessions(tx, user_of(call.actor))}),
        operation="getSessions",
        summary="List the caller's sessions at the pages",
        result=SESSIONS,
    ),
    route(
        path=OWN,
        method="DELETE",
        handler=writing(end_own),
        operation="endSessions",
        summary="End the caller's sessions at the pages",
    ),
    route(
        path=f"{OWN}/:id",
        method="DELETE",
        handler=writing(end_own),
        operation="endSession",
        summary="End a session of the caller",
    ),
    route(
        path=OF_USER,
        handler=reading(lambda tx, call: {"sessions": sessions.list_sessions(tx, find_user(tx, row_id(call)).id)}),
        operation="getSessionsOfUser",
        summary="List the sessions of a user at the pages",
        permission="ADMIN",
        result=SESSIONS,
    ),
    route(
        path=OF_USER,
        method="DELETE",
        handler=writing(end_of_user),
        operation="endSessionsOfUser",
        summary="End the sessions of a user at the pages",
        permission="ADMIN",
    ),
    route(
        path=f"{OF_USER}/:sessionId",
        method="DELETE",
        handler=writing(end_of_user),
        operation="endSessionOfUser",
        summary="End a session of a user",
        permission="ADMIN",
    ),
    route(
        path=f"{users.PATH}/:id/sign-in-link",
        method="POST",
        handler=writing(invite, headers=NO_STORE),
        operation="createSignInLink",
        summary="Create a link that signs a user in at the pages",
        description="Only this answer contains the link. It works once, within 15 minutes, and voids links before it.",
        permission="ADMIN",
        status=201,
        result=LINK,
    ),
)
