"""The errors of the flag server in the forms of the wire (import validation 1; 5).

Three forms: what stands before a route answers with an id, a name, a message and details; what an operation refuses with the same
without the id; the body parser, a token of the wrong type and maintenance with a message alone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, TimeoutError

from flagsvc.core.errors import DatabaseError
from flagsvc.http.messages import Headers, HttpError
from flagsvc.server.store.checks import INVALID
from flagsvc.server.store.errors import CallerError

RETRY_S = 5
SQLITE_AWAY = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PROTOCOL,
    }
)
"""What SQLite fails with when the file cannot be used, not when a statement is wrong."""
DOCUMENTATION = "/docs/openapi"
ADMIN_TOKENS = "Send the token of a user, or an admin token"


class ApiError(HttpError):
    """The answer is an error: a status, the JSON value of its body, and headers of its own."""

    def __init__(self, status: int, body: dict[str, Any], headers: Headers | None = None) -> None:
        super().__init__(status, str(body["message"]), [])
        self.body = body
        self.headers = [] if headers is None else headers


def bare(status: int, message: str, headers: Headers | None = None) -> ApiError:
    """Return an error that is a message and nothing else: of the body parser, of a wrong token, of maintenance."""
    return ApiError(status, {"message": message}, headers)


def in_form(refused: HttpError) -> ApiError:
    """Return an error in the form of the wire; one that both programs know is a message and nothing else."""
    return refused if isinstance(refused, ApiError) else bare(refused.status, refused.message)


def named(
    status: int, name: str, message: str, details: Sequence[Any] | None = None, headers: Headers | None = None
) -> ApiError:
    """Return an error that a request meets before its operation: with an id; the details are by default the message."""
    found = [{"message": message}] if details is None else list(details)
    return ApiError(status, {"id": str(uuid4()), "name": name, "message": message, "details": found}, headers)


def refused(refusal: CallerError) -> ApiError:
    """Return an operation's own error: without an id."""
    return ApiError(
        refusal.status, {"name": refusal.name, "message": refusal.message, "details": list(refusal.details)}
    )


def invalid(details: Sequence[Any]) -> ApiError:
    """Return the 400 for a body or a parameter that does not have its shape."""
    return named(400, "BadDataError", INVALID, details)


def no_token(base: str) -> ApiError:
    """Return the 401 for no token on the admin API (import validation 1.2); its `path` is the documentation's."""
    failure = named(
        401, "AuthenticationRequired", f"This request has no token. {ADMIN_TOKENS}, in the Authorization header."
    )
    failure.body |= {"path": f"{base}{DOCUMENTATION}", "type": "password", "defaultHidden": False}
    return failure


def unknown_token(wanted: str = ADMIN_TOKENS) -> ApiError:
    """Return the 401 for a token that is not known; `wanted` says which kind to send."""
    return named(401, "UnauthorizedError", f"This server does not know this token, or it has expired. {wanted}.")


def token_required() -> ApiError:
    """Return the 401 of the client API."""
    return bare(
        401,
        "This endpoint requires an API token. Please add an authorization header to your request with a valid token",
    )


def two_tokens() -> ApiError:
    """Return the 400 for two tokens (ours: the real server takes the first): who reads the other would let in somebody else."""
    return bare(400, "the header `authorization` came more than once")


def wrong_token() -> ApiError:
    """Return the 403 for a token of the wrong type."""
    return bare(403, "invalid token: expected a different token type for this endpoint")


def maintenance() -> ApiError:
    """Return the 503 of maintenance mode."""
    return bare(503, "The server is in maintenance mode: it takes no changes until that is switched off.")


def unknown_path(path: str) -> ApiError:
    """Return the 404 for a path that is no route."""
    return named(404, "NotFoundError", f"The path you were looking for ({path}) is not available.")


def no_frontend_api() -> ApiError:
    """Return the 404 of the frontend API (ours: the real server has one), which says what answers frontend SDKs."""
    return named(
        404,
        "NotFoundError",
        "This server does not evaluate flags. Start `flagsvc proxy` on it: frontend SDKs use /proxy there, with a client key.",
    )


def wrong_method(path: str, method: str, allowed: str) -> ApiError:
    """Return the 405 for a known path (ours: the real server answers 404)."""
    message = f"The path {path} does not take {method}. It takes {allowed.replace(',', ', ')}."
    return named(405, "MethodNotAllowedError", message, headers=[(b"allow", allowed.encode())])


def wrong_media(content_type: str) -> ApiError:
    """Return the 415 for a body that is not JSON, on a route that takes one."""
    given = content_type or "you didn't provide one"
    return named(
        415,
        "ContentTypeError",
        f"We do not accept the content-type you provided ({given}). Try using one of the "
        "content-types we do accept instead (application/json) and make sure the body is in the corresponding format.",
    )


def forbidden(permissions: Sequence[str]) -> ApiError:
    """Return the 403 for a missing permission; of several any one would do."""
    names = ", ".join(f'"{name}"' for name in permissions)
    needed = f"the {names} permission" if len(permissions) == 1 else f"one of the following permissions: {names}"
    failure = named(
        403,
        "PermissionError",
        "You don't have the required permissions to perform this operation. To perform this action, you need "
        f"{needed}.",
    )
    failure.body |= {"permissions": list(permissions)}
    return failure


def too_large() -> ApiError:
    """Return the 413 for a body over the limit."""
    return bare(413, "request entity too large")


def too_deep() -> ApiError:
    """Return the 400 for a body nested beyond all measure."""
    return bare(400, "the body is nested too deeply")


def is_away(error: DatabaseError) -> bool:
    """Return whether the database could not be reached, or was too busy: asking again may help."""
    cause = error.__cause__
    if isinstance(cause, DBAPIError) and isinstance(cause.orig, sqlite3.Error):
        # the low byte is the kind; what is above it says more of the same
        return getattr(cause.orig, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF in SQLITE_AWAY
    return isinstance(cause, OperationalError | InterfaceError | TimeoutError)


def unavailable() -> ApiError:
    """Return the 503 while the database is away."""
    again = [(b"retry-after", str(RETRY_S).encode())]
    return named(
        503, "DatabaseUnavailableError", "The database cannot be used at the moment. Try again.", headers=again
    )


def unexpected() -> ApiError:
    """Return the 500 that tells nothing of its cause."""
    return named(500, "InternalError", "An unexpected error occurred. The log of the server says more.")
