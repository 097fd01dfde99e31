"""Explains error answers of the admin API in one line, with what to do about them, and names the item of a violation. Does no I/O.

The answers and the forms of errors are those of the real server (import validation 1; 5).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from flagsvc.cli.batch.target import ONE, Side
from flagsvc.core.errors import FlagsvcError
from flagsvc.settings.kinds import printable

MAX_MESSAGE_LENGTH = 600
"""The most characters of a server's message to show."""


class AdminApiError(FlagsvcError):
    """A request to the admin API failed. `exit_code` is that of the command.

    `kind` is `network`, `unclear` (the request was sent, but no answer came), or a kind of `ROWS`. `status` is the HTTP status, if
    any. `details` are the server's schema violations, each with path and message.
    """

    exit_code = 2

    def __init__(self, kind: str, message: str, *, status: int | None = None, details: tuple[dict[str, str], ...] = ()) -> None:
        self.kind = kind
        self.status = status
        self.details = details
        super().__init__(message)


@dataclass(frozen=True)
class Reply:
    """One HTTP answer: status, body, and the target of a redirect. `path` is the requested path, `sent` the request's size."""

    status: int
    body: bytes = field(repr=False)
    path: str = ""
    sent: int = 0
    location: str = ""

    @property
    def value(self) -> Any:
        """The JSON value of the body; None if it is not JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    @property
    def error(self) -> dict[str, Any]:
        """The body as an error object; empty if it is not one."""
        value = self.value
        return value if isinstance(value, dict) else {}

    @property
    def message(self) -> str:
        """The server's explanation of an error: the details if there are any, else the message, perhaps empty."""
        details = [str(item["message"]) for item in self.details if "message" in item]
        text = "; ".join(details) or str(self.error.get("message", ""))
        return printable(text, MAX_MESSAGE_LENGTH)

    @property
    def details(self) -> tuple[dict[str, str], ...]:
        """The valid details of an error object."""
        found = self.error.get("details")
        return tuple(item for item in found if isinstance(item, dict)) if isinstance(found, list) else ()

    @property
    def is_wrong_address(self) -> bool:
        """Whether a 404 is about the address, not about an object in the request."""
        return self.error.get("name") != "NotFoundError" or self.path.lower() in self.message.lower()


class ServerErrorRow(NamedTuple):
    """The meaning of a status; the first matching row applies.

    `text` may use {url}, {message}, {size}, {status}, {location}; {tokens} and {address}, the options for token and address; and
    {smaller}, advice for a too large request.
    """

    lowest: int
    highest: int
    kind: str
    text: str
    says: str = ""
    """A text that the message must contain, in any letter case, for the row to match."""


ROWS = (
    ServerErrorRow(
        300, 399, "redirect", "`{url}` redirects to `{location}`, where the token is not sent: give that address as {address}"
    ),
    ServerErrorRow(400, 400, "refused", "the server refused the request: {message}"),
    ServerErrorRow(401, 401, "unauthorized", "the server does not know the token: give another with {tokens}"),
    ServerErrorRow(
        403, 403, "token-type",
        "the token is one for SDKs and proxies, which the admin API does not take: give another with {tokens} "
        "(a personal access token)",
        says="token type",
    ),
    ServerErrorRow(403, 403, "forbidden", "the user of the token may not do this: {message}"),
    ServerErrorRow(404, 404, "not-found", "the server does not find it: {message}"),
    ServerErrorRow(409, 409, "conflict", "the server refused the request: {message}"),
    ServerErrorRow(
        413, 413, "too-large",
        "the data set is too large: {size} bytes were sent, and a flag server takes 512000 where its limit was not raised; "
        "{smaller}",
    ),
    ServerErrorRow(415, 415, "media-type", "the server does not take JSON at `{url}`: is {address} the address of a flag server?"),
    ServerErrorRow(429, 429, "throttled", "the server asks for fewer requests: try again later"),
    ServerErrorRow(503, 503, "maintenance", "the server is in maintenance mode: try again when it is over", says="maintenance"),
    ServerErrorRow(500, 599, "server", "the server failed with status {status}{colon}: try again, and see its log if it stays so"),
)  # fmt: skip
UNEXPECTED = ServerErrorRow(
    0, 999, "unexpected", "`{url}` answered with status {status}, which a flag server does not send: is it one?"
)
NO_ADMIN_API = ServerErrorRow(404, 404, "no-flag-server", "no flag server's admin API is at `{url}`: check {address}")
NO_TOKEN = ServerErrorRow(401, 401, "unauthorized", "the server wants a token: give one with {tokens}")


