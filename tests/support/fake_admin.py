"""A flag server's admin API on a loopback port. A test sets its answers, and it records its requests."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from support.http_servers import Reply, Request, http_server

TOKEN = "user:s3cret"
NOTHING: dict[str, Any] = {"errors": [], "warnings": [], "permissions": []}
EMPTY: dict[str, Any] = {
    name: []
    for name in (
        "features", "featureStrategies", "featureEnvironments", "contextFields", "featureTags", "segments", "tagTypes",
        "dependencies", "links"
    )
}  # fmt: skip
BATCH = "/api/admin/features-batch"


@dataclass(frozen=True)
class Answer:
    """What to answer: a status, a JSON value or bytes, a media type, a place to go instead."""

    status: int
    body: Any = None
    media: str = "application/json; charset=utf-8"
    location: str = ""

    def reply(self) -> Reply:
        body = self.body if isinstance(self.body, bytes) else b"" if self.body is None else json.dumps(self.body).encode()
        place = {"Location": self.location} if self.location else {}
        return Reply(self.status, body, {"Content-Type": self.media, **place})


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


def usual() -> dict[str, Answer | str]:
    """Return the answers of a server that has nothing against anything and holds no flag."""
    return {
        f"{BATCH}/validate": Answer(200, NOTHING),
        f"{BATCH}/import": Answer(200),
        f"{BATCH}/import/dry-run": Answer(200),
        f"{BATCH}/export": Answer(200, EMPTY),
        "/api/admin/projects": Answer(200, {"projects": [{"id": "default"}, {"id": "shop"}]}),
        "/api/admin/environments": Answer(200, {"environments": [{"name": "development"}, {"name": "production"}]}),
        "/api/admin/environments/project/default": Answer(
            200, {"environments": [{"name": "development", "visible": True}, {"name": "production", "visible": False}]}
        ),
        "/api/admin/user": Answer(200, {"user": {"id": 1}}),
        "/api/admin/context": Answer(200, [{"name": "userId"}]),
        "/api/admin/tag-types": Answer(200, {"tagTypes": [{"name": "simple"}]}),
    }


@dataclass
class FakeAdmin:
    """The running server: its address, its answers by path (`"close"`: the connection ends), its requests."""

    url: str = ""
    answers: dict[str, Answer | str] = field(default_factory=usual)
    asked: list[Asked] = field(default_factory=list)

    def sent(self, operation: str) -> list[Any]:
        return [asked.body for asked in self.asked if asked.path == f"{BATCH}/{operation}"]

    def say(self, operation: str, status: int, body: Any = None, **more: str) -> None:
        self.answers[f"{BATCH}/{operation}"] = Answer(status, body, **more)


@contextmanager
def fake_admin(tls: ssl.SSLContext | None = None) -> Iterator[FakeAdmin]:
    """Run the server until the block ends, over TLS if there is a context for it; it is an outbound proxy as well."""
    fake = FakeAdmin()

    def answer(request: Request) -> Reply | None:
        body = request.json() if request.body else None
        fake.asked.append(Asked(request.method, request.target, request.headers, body))
        message = f"The path you were looking for ({request.path}) is not available."
        given = fake.answers.get(request.path, Answer(404, {"name": "NotFoundError", "message": message}))
        return None if isinstance(given, str) else given.reply()

    with http_server(answer, tls=tls) as fake.url:
        yield fake
