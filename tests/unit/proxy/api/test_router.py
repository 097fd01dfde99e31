"""Which environment answers a request: the one that its key opens, or the process.

A request whose key no option lists: it waits for its token, is passed on to the service that the token opens, or is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from flagsvc.http.call import Call
from flagsvc.http.http_errors import key_unavailable
from flagsvc.http.keys import salted
from flagsvc.http.messages import Headers, Request, Response
from flagsvc.proxy.api.router import Entrance, KeyTable, Router
from flagsvc.proxy.api.service import Service
from support.aio import asynchronous
from support.serving import FakeSnapshot, Serving, request

FORM = [(b"content-type", b"application/json"), (b"content-length", b"2")]


class Routed:
    """A router over the environments `a` and `b`, whose toggles have their names, and the process, which has no keys."""

    def __init__(self, **settings: Any) -> None:
        keyless: dict[str, Any] = {"client_keys": (), "server_tokens": ()}
        self.process = Serving(FakeSnapshot(b"process"), **keyless, **settings)
        self.a = Serving(FakeSnapshot(b"a"), client_keys=("key-a", "ä"), server_tokens=("token-a",), **settings)
        self.b = Serving(
            FakeSnapshot(b"b"), client_keys=("key-b",), server_tokens=(), cors_origin=("https://b.example",), **settings
        )
        services = [each.service for each in (self.a, self.b)]
        listed = [
            (key, each) for each in services for key in (*each.settings.client_keys, *each.settings.server_tokens)
        ]
        self.router = Router(self.process.service, listed)

    def ask(self, method: bytes, path: bytes, *headers: tuple[bytes, bytes], body: bytes = b"") -> Response:
        """Return the answer to a request."""
        admitted = self.router.admit(Request(method, path, b"", list(headers), peer="192.0.2.1"))
        if isinstance(admitted, Response):
            return admitted
        answer = admitted.handler.answer(admitted, body)
        assert not isinstance(answer, Awaitable)
        return answer

    def get(self, path: bytes, *keys: bytes) -> Response:
        """Return the answer to a GET with these keys."""
        return self.ask(b"GET", path, *((b"authorization", key) for key in keys))

    def answered(self) -> list[str]:
        """Return who has answered so far: a name for each answer."""
        found = {"process": self.process, "a": self.a, "b": self.b}
        return [name for name, each in found.items() for _ in range(total(each.service))]


def total(service: Service) -> int:
    """Return how many requests a service has answered."""
    return sum(sum(counts.statuses.values()) for counts in service.sources.status_counts)


# ---- the table


def test_keys_and_their_services() -> None:
    """A key opens the service that it was put in with, the last one if there are several."""
    one, other = Serving().service, Serving().service
    table = KeyTable([("k1", one), ("k2", one), ("k3", other), ("k1", other)])
    assert [table.find(key) for key in (b"k1", b"k2", b"k3", b"k4", b"")] == [other, one, other, None, None]


@pytest.mark.parametrize("sent", [b"key", b" key\t", b"Bearer key", b"bearer   key ", b"BEARER key"])
def test_how_a_key_is_sent(sent: bytes) -> None:
    """Alone or after `Bearer`, with blanks around it."""
    service = Serving().service
    table = KeyTable([("key", service)])
    assert table.find(sent) is service


@pytest.mark.parametrize(
    "sent", [b"Key", b"ke", b"keyy", b"Bearer", b"Bearer ", b"Bearerkey", b"Basic key", b"Bearer Bearer key"]
)
def test_what_is_no_key(sent: bytes) -> None:
    """Nothing else opens a service."""
    table = KeyTable([("key", Serving().service)])
    assert table.find(sent) is None


def test_a_key_that_begins_with_the_word() -> None:
    """Such a key opens as it is, and after the word."""
    service = Serving().service
    table = KeyTable([("Bearer x", service)])
    assert table.find(b"Bearer x") is service and table.find(b"Bearer Bearer x") is service and table.find(b"x") is None


def test_no_key_is_kept() -> None:
    """The table has only salted digests."""
    table = KeyTable([("key", Serving().service)])
    assert list(table.listed) == [salted(b"key")]


# ---- who answers


def test_the_word_bearer_counts_where_the_dialect_reads_it() -> None:
    """At /proxy the word is part of the key, as in a process with a single environment."""
    routed = Routed()
    assert routed.get(b"/api/frontend", b"Bearer key-b").status == 200
    assert routed.get(b"/proxy", b"Bearer key-b").status == 401


def test_two_keys_are_refused() -> None:
    """No environment is asked, whichever keys they are."""
    routed = Routed()
    for keys in ((b"key-a", b"key-a"), (b"key-a", b"key-b"), (b"nobody", b"key-b")):
        answer = routed.get(b"/proxy", *keys)
        assert answer.status == 400 and b"came more than once" in answer.body
    assert routed.answered() == ["process"] * 3


def test_another_header_for_keys() -> None:
    """The option clientKeysHeaderName holds for all environments."""
    routed = Routed(client_keys_header_name="x-key")
    assert routed.ask(b"GET", b"/proxy", (b"x-key", b"key-b"), (b"authorization", b"key-a")).body == b"b"
    assert routed.get(b"/proxy", b"key-a").status == 401


@pytest.mark.parametrize(
    "path",
    [
        b"/proxy/health",
        b"/PROXY/Health/",
        b"/proxy/live",
        b"/readyz",
        b"/readyz/",
        b"/proxy/internal-backstage/prometheus",
    ],
)
@pytest.mark.parametrize("keys", [(), (b"key-a",), (b"nobody",), (b"key-a", b"key-b")])
def test_what_needs_no_key_is_of_the_process(path: bytes, keys: tuple[bytes, ...]) -> None:
    """Probes and metrics are those of the process, with a key or without, however the path is spelled."""
    routed = Routed()
    routed.a.holder.current = None
    assert routed.get(path, *keys).status == 200
    assert routed.answered() == ["process"]


def test_the_first_page_is_of_the_process() -> None:
    """It is for callers without a key; one with a key is an SDK with a wrong URL."""
    routed = Routed()
    assert [routed.get(b"/", *keys).status for keys in ((), (b"key-a",), (b"nobody",))] == [200, 404, 404]
    assert routed.answered() == ["process"] * 3


def test_paths_and_methods_that_are_not_there() -> None:
    """The environment of the key says so, as in a process with a single environment; without a key the process does."""
    routed = Routed()
    for method, path, status in ((b"GET", b"/nowhere", 404), (b"PUT", b"/proxy", 405), (b"PUT", b"/proxy/health", 405)):
        for keys in ((), (b"key-b",)):
            answer = routed.ask(method, path, *((b"authorization", key) for key in keys))
            assert answer.status == status, (method, path, keys)
    assert sorted(routed.answered()) == ["b"] * 3 + ["process"] * 3


def test_a_body_goes_to_the_environment_that_admitted_it() -> None:
    """Keys that change between the head and the body of a request do not matter to it."""
    routed = Routed()
    entrance = Entrance(routed.router)
    headers: Headers = [(b"authorization", b"key-a"), *FORM]
    admitted = entrance.admit(Request(b"POST", b"/proxy", b"", headers, peer="192.0.2.1"))
    assert isinstance(admitted, Call) and admitted.limit == routed.a.service.settings.body_limit
    entrance.current = Router(routed.process.service, [("key-b", routed.b.service)])
    answer = admitted.handler.answer(admitted, b"{}")
    assert isinstance(answer, Response) and (answer.status, answer.body) == (200, b"a")
    refused = entrance.admit(Request(b"GET", b"/proxy", b"", headers))
    assert isinstance(refused, Response) and refused.status == 401


# ---- what is of the process


def test_what_a_transport_asks_the_router() -> None:
    """Early refusals, networks and failures are those of the process; the limits of a head are its limits."""
    routed = Routed(header_limit=300, query_limit=20, trust_proxy=("192.0.2.0/24",))
    assert (routed.router.header_limit, routed.router.query_limit) == (300, 20)
    assert routed.router.early_refusal(431).body == routed.process.service.early_refusal(431).body
    assert (
        routed.router.early_refusal(503, crowded=True).body
        == routed.process.service.early_refusal(503, crowded=True).body
    )
    assert routed.router.tls_refusal().body == routed.process.service.tls_refusal().body
    assert routed.router.network("192.0.2.7") == b"" != routed.router.network("198.51.100.7")
    call = Call(Request(b"GET", b"/proxy", b"", []))
    assert routed.router.fail(call, RuntimeError("s3cret")).status == 500
    assert routed.process.log.at("error") == ["an unexpected error"] and "s3cret" not in repr(routed.process.log.lines)
    assert routed.ask(b"GET", b"/proxy", (b"authorization", b"key-a"), (b"x", b"y" * 300)).status == 431


def test_a_head_that_makes_a_check_raise() -> None:
    """It is a 500 of the process."""
    routed = Routed()
    answer = routed.router.admit(Request(b"GET", b"/proxy", b"", [(b"authorization", 5)]))  # type: ignore[list-item]
    assert isinstance(answer, Response) and answer.status == 500


def test_another_contract() -> None:
    """It answers the next request on every connection, and everything else that a transport asks. A call keeps who admitted it."""
    routed = Routed()
    entrance = Entrance(routed.router)
    begun = entrance.admit(Request(b"GET", b"/proxy", b"", [(b"authorization", b"key-a")]))
    assert isinstance(begun, Call)
    other = Serving(FakeSnapshot(b"other"), client_keys=("key-a",))
    entrance.current = other.service
    again = entrance.admit(Request(b"GET", b"/proxy", b"", [(b"authorization", b"key-a")]))
    assert isinstance(again, Call)
    answers = [call.handler.answer(call, b"") for call in (begun, again)]
    assert [each.body for each in answers if isinstance(each, Response)] == [b"a", b"other"]
    assert entrance.network("192.0.2.1") == other.service.network("192.0.2.1")
    assert [entrance.early_refusal(status).status for status in (400, 431, 503)] == [400, 431, 503]
    assert entrance.tls_refusal().status == 400 and entrance.fail(again, ValueError()).status == 500


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
