"""Which environment answers a request: the environment that its key opens, or the process.

A request whose key no option lists: it waits for its token, is passed on to the service that the token opens, or is refused.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest

from flagsvc.http.call import Call
from flagsvc.http.keys import salted
from flagsvc.http.messages import Headers, Request, Response
from flagsvc.proxy.api.router import Entrance, KeyTable, Router
from flagsvc.proxy.api.service import Service
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
