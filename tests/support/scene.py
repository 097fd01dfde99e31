"""A proxy with its surroundings in one event loop: an upstream, another server, a folder, standard error, a clock.

The clock does not move by itself. `scene()` yields all of it. `Scene.proxy(options)` runs the application of `flagsvc.create_app`
in it, and yields a client without sockets.
"""

from __future__ import annotations

import hashlib
import io
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, redirect_stderr
from pathlib import Path
from typing import Any

import httpx
import pytest

from flagsvc import ProxyApp, ProxyOptions, create_app
from flagsvc.testing import FakeClock, turns
from support.aio import until
from support.loopback import Answer, Loopback, Request, Writer, loopback, reply

KEY = "client-key"
TOKEN = "*:development.upstream-token"
SECONDS = 20.0
REAL_BOUNDS = ("flagsvc.proxy.configuration.poller.FLUSH_S", "flagsvc.proxy.usage.reporter.LAST_SEND_S")
"""What an end waits for by the real clock: a disk and a server of a busy machine get longer here."""


def toggle(name: str, *constraints: tuple[str, str], **fields: Any) -> dict[str, Any]:
    """Return a toggle that is on if each named context field has the given value."""
    conditions = [{"contextName": field, "operator": "IN", "values": [value]} for field, value in constraints]
    return {"name": name, "enabled": True, "strategies": [{"name": "default", "constraints": conditions}], **fields}


def document(*features: dict[str, Any]) -> dict[str, Any]:
    return {"version": 2, "features": list(features)}


async def answer_as_server(served: object, replies: Mapping[str, Answer], request: Request, reader: Any, writer: Writer) -> None:
    """Answer as a flag server that serves a document does, unless `replies` has an answer for the last part of the path."""
    special = replies.get(request.path.rpartition("/")[2])
    if special is not None and not isinstance(special, bytes):
        await special(request, reader, writer)
    else:
        writer.write(special or usual_answer(served, request))
        await writer.drain()


def usual_answer(served: object, request: Request) -> bytes:
    """Return the answer of a flag server that takes every post, and serves a document with an ETag."""
    if request.method != "GET":
        return reply(202)
    body = served if isinstance(served, bytes) else json.dumps(served).encode()
    etag = f'"{hashlib.sha256(body).hexdigest()[:12]}"'
    if request.headers.get("if-none-match") == etag:
        return reply(304, etag=etag)
    return reply(200, body, etag=etag, content_type="application/json")


class Proxy:
    """A running application, and a client of it that has the client key and comes from 127.0.0.1."""

    def __init__(self, app: ProxyApp, client: httpx.AsyncClient) -> None:
        self.app = app
        self._client = client

    async def ask(self, method: str, target: str, headers: Mapping[str, str] | None = None, body: object = None) -> httpx.Response:
        """Return the answer to a request; `headers` may bring another `authorization`, a body becomes JSON."""
        given = {"authorization": KEY, **(headers or {})}
        return await self._client.request(method, target, headers=given, json=body)

    async def names(self, target: str = "/proxy", headers: Mapping[str, str] | None = None) -> list[str]:
        """Return the names of the toggles in the answer to a GET."""
        answer = await self.ask("GET", target, headers)
        assert answer.status_code == 200, (answer.status_code, answer.text)
        return [each["name"] for each in answer.json()["toggles"]]

    async def named(self, *names: str) -> list[bool]:
        """Return whether each toggle is on, asked by name: that is what counts as usage."""
        answer = await self.ask("POST", "/proxy", body={"toggles": list(names)})
        assert answer.status_code == 200, (answer.status_code, answer.text)
        return [each["enabled"] for each in answer.json()["toggles"]]

    async def sample(self, name: str) -> float:
        """Return one sample of the Prometheus page."""
        page = (await self.ask("GET", "/proxy/internal-backstage/prometheus")).text
        [value] = [line.split()[1] for line in page.splitlines() if line.split()[0] == name]
        return float(value)


