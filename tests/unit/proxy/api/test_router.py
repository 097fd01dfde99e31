"""Which environment answers a request: the environment that its key opens, or the process.

A request whose key no option lists: it waits for its token, is passed on to the service that the token opens, or is refused.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest

from flagsvc.http.call import Call
from flagsvc.http.keys import salted
from flagsvc.http.messages import Request, Response
from flagsvc.proxy.api.router import Entrance, KeyTable, Router
from support.serving import FakeSnapshot, Serving

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
        listed = [(key, each) for each in services for key in (*each.settings.client_keys, *each.settings.server_tokens)]
        self.router = Router(self.process.service, listed)

    def ask(self, method: bytes, path: bytes, *headers: tuple[bytes, bytes], body: bytes = b"") -> Response:
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
        counts = {name: each.service.sources.status_counts for name, each in found.items()}
        return [name for name, every in counts.items() for each in every for _ in range(sum(each.statuses.values()))]


@pytest.mark.parametrize(
    ("listed", "sent", "opens"),
    [
        *[("key", sent, True) for sent in (b"key", b" key\t", b"Bearer key", b"bearer   key ", b"BEARER key")],
        *[("key", sent, False) for sent in (b"Key", b"ke", b"keyy", b"", b"Bearer", b"Bearer ", b"Bearerkey")],
        *[("key", sent, False) for sent in (b"Basic key", b"Bearer Bearer key")],
        *[("Bearer x", sent, True) for sent in (b"Bearer x", b"Bearer Bearer x")],
        ("Bearer x", b"x", False),
    ],
)
def test_how_a_key_is_sent(listed: str, sent: bytes, opens: bool) -> None:
    """A key opens the last service that it was put in with: alone or after `Bearer`, with blanks around it; nothing else does."""
    former, service, other = (Serving().service for _ in range(3))
    table = KeyTable([(listed, former), ("other", other), (listed, service)])
    assert table.find(sent) is (service if opens else None) and table.find(b"other") is other
    assert list(table.listed) == [salted(listed.encode()), salted(b"other")]


@pytest.mark.parametrize("path", [b"/proxy/health", b"/PROXY/Health/", b"/proxy/live", b"/readyz", b"/readyz/"])
@pytest.mark.parametrize("keys", [(), (b"key-a",), (b"nobody",), (b"key-a", b"key-b")])
def test_what_needs_no_key_is_of_the_process(path: bytes, keys: tuple[bytes, ...]) -> None:
    """Probes are those of the process, with a key or without, however the path is spelled."""
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


def test_what_a_transport_asks_the_router() -> None:
    """Early refusals, networks and failures are those of the process; the limits of a head are its limits."""
    routed = Routed(header_limit=300, query_limit=20, trust_proxy=("192.0.2.0/24",))
    assert (routed.router.header_limit, routed.router.query_limit) == (300, 20)
    assert routed.router.early_refusal(431).body == routed.process.service.early_refusal(431).body
    assert routed.router.early_refusal(503, crowded=True).body == routed.process.service.early_refusal(503, crowded=True).body
    assert routed.router.tls_refusal().body == routed.process.service.tls_refusal().body
    assert routed.router.network("192.0.2.7") == b"" != routed.router.network("198.51.100.7")
    call = Call(Request(b"GET", b"/proxy", b"", []))
    assert routed.router.fail(call, RuntimeError("s3cret")).status == 500
    assert routed.process.log.at("error") == ["an unexpected error"] and "s3cret" not in repr(routed.process.log.lines)
    raising = routed.router.admit(Request(b"GET", b"/proxy", b"", [(b"authorization", 5)]))  # type: ignore[list-item]
    assert isinstance(raising, Response) and raising.status == 500
    assert routed.ask(b"GET", b"/proxy", (b"authorization", b"key-a"), (b"x", b"y" * 300)).status == 431


def test_another_contract() -> None:
    """It answers the next request on every connection, and everything else that a transport asks."""
    routed = Routed()
    entrance = Entrance(routed.router)
    headers = [(b"authorization", b"key-a"), *FORM]
    begun = entrance.admit(Request(b"POST", b"/proxy", b"", headers))
    assert isinstance(begun, Call) and begun.limit == routed.a.service.settings.body_limit
    entrance.current = Router(routed.process.service, [("key-b", routed.b.service)])
    refused = entrance.admit(Request(b"GET", b"/proxy", b"", headers))
    assert isinstance(refused, Response) and refused.status == 401
    other = Serving(FakeSnapshot(b"other"), client_keys=("key-a",))
    entrance.current = other.service
    again = entrance.admit(Request(b"POST", b"/proxy", b"", headers))
    assert isinstance(again, Call)
    answers = [call.handler.answer(call, b"{}") for call in (begun, again)]
    assert [each.body for each in answers if isinstance(each, Response)] == [b"a", b"other"]
    assert entrance.network("192.0.2.1") == other.service.network("192.0.2.1")
    assert [entrance.early_refusal(status).status for status in (400, 431, 503)] == [400, 431, 503]
    assert entrance.tls_refusal().status == 400 and entrance.fail(again, ValueError()).status == 500
