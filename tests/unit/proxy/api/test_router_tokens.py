"""A request whose key no option lists: it waits for its token, is passed on to the service that the token opens, or is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from flagsvc.http.call import Call
from flagsvc.http.http_errors import key_unavailable
from flagsvc.http.keys import salted
from flagsvc.http.messages import Headers, Response
from flagsvc.proxy.api.router import KeyTable, Router
from flagsvc.proxy.api.service import Service
from flagsvc.testing import turns
from support.aio import asynchronous
from support.serving import FakeSnapshot, Serving, request

PATHS = (b"/proxy", b"/api/frontend")


class FakeFinder:
    """Finds what tokens open. If `gate` is an event, each answer waits for it."""

    def __init__(self) -> None:
        self.services: dict[str, Service] = {}
        self.fault: Exception | None = None
        self.refused: set[str] = set()
        self.gate: asyncio.Event | None = None
        self.asked: list[tuple[str, bytes]] = []

    def is_refused(self, token: str) -> bool:
        """Return whether a token is known to be unknown."""
        return token in self.refused

    async def find(self, token: str, network: bytes) -> Service | None:
        """Return the service that a token opens."""
        self.asked.append((token, network))
        if self.gate is not None:
            await self.gate.wait()
        if self.fault is not None:
            raise self.fault
        return self.services.get(token)


class Scene:
    """A router over the service of a process, and another service that a token opens."""

    def __init__(self) -> None:
        self.process = Serving(FakeSnapshot(b'{"toggles":[],"of":"process"}'), access_log=True)
        self.other = Serving(FakeSnapshot(b'{"toggles":[],"of":"other"}'), client_keys=(), server_tokens=())
        self.finder = FakeFinder()
        listed = [("k", self.process.service), ("t", self.process.service)]
        self.router = Router(self.process.service, listed, self.finder)

    def knows(self, token: str, server: bool = False) -> None:
        """Have a token open the other service."""
        self.other.service.keys.add(token.encode(), server)
        self.finder.services[token] = self.other.service

    def begin(
        self,
        key: bytes,
        path: bytes = b"/proxy",
        method: bytes = b"GET",
        headers: Headers | None = None,
        body: bytes = b"",
    ) -> Response | Awaitable[Response]:
        """Return the answer to a request, or an awaitable of it."""
        admitted = self.router.admit(request(method, path, b"", headers, key))
        return admitted.handler.answer(admitted, body) if isinstance(admitted, Call) else admitted

    async def ask(self, key: bytes, path: bytes = b"/proxy", method: bytes = b"GET", **more: bytes) -> Response:
        """Return the answer to a request."""
        answer = self.begin(key, path, method, **more)  # type: ignore[arg-type]
        return answer if isinstance(answer, Response) else await answer


@pytest.mark.parametrize("path", PATHS)
@asynchronous
async def test_the_service_of_a_token(path: bytes) -> None:
    """The request waits for the look-up, which gets the caller's network; then the service of the token answers it."""
    scene = Scene()
    scene.knows("token")
    scene.finder.gate = asyncio.Event()
    waiting = asyncio.ensure_future(scene.ask(b"token", path))
    await turns()
    assert not waiting.done() and scene.finder.asked == [("token", b"192.0.2.1")]
    scene.finder.gate.set()
    answer = await waiting
    assert answer.status == 200 and b'"of":"other"' in answer.body
    assert not scene.process.snapshot.contexts and len(scene.other.snapshot.contexts) == 1


@asynchronous
async def test_a_token_that_was_admitted() -> None:
    """Its requests need no look-up and no awaiting, until it is taken back."""
    scene = Scene()
    scene.other.service.keys.add(b"token", False)
    scene.router.admit_token("token", scene.other.service)
    answer = scene.begin(b"token")
    assert isinstance(answer, Response) and b'"of":"other"' in answer.body and scene.finder.asked == []
    scene.router.revoke_token("token")
    assert (await scene.ask(b"token")).status == 401 and len(scene.finder.asked) == 1


def test_listed_keys_need_no_look_up() -> None:
    """Those of the service of the process included, which is that of the only environment."""
    scene = Scene()
    for key, path in ((b"k", b"/proxy"), (b"t", b"/api/client/features"), (b"Bearer k", b"/api/frontend")):
        answer = scene.begin(key, path)
        assert isinstance(answer, Response) and answer.status in (200, 503)
    assert scene.finder.asked == []


