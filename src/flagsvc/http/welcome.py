"""`GET /`: what the program is and where to go, as text or JSON by `Accept` (ours: the reference answers 404).

It needs no key and no configuration, and tells only what anybody can find out by asking.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from flagsvc.http.call import Answer, Call, Handler
from flagsvc.proxy.api.answers import ASK_AGAIN, JSON, TEXT, Answers, FixedHeaders
from flagsvc.proxy.api.routes import Auth, RouteRow
from flagsvc.proxy.api.settings import ServiceSettings

NAME = "flagsvc proxy"
ABOUT = "evaluates feature flags for applications"
KEYS = {
    Auth.NONE: "",
    Auth.CLIENT: "client key",
    Auth.SERVER: "server-side token",
    Auth.EITHER: "client key or server-side token",
}
VARY = (b"Accept", b"Accept-Encoding")
READ_AS_TEXT = ("text/plain", "text/html", "text/*")
LONGEST = 512
"""Bytes of an Accept that are looked at."""


class EndpointEntry(NamedTuple):
    """One endpoint: what it is for, and which key or token opens it, if it needs one."""

    method: str
    path: str
    description: str
    key: str = ""


class FirstPage(Handler):
    """Answers callers who have only the address."""

    def __init__(self, settings: ServiceSettings, rows: Sequence[RouteRow], answers: Answers) -> None:
        self.answers = answers
        self.base = settings.base_path
        self.rows = [row for row in rows if row.listed and row.path != "/" and told(row, settings)]
        self.text = FixedHeaders(answers.cors, TEXT, ASK_AGAIN, VARY, [])
        self.json = FixedHeaders(answers.cors, JSON, ASK_AGAIN, VARY, [])

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return the endpoints as they are reached from where the caller is."""
        root = quote(call.request.root)
        found = [
            EndpointEntry(row.method, root + row.place(self.base), row.summary, KEYS[row.auth]) for row in self.rows
        ]
        if prefers_json(call.accept):
            return self.answers.seal(self.json, call, msgspec.json.encode(as_json(NAME, ABOUT, found)))
        return self.answers.seal(self.text, call, as_text(NAME, ABOUT, found).encode())


def told(row: RouteRow, settings: ServiceSettings) -> bool:
    """Return whether a row is there, and that is no secret: what only key holders get to know of is left out."""
    return row.condition is None or (row.condition.status == 404 and row.on(settings))


def prefers_json(accept: bytes | None) -> bool:
    """Return whether an Accept asks for JSON at least as much as for text; none, and `*/*`, do not."""
    wanted = dict(qualities((accept or b"")[:LONGEST].decode("latin-1")))
    json = wanted.get("application/json", 0.0)
    return json > 0 and json >= max(wanted.get(media, 0.0) for media in READ_AS_TEXT)


def qualities(accept: str) -> Iterable[tuple[str, float]]:
    """Give each media type with how much it is wanted, from 0 to 1."""
    for each in accept.lower().split(","):
        media, _, parameters = each.partition(";")
        quality = next((word.strip() for word in parameters.split(";") if word.strip().startswith("q=")), "q=1")
        try:
            yield media.strip(), float(quality[2:])
        except ValueError:
            yield media.strip(), 0.0


def as_text(name: str, about: str, places: Sequence[EndpointEntry]) -> str:
    """Return a page of text: a line for each place."""
    method, path = (max(len(each[column]) for each in places) for column in (0, 1))
    lines = [
        f"  {each.method:<{method}}  {each.path:<{path}}  {each.description}{f' ({each.key})' if each.key else ''}"
        for each in places
    ]
    return "\n".join([f"{name} {about}.", "", *lines, ""])


def as_json(name: str, about: str, places: Sequence[EndpointEntry]) -> dict[str, Any]:
    """Return the same as a JSON value."""
    return {"name": name, "description": about, "endpoints": [each._asdict() for each in places]}