class Scene:
    """What is around a proxy.

    `upstream` serves `served` with an ETag and takes every post, unless `replies` has an answer for the last part of a path
    (`features`, `register`, `metrics`); `other` does the same. `stderr` is what was logged, `clock` the clock of the proxy.
    """

    def __init__(self, upstream: Loopback, other: Loopback, folder: Path) -> None:
        self.upstream = upstream
        self.other = other
        self.folder = folder
        self.clock = FakeClock()
        self.stderr = io.StringIO()
        self.served: object = document(toggle("on"))
        self.replies: dict[str, Answer] = {}
        upstream.script(self._answer)
        other.script(self._answer)

    @property
    def log(self) -> list[str]:
        return self.stderr.getvalue().splitlines()

    def options(self, **more: Any) -> ProxyOptions:
        """Return options of a proxy whose upstream is this one, and that stores nothing."""
        given = {"flagsvc_url": f"{self.upstream.url}/api", "flagsvc_api_token": TOKEN, "client_keys": KEY}
        return ProxyOptions(**{**given, "storage": "none", **more})

    def received(self, what: str) -> list[Request]:
        """Return the requests so far whose path ends in `what`."""
        return [request for request in self.upstream.requests if request.path.endswith(f"/{what}")]

    def bodies(self, what: str) -> list[Any]:
        """Return the decoded bodies of those requests."""
        return [json.loads(request.body) for request in self.received(what)]

    async def waits(self, sleepers: int) -> list[float]:
        """Return for how many seconds each part of the proxy sleeps, as soon as so many do."""
        await until(lambda: len(self.clock.sleeping) == sleepers)
        return self.clock.sleeping

    async def poll(self, seconds: float | None = None) -> float:
        """Let the longest sleep pass (or `seconds`), wait for the poll that follows, and return the seconds."""
        before = len(self.received("features"))
        pause = max(self.clock.sleeping) if seconds is None else seconds
        await self.clock.advance(pause)
        await until(lambda: len(self.received("features")) > before)
        return pause

    async def next_poll(self) -> float:
        """Let a proxy that does nothing else by itself poll once more, and return how long it sleeps then."""
        await self.waits(1)
        await self.poll()
        return (await self.waits(1))[0]

    async def next_try(self) -> None:
        """Let the proxy poll once more, without a listener at the upstream's address."""
        [pause] = await self.waits(1)
        await self.clock.advance(pause)
        await self.waits(1)

    async def _answer(self, request: Request, reader: Any, writer: Writer) -> None:
        await answer_as_server(self.served, self.replies, request, reader, writer)

    @asynccontextmanager
    async def proxy(self, options: ProxyOptions, *, ready: bool = True) -> AsyncIterator[Proxy]:
        """Run the application until the block ends; unless told otherwise the block begins when it is ready."""
        async with running_app(options, self.clock, self.stderr, ready=ready) as app:
            transport = httpx.ASGITransport(app, client=("127.0.0.1", 50000))
            async with httpx.AsyncClient(transport=transport, base_url="http://proxy.test") as client:
                yield Proxy(app, client)


@asynccontextmanager
async def running_app(options: ProxyOptions, clock: FakeClock, stderr: io.StringIO, *, ready: bool) -> AsyncIterator[ProxyApp]:
    """Run an application on a clock until the block ends, with its log in `stderr`; with `ready` wait until it is ready."""
    with redirect_stderr(stderr), pytest.MonkeyPatch.context() as patch:
        patch.setattr("flagsvc.proxy.generations.setup.SystemClock", lambda: clock)
        for bound in REAL_BOUNDS:
            patch.setattr(bound, SECONDS)
        async with create_app(options) as app:
            if ready:
                await app.ready(SECONDS)
                await turns()
            yield app


@asynccontextmanager
async def scene(folder: Path, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Scene]:
    """Run the two servers on free ports until the block ends. With `tls` the upstream uses TLS."""
    async with loopback(tls) as upstream, loopback() as other:
        yield Scene(upstream, other, folder)
