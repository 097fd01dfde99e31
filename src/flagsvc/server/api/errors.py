"""Builds the error responses of the flag server (import validation 1; 5).

An error has one of three forms. The checks before an operation send an id, a name, a message and details. An operation sends the
same without the id. The body parser, a token of the wrong type and maintenance mode send only a message.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, TimeoutError

from flagsvc.core.errors import DatabaseError, UnwritableError
from flagsvc.http.answers import Answer
from flagsvc.http.messages import Headers, HttpError
from flagsvc.server.store.checks import INVALID
from flagsvc.server.store.errors import CallerError, permission_refusal

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
"""SQLite's error codes for a file that cannot be used. Errors in a statement have other codes."""
DOCUMENTATION = "/docs/openapi"
ADMIN_TOKENS = "Send the token of a user, or an admin token"


class ApiError(HttpError):
    """An error response: its status, the JSON value of its body, and its additional headers."""

    def __init__(self, status: int, body: dict[str, Any], headers: Headers | None = None) -> None:
        super().__init__(status, str(body["message"]), [])
        self.body = body
        self.headers = [] if headers is None else headers

    def answer(self) -> Answer:
        return Answer(self.body, self.status, tuple(self.headers))


def bare(status: int, message: str, headers: Headers | None = None) -> ApiError:
    return ApiError(status, {"message": message}, headers)


def in_form(refused: HttpError) -> ApiError:
    """Return the error response for a `HttpError`. An error that the server shares with the proxy contains only a message."""
    if isinstance(refused, ApiError):
        return refused
    return bare(refused.status, refused.message, [(b"retry-after", str(refused.retry).encode())] if refused.retry else None)


def named(status: int, name: str, message: str, details: Sequence[Any] | None = None, headers: Headers | None = None) -> ApiError:
    """Return an error with an id, for a request that fails before its operation. By default, the message is the only detail."""
    found = [{"message": message}] if details is None else list(details)
    return ApiError(status, {"id": str(uuid4()), "name": name, "message": message, "details": found}, headers)


def refused(refusal: CallerError) -> ApiError:
    """Return the error of an operation, without an id."""
    return ApiError(refusal.status, {"name": refusal.name, "message": refusal.message, "details": list(refusal.details)})


def invalid(details: Sequence[Any]) -> ApiError:
    """Return the 400 for a body or a parameter that does not match its shape."""
    return named(400, "BadDataError", INVALID, details)


def no_token(base: str) -> ApiError:
    """Return the 401 of the admin API for a missing token (import validation 1.2). Its `path` leads to the documentation."""
    failure = named(401, "AuthenticationRequired", f"This request has no token. {ADMIN_TOKENS}, in the Authorization header.")
    failure.body |= {"path": f"{base}{DOCUMENTATION}", "type": "password", "defaultHidden": False}
    return failure


def sign_in_needed() -> ApiError:
    """Return the 401 of a page for someone who is not signed in."""
    return named(401, "AuthenticationRequired", "Sign in to see this page. A program sends a token, as to the admin API.")


def foreign_request() -> ApiError:
    """Return the 403 for a change that no page of this server has sent."""
    message = "This change did not come from a page of this server, so nothing was changed. Open the page again here."
    return named(403, "ForeignRequestError", message)


def unknown_token(wanted: str = ADMIN_TOKENS) -> ApiError:
    """Return the 401 for an unknown or expired token; `wanted` says which kind of token to send."""
    return named(401, "UnauthorizedError", f"This server does not know this token, or it has expired. {wanted}.")


def token_required() -> ApiError:
    """Return the 401 of the client API for a missing token."""
    return bare(
        401,
        "This endpoint requires an API token. Please add an authorization header to your request with a valid token",
    )


def two_tokens() -> ApiError:
    """Return the 400 for two tokens (ours: the real server takes the first).

    A gateway and this server could otherwise read different tokens, and so identify different callers.
    """
    return bare(400, "the header `authorization` came more than once")


def wrong_token() -> ApiError:
    return bare(403, "invalid token: expected a different token type for this endpoint")


def maintenance() -> ApiError:
    """Return the 503 for a change during maintenance mode."""
    return bare(503, "The server is in maintenance mode: it takes no changes until that is switched off.")


def unknown_path(path: str) -> ApiError:
    """Return the 404 for a path without a route."""
    return named(404, "NotFoundError", f"The path you were looking for ({path}) is not available.")


def wrong_method(path: str, method: str, allowed: str) -> ApiError:
    """Return the 405 for a known path without this method (ours: the real server answers 404)."""
    message = f"The path {path} does not take {method}. It takes {allowed.replace(',', ', ')}."
    return named(405, "MethodNotAllowedError", message, headers=[(b"allow", allowed.encode())])


def wrong_form(content_type: str) -> ApiError:
    """Return the 415 for a body that is no form, where a page reads a form."""
    return bare(415, f"the page reads a form (application/x-www-form-urlencoded), not {content_type or 'a body without a type'}")


def wrong_media(content_type: str) -> ApiError:
    """Return the 415 for a body that is not JSON, on a route that accepts JSON."""
    given = content_type or "you didn't provide one"
    return named(
        415,
        "ContentTypeError",
        f"We do not accept the content-type you provided ({given}). Try using one of the "
        "content-types we do accept instead (application/json) and make sure the body is in the corresponding format.",
    )


def forbidden(permissions: Sequence[str]) -> ApiError:
    """Return the 403 for a missing permission. Any of several permissions is enough."""
    failure = named(403, "PermissionError", permission_refusal(list(permissions)).message)
    failure.body |= {"permissions": list(permissions)}
    return failure


def too_large() -> ApiError:
    """Return the 413 for a body over the limit."""
    return bare(413, "request entity too large")


def too_deep() -> ApiError:
    """Return the 400 for a body that is nested too deeply."""
    return bare(400, "the body is nested too deeply")


def is_away(error: DatabaseError) -> bool:
    """Return whether the database was unreachable or too busy, so that a retry may succeed."""
    cause = error.__cause__
    if isinstance(cause, DBAPIError) and isinstance(cause.orig, sqlite3.Error):
        # the low byte is the primary error code; the other bits only refine it
        return getattr(cause.orig, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF in SQLITE_AWAY
    return isinstance(cause, OperationalError | InterfaceError | TimeoutError)


def unavailable() -> ApiError:
    again = [(b"retry-after", str(RETRY_S).encode())]
    return named(503, "DatabaseUnavailableError", "The database cannot be used at the moment. Try again.", headers=again)


def unwritable(error: UnwritableError) -> ApiError:
    """Return the 503 for a change of a database that takes none."""
    again = [(b"retry-after", str(RETRY_S).encode())]
    message = f"The database cannot be written: {error.why}. Nothing was changed."
    return named(503, "DatabaseUnwritableError", message, headers=again)


def unexpected() -> ApiError:
    """Return the 500 for an unexpected exception. It does not reveal the cause."""
    return named(500, "InternalError", "An unexpected error occurred. The log of the server says more.")
