"""A flag server that tests control: the document can be replaced while it runs, and every request is recorded."""

from __future__ import annotations

import hashlib
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

FEATURES = "/api/client/features"
REGISTER = "/api/client/register"
METRICS = "/api/client/metrics"
VALIDATE = "/edge/validate"


@dataclass(frozen=True)
class Recorded:
    """One request as it came. Header names are in lower case."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes
    status: int

    def json(self) -> Any:
        """Return the body read as JSON."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    """The answer for a path in place of the usual one."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


def granted(kind: str, *projects: str, environment: str = "production") -> dict[str, object]:
    """Return what a token opens, for `FakeUpstream.tokens`: of all projects without any."""
    return {"type": kind, "projects": list(projects) or ["*"], "environment": environment}


class FakeUpstream:
    """The client API of a flag server at `url`, which ends in `/api`: features with ETag, registration, metrics.

    `tokens` are those of callers, each with what it opens. Without them the server does not know the question. `serve` gives a
    token of a proxy a document of its own.
    """

    def __init__(self, document: object) -> None:
        self.url = ""
        self.tokens: dict[str, dict[str, object]] | None = None
        self.requests: list[Recorded] = []
        self.replies: dict[str, Reply] = {}
        self.is_over = False
        self._changed = threading.Condition()
        self._bodies: dict[str, bytes] = {}
        self.replace(document)

    def replace(self, document: object) -> None:
        """Serve `document` from now on; bytes are served as they are."""
        self.serve("", document)

    def serve(self, token: str, document: object) -> None:
        """Serve `document` from now on where this token asks; the empty one stands for all others."""
        with self._changed:
            self._bodies[token] = document if isinstance(document, bytes) else json.dumps(document).encode()

    def received(self, path: str, status: int | None = None) -> list[Recorded]:
        """Return the requests for `path` so far, those answered with `status` if one is given."""
        with self._changed:
            return [seen for seen in self.requests if seen.path == path and status in (None, seen.status)]

    def asked_tokens(self) -> list[list[str]]:
        """Return the tokens of each question so far that was about tokens."""
        return [seen.json()["tokens"] for seen in self.received(VALIDATE)]

    def forget(self) -> None:
        """Forget the requests so far."""
        with self._changed:
            self.requests.clear()

    def wait(self, condition: Callable[[], object], seconds: float = 20.0) -> None:
        """Return when `condition` holds; it is looked at after each request. Fails after `seconds`."""
        with self._changed:
            held = self._changed.wait_for(condition, seconds)
        paths = [(seen.method, seen.path, seen.status) for seen in self.requests[-20:]]
        assert held, f"the upstream server waited {seconds} s in vain; the last requests were {paths}"

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Reply:
        """Return the answer to a request, and record the request."""
        parts = urlsplit(target)
        with self._changed:
            reply = self.replies.get(parts.path) or self._usual(method, parts.path, headers, body)
            query = parse_qs(parts.query, keep_blank_values=True)
            self.requests.append(Recorded(method, parts.path, query, headers, body, reply.status))
            self._changed.notify_all()
        return reply

    def _usual(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Reply:
        if (method, path) == ("GET", FEATURES):
            body = self._bodies.get(headers.get("authorization", ""), self._bodies[""])
            etag = f'W/"{hashlib.sha256(body).hexdigest()[:16]}"'
            if headers.get("if-none-match") == etag:
                return Reply(304, headers={"ETag": etag})
            return Reply(200, body, {"ETag": etag, "Content-Type": "application/json"})
        if (method, path) == ("POST", VALIDATE) and self.tokens is not None:
            known = [
                {"token": token, **self.tokens[token]} for token in json.loads(body)["tokens"] if token in self.tokens
            ]
            return Reply(200, json.dumps({"tokens": known}).encode(), {"Content-Type": "application/json"})
        return Reply(202) if (method, path) in (("POST", REGISTER), ("POST", METRICS)) else Reply(404)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 30
    upstream: FakeUpstream

    def _serve(self) -> None:
        if self.upstream.is_over:  # on a connection that was kept
            self.close_connection = True
            return
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = self.upstream.answer(self.command, self.path, headers, body)
        lines = [f"HTTP/1.1 {reply.status} Fake", *(f"{name}: {value}" for name, value in reply.headers.items())]
        if reply.status != 304:
            lines.append(f"Content-Length: {len(reply.body)}")
        self.wfile.write("\r\n".join([*lines, "", ""]).encode("latin-1") + reply.body)

    do_GET = do_POST = do_HEAD = do_PUT = _serve  # noqa: N815 - the names http.server looks for

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing: tests read the recorded requests."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing about a caller that went away in the middle."""


@contextmanager
def fake_upstream(document: object, port: int = 0, tls: ssl.SSLContext | None = None) -> Iterator[FakeUpstream]:
    """Run a flag server that serves `document` on a loopback port, by default a free one; over TLS with these settings."""
    upstream = FakeUpstream(document)
    handler = type("Handler", (_Handler,), {"upstream": upstream})
    server = _Server(("127.0.0.1", port), handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    upstream.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}/api"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield upstream
    finally:
        upstream.is_over = True
        server.shutdown()
        thread.join()
        server.server_close()
