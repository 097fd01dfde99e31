"""A flag server that tests control: the document can be replaced while it runs, and every request is recorded."""

from __future__ import annotations

import hashlib
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from support.http_servers import Reply as Reply
from support.http_servers import Request, http_server, json_reply

FEATURES = "/api/client/features"
REGISTER = "/api/client/register"
METRICS = "/api/client/metrics"
VALIDATE = "/edge/validate"


@dataclass(frozen=True)
class Recorded(Request):
    """One request, and the status of its answer."""

    status: int


def granted(kind: str, *projects: str, environment: str = "production") -> dict[str, object]:
    """Return what a token opens, for `FakeUpstream.tokens`: of all projects without any."""
    return {"type": kind, "projects": list(projects) or ["*"], "environment": environment}


class FakeUpstream:
    """The client API of a flag server at `url`, which ends in `/api`: features with ETag, registration, metrics.

    `tokens` are the tokens of callers, each with what it opens. Without them the server does not know the question. `serve` gives a
    token of a proxy a document of its own.
    """

    def __init__(self, document: object) -> None:
        self.url = ""
        self.tokens: dict[str, dict[str, object]] | None = None
        self.requests: list[Recorded] = []
        self.replies: dict[str, Reply] = {}
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
        return [seen.json()["tokens"] for seen in self.received(VALIDATE)]

    def forget(self) -> None:
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
        path = urlsplit(target).path
        with self._changed:
            reply = self.replies.get(path) or self._usual((method, path), headers, body)
            self.requests.append(Recorded(method, target, headers, body, reply.status))
            self._changed.notify_all()
        return reply

    def _usual(self, called: tuple[str, str], headers: dict[str, str], body: bytes) -> Reply:
        if called == ("GET", FEATURES):
            body = self._bodies.get(headers.get("authorization", ""), self._bodies[""])
            etag = f'W/"{hashlib.sha256(body).hexdigest()[:16]}"'
            if headers.get("if-none-match") == etag:
                return Reply(304, headers={"ETag": etag})
            return Reply(200, body, {"ETag": etag, "Content-Type": "application/json"})
        if called == ("POST", VALIDATE) and self.tokens is not None:
            asked = json.loads(body)["tokens"]
            return json_reply({"tokens": [{"token": each, **self.tokens[each]} for each in asked if each in self.tokens]})
        return Reply(202) if called in (("POST", REGISTER), ("POST", METRICS)) else Reply(404)


@contextmanager
def fake_upstream(document: object, port: int = 0, tls: ssl.SSLContext | None = None) -> Iterator[FakeUpstream]:
    """Run a flag server that serves `document` on a loopback port, by default a free one; over TLS with these settings."""
    upstream = FakeUpstream(document)

    def answer(request: Request) -> Reply:
        return upstream.answer(request.method, request.target, request.headers, request.body)

    with http_server(answer, port=port, tls=tls) as address:
        upstream.url = f"{address}/api"
        yield upstream
