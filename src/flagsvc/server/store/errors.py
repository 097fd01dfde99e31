"""The errors of the flag server by the real server's names (import validation 5). One class; the API answers the name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeAlias

from flagsvc.core.errors import FlagsvcError

Detail: TypeAlias = dict[str, str]

STATUS = {
    "BadDataError": 400,
    "PatternError": 400,
    "ValidationError": 400,
    "PermissionError": 403,
    "InvalidOperationError": 403,
    "OperationDeniedError": 403,
    "NotFoundError": 404,
    "NameExistsError": 409,
    "FeatureHasTagError": 409,
    "ConflictError": 409,
}
"""Name of an error → its HTTP status."""

BAD_DATA = "Request validation failed: your request body or params contain invalid data: "
"""The prefix of the real server's message of a BadDataError with one detail."""


class CallerError(FlagsvcError):
    """A request that cannot be served. `details` are objects with a `message`; by default one, with the error's message."""

    def __init__(self, name: str, message: str, details: Sequence[Detail] | None = None, *, status: int | None = None) -> None:
        self.name = name
        self.status = STATUS[name] if status is None else status
        self.message = message
        self.details = [{"message": message}] if details is None else list(details)
        super().__init__(message)


def bad_data(message: str) -> CallerError:
    """Return the 400 for invalid data: only its message has the prefix."""
    return CallerError("BadDataError", BAD_DATA + message, [{"message": message}])


def permission_refusal(permissions: list[str], environment: str | None = None) -> CallerError:
    """Return the 403 for missing permissions. As on the real server, its text for several says that one is enough."""
    names = ", ".join(f'"{name}"' for name in permissions)
    needed = f"the {names} permission" if len(permissions) == 1 else f"one of the following permissions: {names}"
    place = "" if environment is None else f' in the "{environment}" environment'
    start = "You don't have the required permissions to perform this operation. To perform this action, you need"
    return CallerError("PermissionError", f"{start} {needed}{place}.")


def not_found(message: str) -> CallerError:
    return CallerError("NotFoundError", message)


P = ParamSpec("P")


def refusal_text(check: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> str:
    """Return the first message of a check that raises CallerError; empty if it passes."""
    try:
        check(*args, **kwargs)
    except CallerError as refusal:
        return refusal.details[0]["message"]
    return ""