def read_error(reply: Reply, url: str, *, token: bool, side: Side = ONE) -> AdminApiError:
    """Return the error for an answer without success.

    `url` is the address to show (without a password), `token` whether one was sent, `side` how the command line names the server.
    The message contains no header.
    """
    row = find_row(reply, token=token)
    colon = f": {reply.message.rstrip('.')}" if reply.message else ""
    text = row.text.format(
        url=url,
        tokens=side.tokens,
        address=side.address,
        smaller=side.smaller,
        message=reply.message or f"status {reply.status}",
        size=reply.sent,
        status=reply.status,
        colon=colon,
        location=printable(reply.location.partition("?")[0], 200),
    )
    return AdminApiError(row.kind, text.rstrip("."), status=reply.status, details=reply.details)


def find_row(reply: Reply, *, token: bool) -> ServerErrorRow:
    """Return the row that matches an answer."""
    if reply.status == 404 and reply.is_wrong_address:
        return NO_ADMIN_API
    if reply.status == 401 and not token:
        return NO_TOKEN
    said = str(reply.error.get("message", "")).lower()
    fitting = (row for row in ROWS if row.lowest <= reply.status <= row.highest and row.says in said)
    return next(fitting, UNEXPECTED)


LABELS: dict[str, tuple[str, ...]] = {
    "features": ("name",),
    "featureStrategies": ("featureName", "name"),
    "featureEnvironments": ("featureName", "name"),
    "contextFields": ("name",),
    "featureTags": ("featureName",),
    "segments": ("name", "id"),
    "tagTypes": ("name",),
    "dependencies": ("feature",),
    "links": ("feature",),
}
"""List of a data set → the properties that name an item; the first existing one is used."""
PROVIDED, NOT_VALID = 'You provided "', '", which is not valid'
POINTERS = re.compile(r"`(/body[^`]*)`")


class FileViolation(NamedTuple):
    """One violation: the place in the file with the item's name, the message, and the server's path."""

    place: str
    message: str
    path: str


def read_violation(detail: Mapping[str, Any], request: Mapping[str, Any], *, bare: bool) -> FileViolation:
    """Return the violation in a detail of a 400.

    `request` is what was sent. `bare` means that the file is only a data set, so places are relative to it.
    """
    path, message = str(detail.get("path", "")), str(detail.get("message", ""))
    parts = split_pointer(path) if path.startswith("/") else find_value(path, message, request)
    readable = POINTERS.sub(lambda match: f"`{format_path(split_pointer(match[1]), bare) or 'the file'}`", message)
    return FileViolation(describe_place(parts, request, bare=bare), printable(readable, 1000).rstrip("."), printable(path, 300))


def split_pointer(pointer: str) -> list[str]:
    """Return the keys and indexes of a server's path, without `body`."""
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.strip("/").split("/")]
    return parts[1:] if parts[:1] == ["body"] else parts


def describe_place(parts: list[str], request: Mapping[str, Any], *, bare: bool) -> str:
    """Return a path for people, with the name of the item: `data.features[3].type (new-checkout)`."""
    name = item_name(parts, request)
    return (format_path(parts, bare) or "the file") + (f" ({name})" if name else "")


def format_path(parts: list[str], bare: bool) -> str:
    """Return keys and indexes as a path."""
    own = parts[1:] if bare and parts[:1] == ["data"] else parts
    text = "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in own)
    return printable(text.removeprefix("."), 300)


def item_name(parts: list[str], request: Mapping[str, Any]) -> str:
    """Return the name of the data set's item in a path; empty without one."""
    if len(parts) < 3 or parts[0] != "data" or parts[1] not in LABELS or not parts[2].isdigit():
        return ""
    try:
        item = request["data"][parts[1]][int(parts[2])]
    except (KeyError, IndexError, TypeError):
        return ""
    names = [item[key] for key in LABELS[parts[1]] if key in item] if isinstance(item, dict) else []
    return printable(str(names[0]), 120) if names and isinstance(names[0], str | int) else ""


def find_value(key: str, message: str, request: Mapping[str, Any]) -> list[str]:
    """Return the path of a value that is not allowed: the server sends only the last part of it."""
    provided, found, _ = message.partition(PROVIDED)[2].rpartition(NOT_VALID)
    try:
        wanted = json.loads(f'"{provided}"') if found else None
    except ValueError:
        wanted = None
    return next((path for path, value in walk(request, []) if path[-1:] == [key] and value == wanted), [key])


def walk(value: object, path: list[str]) -> Iterator[tuple[list[str], object]]:
    """Yield every value with its path, outer ones first, in the order of the file."""
    yield path, value
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in below:
        yield from walk(item, [*path, str(key)])