@asynchronous
async def test_a_token_that_opens_nothing() -> None:
    """It gets the answer that every wrong key gets; one that is known to be unknown gets it at once."""
    scene = Scene()
    scene.finder.refused.add("refused")
    refused, unknown = scene.begin(b"refused"), await scene.ask(b"unknown")
    assert isinstance(refused, Response) and scene.finder.asked == [("unknown", b"192.0.2.1")]
    assert (refused.status, refused.body, refused.headers()) == (unknown.status, unknown.body, unknown.headers())
    assert refused.status == 401


@asynchronous
async def test_it_cannot_be_found_out() -> None:
    """The caller is told when to try again. An unexpected error is a 500, and is logged without the token."""
    scene = Scene()
    scene.finder.fault = key_unavailable(7.2)
    answer = await scene.ask(b"token")
    assert answer.status == 503 and (b"retry-after", b"8") in answer.headers()
    scene.finder.fault = ValueError("very-secret")
    assert (await scene.ask(b"very-secret")).status == 500
    [line] = [each for each in scene.process.log.lines if each.level == "error"]
    assert "secret" not in str(line)


@asynchronous
async def test_the_other_service_checks_the_call() -> None:
    """A token of the wrong type is refused by it, and so is a body that it does not take."""
    scene = Scene()
    scene.knows("server", server=True)
    assert (await scene.ask(b"server", b"/api/frontend")).status == 403
    assert (await scene.ask(b"server", b"/proxy")).status == 401
    scene.knows("app")
    scene.other.holder.current = None
    assert (await scene.ask(b"app")).status == 503


@pytest.mark.parametrize(
    ("key", "path", "method", "status"),
    [
        (b"token", b"/proxy", b"OPTIONS", 204),
        (b"token", b"/nowhere", b"GET", 404),
        (b"token", b"/proxy", b"PUT", 405),
        (b"token", b"/proxy/health", b"GET", 200),
        (b"", b"/proxy", b"GET", 401),
        (b"token", b"/proxy", b"POST", 415),
    ],
)
def test_what_is_answered_at_once(key: bytes, path: bytes, method: bytes, status: int) -> None:
    """Nothing is looked up for a request that the process answers in the same way for any key."""
    scene = Scene()
    headers = [(b"content-type", b"text/html"), (b"content-length", b"9")] if method == b"POST" else []
    answer = scene.begin(key, path, method, headers)
    assert isinstance(answer, Response) and answer.status == status and scene.finder.asked == []


def test_two_keys_are_no_token() -> None:
    """A request with two lines of keys is refused."""
    scene = Scene()
    answer = scene.begin(b"token", headers=[(b"authorization", b"token")])
    assert isinstance(answer, Response) and answer.status == 400 and scene.finder.asked == []


@pytest.mark.parametrize(
    ("path", "sent", "asked"),
    [
        (b"/api/frontend", b"Bearer token", "token"),
        (b"/api/frontend", b" bearer \t token ", "token"),
        (b"/api/frontend", b"\ttoken ", "token"),
        (b"/proxy", b"Bearer token", "Bearer token"),
        (b"/proxy", b"t\xe9", "t\xe9"),
    ],
)
@asynchronous
async def test_what_is_looked_up(path: bytes, sent: bytes, asked: str) -> None:
    """The key without blanks around it, and without `Bearer` where that may stand before it."""
    scene = Scene()
    await scene.ask(sent, path)
    assert [token for token, _ in scene.finder.asked] == [asked]


@asynchronous
async def test_without_a_finder() -> None:
    """Where only listed keys count, an unknown one is refused at once."""
    scene = Scene()
    scene.router = Router(scene.process.service, [])
    answer = scene.begin(b"token")
    assert isinstance(answer, Response) and answer.status == 401


def test_a_table_of_keys() -> None:
    """Listed keys come first, and stay when a token of the same text is taken back."""
    one, two = Serving().service, Serving().service
    table = KeyTable([("listed", one)])
    table.admitted |= {salted(b"listed"): two, salted(b"token"): two}
    assert [table.find(key) for key in (b"listed", b"token", b"Bearer token", b" token ", b"other")] == [
        one,
        two,
        two,
        two,
        None,
    ]


def test_a_listed_key_is_not_taken_back() -> None:
    """A token that was looked up, and is listed now, stays valid when the upstream no longer knows it."""
    scene = Scene()
    scene.router.admit_token("k", scene.other.service)
    scene.router.revoke_token("k")
    assert scene.router.table.find(b"k") is scene.process.service
