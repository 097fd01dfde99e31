"""A proxy that looks up tokens, in one event loop: its upstream on a loopback port, a clock that stands still, and callers.

The document has a flag of project `a`, one of project `b`, and one without a project.
"""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx

from flagsvc import ProxyApp, ProxyOptions
from flagsvc.testing import FakeClock, turns
from support.aio import until
from support.fake_upstream import VALIDATE, FakeUpstream, Reply, fake_upstream, granted
from support.scene import document, running_app, toggle

UP = "*:production.hidden-up"
LISTED = "listed-key"
FRONT, FRONT_A, FRONT_AB = "*:production.hidden-front", "a:production.hidden-front-a", "[]:production.hidden-front-ab"
BACK, BACK_B = "*:production.hidden-back", "b:production.hidden-back-b"
ADMIN, DEV, LEGACY = "*:production.hidden-admin", "*:development.hidden-dev", "hidden-legacy"
UNKNOWN = "*:production.hidden-unknown"
TOKENS = {
    UP: granted("client"),
    FRONT: granted("frontend"),
    FRONT_A: granted("frontend", "a"),
    FRONT_AB: granted("frontend", "a", "b"),
    BACK: granted("client"),
    BACK_B: granted("backend", "b"),
    ADMIN: granted("admin"),
    DEV: granted("frontend", environment="development"),
    LEGACY: granted("frontend", "a"),
}
PEER = "203.0.113.7"
Headers = dict[str, str] | Iterable[tuple[str, str]]


class TokenScene:
    """A running proxy, and callers of it. `log` is what was written to standard error."""

    def __init__(self, upstream: FakeUpstream, app: ProxyApp, clock: FakeClock, stderr: io.StringIO) -> None:
        self.upstream = upstream
        self.app = app
        self.clock = clock
        self._stderr = stderr

    @property
    def log(self) -> str:
        return self._stderr.getvalue()

    async def ask(
        self, path: str, token: str | None, method: str = "GET", headers: Headers = (), peer: str = PEER, **more: Any
    ) -> httpx.Response:
        """Return the answer to a request with a token; `json` or `content` bring a body."""
        given = list(headers.items() if isinstance(headers, dict) else headers)
        given += [] if token is None else [("authorization", token)]
        transport = httpx.ASGITransport(self.app, client=(peer, 50000))
        async with httpx.AsyncClient(transport=transport, base_url="http://proxy.test") as client:
            return await client.request(method, path, headers=given, **more)

    async def status(self, path: str, token: str | None, method: str = "GET", **more: Any) -> int:
        return (await self.ask(path, token, method, **more)).status_code

    async def flags(self, path: str, token: str, method: str = "GET", **more: Any) -> list[str]:
        answer = await self.ask(path, token, method, **more)
        assert answer.status_code == 200, (answer.status_code, answer.text)
        content = answer.json()
        return [each["name"] for each in content.get("toggles") or content["features"]]

    def questions(self) -> list[list[str]]:
        return self.upstream.asked_tokens()

    async def renew(self, **options: Any) -> None:
        """Reload the options, of which these are different."""
        self.app.renew(token_options(self.upstream, **options))
        await turns()


def token_options(upstream: FakeUpstream, **options: Any) -> ProxyOptions:
    """Return options of a proxy that looks up tokens, and whose requests about them have no bound that tests reach."""
    given = {
        "flagsvc_url": upstream.url,
        "flagsvc_api_token": UP,
        "token_validation": "upstream",
        "token_lookup_rate": 1000,
        "client_keys": LISTED,
        "enable_all_endpoint": True,
        "storage": "none",
    }
    return ProxyOptions(**{**given, **options})


@contextmanager
def knowing_upstream() -> Iterator[FakeUpstream]:
    """Run a flag server that knows `TOKENS`."""
    features = [toggle("of-a", project="a"), toggle("of-b", project="b"), toggle("free")]
    with fake_upstream(document(*features)) as upstream:
        upstream.tokens = dict(TOKENS)
        yield upstream


@asynccontextmanager
async def token_proxy(upstream: FakeUpstream, *, ready: bool = True, **options: Any) -> AsyncIterator[TokenScene]:
    """Run a proxy of this upstream until the block ends; unless told otherwise the block begins when it is ready."""
    clock, stderr = FakeClock(), io.StringIO()
    async with running_app(token_options(upstream, **options), clock, stderr, ready=ready) as app:
        yield TokenScene(upstream, app, clock, stderr)


@asynccontextmanager
async def token_scene(**options: Any) -> AsyncIterator[TokenScene]:
    """Run an upstream that knows `TOKENS`, and a proxy of it, until the block ends."""
    with knowing_upstream() as upstream:
        async with token_proxy(upstream, **options) as scene:
            yield scene


def fail(upstream: FakeUpstream, status: int, body: bytes = b"", **headers: str) -> None:
    """Have every question about tokens answered with this status."""
    upstream.replies[VALIDATE] = Reply(status, body, {name.replace("_", "-"): text for name, text in headers.items()})


def recover(upstream: FakeUpstream) -> None:
    del upstream.replies[VALIDATE]


def named(*names: str) -> dict[str, Any]:
    return {"toggles": list(names)}


def decoded(answer: httpx.Response) -> Any:
    return json.loads(answer.content)


async def restored(scene: TokenScene, token: str) -> None:
    """Wait until the stored tokens are read: until then a token cannot be looked up, and is not refused."""

    async def is_known() -> bool:
        status = await scene.status("/proxy", token)
        assert status in (200, 503)
        await scene.clock.advance(60 if status == 503 else 0)
        return status == 200

    await until(is_known)
