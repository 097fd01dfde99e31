"""A flag server's admin API on a loopback port. A test sets its answers, and it records its requests."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

TOKEN = "user:s3cret"
NOTHING: dict[str, Any] = {"errors": [], "warnings": [], "permissions": []}
EMPTY: dict[str, Any] = {
    name: []
    for name in (
        "features", "featureStrategies", "featureEnvironments", "contextFields", "featureTags", "segments", "tagTypes",
        "dependencies", "links",
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

    def content(self) -> bytes:
        """The body as bytes."""
        return (
            self.body if isinstance(self.body, bytes) else b"" if self.body is None else json.dumps(self.body).encode()
        )


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
        """Return the bodies that came for one batch operation."""
        return [asked.body for asked in self.asked if asked.path == f"{BATCH}/{operation}"]

    def say(self, operation: str, status: int, body: Any = None, **more: str) -> None:
        """Answer a batch operation like this from now on."""
        self.answers[f"{BATCH}/{operation}"] = Answer(status, body, **more)


@contextmanager
def fake_admin(tls: ssl.SSLContext | None = None) -> Iterator[FakeAdmin]:
    """Run the server until the block ends, over TLS if there is a context for it; it is an outbound proxy as well."""
    fake = FakeAdmin()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Answer as the test sets it. Other paths are 404."""
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            path = urlsplit(self.path).path
            fake.asked.append(Asked(self.command, self.path, headers, json.loads(content) if content else None))
            missing = {
                "name": "NotFoundError",
                "message": f"The path you were looking for ({path}) is not available.",
            }
            answer = fake.answers.get(path, Answer(404, missing))
            if isinstance(answer, str):
                return
            body = answer.content()
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.media)
            self.send_header("Content-Length", str(len(body)))
            if answer.location:
                self.send_header("Location", answer.location)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
            server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that does not trust it leaves
        fake.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield fake
        finally:
            server.shutdown()
            thread.join()
