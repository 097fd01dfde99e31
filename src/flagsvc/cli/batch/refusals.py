"""What an answer of the admin API that is no success means, in one line, and what to do about it. No I/O in here.

The answers and the forms of errors are those of the real server (import validation 1; 5).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from flagsvc.cli.batch.target import ONE, Side
from flagsvc.core.errors import FlagsvcError
from flagsvc.settings.kinds import printable

LONGEST = 600
"""Characters of a server's message that are shown."""


class CannotAskError(FlagsvcError):
    """The server was not asked, or gave no answer to what was asked (exit code 2).

    `kind` is one of `network`, `unclear` (the request was sent, its answer did not come), or a kind of `ROWS`; `status`
    the HTTP status, if one came; `details` are the server's violations of the schema, each with path and message.
    """

    def __init__(
        self, kind: str, message: str, *, status: int | None = None, details: tuple[dict[str, str], ...] = ()
    ) -> None:
        self.kind = kind
        self.status = status
        self.details = details
        super().__init__(message)


@dataclass(frozen=True)
class Reply:
    """One HTTP answer: status, body, where a redirect leads; `path` is what was asked for, `sent` the size of the request."""

    status: int
    body: bytes = field(repr=False)
    path: str = ""
    sent: int = 0
    location: str = ""

    @property
    def value(self) -> Any:
        """The body read as JSON, None where it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    @property
    def error(self) -> dict[str, Any]:
        """The body as an error object, empty where it is none."""
        value = self.value
        return value if isinstance(value, dict) else {}

    @property
    def message(self) -> str:
        """What the server says about a refusal: the details where there are any, else the message; empty where nothing."""
        details = [str(item["message"]) for item in self.details if "message" in item]
        text = "; ".join(details) or str(self.error.get("message", ""))
        return printable(text, LONGEST)

    @property
    def details(self) -> tuple[dict[str, str], ...]:
        """The details of an error object that have the form of one."""
        found = self.error.get("details")
        return tuple(item for item in found if isinstance(item, dict)) if isinstance(found, list) else ()

    @property
    def astray(self) -> bool:
        """Whether a 404 is about the address, not about what was named in the request."""
        return self.error.get("name") != "NotFoundError" or self.path.lower() in self.message.lower()


class RefusalRow(NamedTuple):
    """What a status means: the first row that fits counts.

    `text` may use {url}, {message}, {size}, {status}, {location}; {tokens} and {address}, what gives the token and the address;
    {smaller}, what helps where it is too large.
    """

    lowest: int
    highest: int
    kind: str
    text: str
    says: str = ""
    """What the message must contain, in any letter case, for the row to fit."""


ROWS = (
    RefusalRow(
        300, 399, "redirect", "`{url}` redirects to `{location}`, where the token is not sent: give that address as {address}"
    ),
    RefusalRow(400, 400, "refused", "the server refused the request: {message}"),
    RefusalRow(401, 401, "unauthorized", "the server does not know the token: give another with {tokens}"),
    RefusalRow(
        403, 403, "token-type",
        "the token is one for SDKs and proxies, which the admin API does not take: give another with {tokens} "
        "(a personal access token)",
        says="token type",
    ),
    RefusalRow(403, 403, "forbidden", "the user of the token may not do this: {message}"),
    RefusalRow(404, 404, "not-found", "the server does not find it: {message}"),
    RefusalRow(409, 409, "conflict", "the server refused the request: {message}"),
    RefusalRow(
        413, 413, "too-large",
        "the data set is too large: {size} bytes were sent, and a flag server takes 512000 where its limit was not raised; "
        "{smaller}",
    ),
    RefusalRow(415, 415, "media-type", "the server does not take JSON at `{url}`: is {address} the address of a flag server?"),
    RefusalRow(429, 429, "throttled", "the server asks for fewer requests: try again later"),
    RefusalRow(503, 503, "maintenance", "the server is in maintenance mode: try again when it is over", says="maintenance"),
    RefusalRow(500, 599, "server", "the server failed with status {status}{colon}: try again, and see its log if it stays so"),
)  # fmt: skip
OTHER = RefusalRow(
    0, 999, "unexpected", "`{url}` answered with status {status}, which means nothing here: is it a flag server?"
)
NOWHERE = RefusalRow(404, 404, "no-flag-server", "no flag server's admin API is at `{url}`: check {address}")
NO_TOKEN = RefusalRow(401, 401, "unauthorized", "the server wants a token: give one with {tokens}")


def refusal(reply: Reply, url: str, *, token: bool, side: Side = ONE) -> CannotAskError:
    """Return the error of an answer that is no success.

    `url` is the address to name (no password in it), `token` whether one was sent, `side` how the command line names the server.
    The message repeats no header.
    """
    row = row_of(reply, token=token)
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
    return CannotAskError(row.kind, text.rstrip("."), status=reply.status, details=reply.details)


def row_of(reply: Reply, *, token: bool) -> RefusalRow:
    """Return the row that an answer falls under."""
    if reply.status == 404 and reply.astray:
        return NOWHERE
    if reply.status == 401 and not token:
        return NO_TOKEN
    said = str(reply.error.get("message", "")).lower()
    fitting = (row for row in ROWS if row.lowest <= reply.status <= row.highest and row.says in said)
    return next(fitting, OTHER)
