"""One proxy with two environments on two upstream servers: no answer and no count of one is seen in the other.

Two environments, one of which has trouble with its upstream: it takes nothing away from the other.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from flagsvc import ProxyOptions
from support.aio import until
from support.loopback import Answer, Loopback, Request, Writer, reply
from support.scene import KEY, Proxy, Scene, answer_as_server, document, scene, toggle

KEYS = {"a": "key-of-a", "b": "key-of-b"}
SERVERS = {"a": "sdk-token-of-a", "b": "sdk-token-of-b"}
TOKENS = {"a": "*:production.token-of-a", "b": "*:staging.token-of-b"}


@dataclass
class Server:
    """What an upstream server answers: its document, unless `special` has an answer for the last part of a path."""

    loopback: Loopback
    served: object
    special: dict[str, Answer] = field(default_factory=dict)

    async def answer(self, request: Request, reader: Any, writer: Writer) -> None:
        """Answer as a flag server does."""
        await answer_as_server(self.served, self.special, request, reader, writer)

    def received(self, what: str) -> list[Request]:
        """Return the requests so far whose path ends in `what`."""
        return [request for request in self.loopback.requests if request.path.endswith(f"/{what}")]

    def counted(self) -> dict[str, dict[str, int]]:
        """Return the toggles of all metrics posts, with how often they were on and off."""
        sums: dict[str, dict[str, int]] = {}
        for request in self.received("metrics"):
            for name, tally in json.loads(request.body)["bucket"]["toggles"].items():
                known = sums.setdefault(name, {"yes": 0, "no": 0})
                sums[name] = {state: known[state] + tally[state] for state in known}
        return sums


class Both:
    """A scene with a server for each environment. Each serves a toggle of its own, and `shared`, which only one has on."""

    def __init__(self, around: Scene) -> None:
        self.around = around
        off = toggle("shared", enabled=False)
        self.a = Server(around.upstream, document(toggle("of-a"), toggle("shared")))
        self.b = Server(around.other, document(toggle("of-b"), off))
        around.upstream.script(self.a.answer)
        around.other.script(self.b.answer)

    def options(self, *, b: dict[str, object] | None = None, **more: Any) -> ProxyOptions:
        """Return options of both environments, the second one with more options of its own."""
        urls = {"a": self.around.upstream.url, "b": self.around.other.url}
        environments: dict[str, dict[str, object]] = {
            name: {
                "flagsvc_url": f"{url}/api",
                "flagsvc_api_token": TOKENS[name],
                "client_keys": KEYS[name],
                "exp_server_side_sdk_config_tokens": SERVERS[name],
                **((b or {}) if name == "b" else {}),
            }
            for name, url in urls.items()
        }
        return ProxyOptions(**{"storage": "none", "environments": environments, **more})

    def proxy(self, **more: Any) -> AbstractAsyncContextManager[Proxy]:
        """Run the proxy until the block ends."""
        return self.around.proxy(self.options(**more))


@asynccontextmanager
async def both(folder: Path) -> AsyncIterator[Both]:
    """Run the two servers until the block ends."""
    async with scene(folder) as around:
        yield Both(around)


async def get(proxy: Proxy, path: str, key: str, **headers: str) -> httpx.Response:
    """Return the answer to a GET with a key."""
    return await proxy.ask("GET", path, {"authorization": key, **{name.replace("_", "-"): each for name, each in headers.items()}})


async def post(proxy: Proxy, path: str, key: str, body: object) -> int:
    """Return the status of the answer to a POST with a key."""
    return (await proxy.ask("POST", path, {"authorization": key}, body)).status_code


def names(answer: httpx.Response) -> list[str]:
    """Return the names of the toggles or features of an answer."""
    assert answer.status_code == 200, answer.text
    body = answer.json()
    return [each["name"] for each in body.get("toggles", body.get("features"))]


METRICS = "/proxy/internal-backstage/prometheus"


def reporting(name: str, times: int) -> dict[str, object]:
    """Return the report of an SDK for which a toggle was on so often."""
    moments = {"start": "2026-01-01T00:00:00Z", "stop": "2026-01-01T00:01:00Z"}
    bucket = {**moments, "toggles": {name: {"yes": times, "no": 0}}}
    return {"appName": "shop", "instanceId": "1", "bucket": bucket}


# ---- who sees what


@pytest.mark.parametrize(
    ("path", "keys", "seen"),
    [
        ("/proxy", KEYS, (["of-a", "shared"], ["of-b"])),
        ("/proxy/all", KEYS, (["of-a", "shared"], ["of-b", "shared"])),
        ("/api/frontend", KEYS, (["of-a", "shared"], ["of-b"])),
        ("/api/client/features", SERVERS, (["of-a", "shared"], ["of-b", "shared"])),
        ("/proxy/client/features", SERVERS, (["of-a", "shared"], ["of-b", "shared"])),
    ],
)
async def test_each_key_sees_its_toggles(
    path: str, keys: dict[str, str], seen: tuple[list[str], list[str]], tmp_path: Path
) -> None:
    """On every API, and no other key opens it: the statuses are those of a proxy with a single environment."""
    async with both(tmp_path) as around, around.proxy(enable_all_endpoint=True) as proxy:
        assert tuple([names(await get(proxy, path, key)) for key in keys.values()]) == seen
        others = [*(SERVERS if keys is KEYS else KEYS).values(), "nobody", TOKENS["a"], ""]
        refused = [await get(proxy, path, key) for key in others]
    async with both(tmp_path) as around:
        single = around.around.options(exp_server_side_sdk_config_tokens="sdk-token", enable_all_endpoint=True)
        async with around.around.proxy(single) as alone:
            own = "sdk-token" if keys is KEYS else KEY
            expected = [await get(alone, path, key) for key in (own, own, "nobody", TOKENS["a"], "")]
    assert [(each.status_code, each.content) for each in refused] == [(each.status_code, each.content) for each in expected]


async def test_answers_to_the_same_document(tmp_path: Path) -> None:
    """Options of an environment decide as its toggles do, also for the tag and for the answers that are kept."""
    async with both(tmp_path) as around:
        around.a.served = around.b.served = document(toggle("x", ("environment", "beta")), toggle("y"))
        async with around.proxy(environment="alpha", b={"environment": "beta"}) as proxy:
            for _ in range(2):
                one, other = [await get(proxy, "/proxy", key) for key in KEYS.values()]
                assert (names(one), names(other)) == (["y"], ["x", "y"])
            assert one.headers["etag"] != other.headers["etag"]
            assert (await get(proxy, "/proxy", KEYS["b"], if_none_match=one.headers["etag"])).status_code == 200


# ---- usage metrics


async def test_usage_goes_to_the_upstream_of_its_environment(tmp_path: Path) -> None:
    """With the token of that environment: look-ups, reports of SDKs and reports of server-side applications."""
    async with both(tmp_path) as around:
        async with around.proxy() as proxy:
            for name, times in (("a", 2), ("b", 3)):
                for _ in range(times):
                    assert await post(proxy, "/proxy", KEYS[name], {"toggles": ["shared", f"of-{name}"]}) == 200
                report = reporting("shared", 10 * times)
                assert await post(proxy, "/proxy/client/metrics", KEYS[name], report) == 200
                assert await post(proxy, "/api/frontend/client/metrics", KEYS[name], report) == 200
                assert await post(proxy, "/api/client/metrics", SERVERS[name], report) == 202
            assert await post(proxy, "/proxy/client/metrics", KEYS["a"], reporting("of-b", 1)) == 200
        assert around.a.counted() == {"shared": {"yes": 62, "no": 0}, "of-a": {"yes": 2, "no": 0}}
        assert around.b.counted() == {"shared": {"yes": 90, "no": 3}, "of-b": {"yes": 3, "no": 0}}
        for server, name in ((around.a, "a"), (around.b, "b")):
            assert server.received("register") and server.received("metrics")
            assert {request.headers["authorization"] for request in server.loopback.requests} == {TOKENS[name]}


async def test_each_environment_registers(tmp_path: Path) -> None:
    """With its own names, and its own connection id."""
    async with both(tmp_path) as around:
        async with around.proxy(flagsvc_app_name="proxy", b={"flagsvc_app_name": "proxy-b"}):
            await until(lambda: around.a.received("register") and around.b.received("register"))
        one, other = [json.loads(each.received("register")[0].body) for each in (around.a, around.b)]
        assert (one["appName"], other["appName"]) == ("proxy", "proxy-b")
        assert one["connectionId"] != other["connectionId"]


async def test_an_upstream_that_fails_later(tmp_path: Path) -> None:
    """Its environment goes on with its configuration. When the upstream is back, it gets ready, without harm to others."""
    async with both(tmp_path) as around, around.proxy(metrics_interval=0) as proxy:
        around.b.special["features"] = reply(500)
        around.a.served = document(toggle("newer"))
        before = len(around.b.received("features"))
        await around.around.waits(2)
        await around.around.clock.advance(5)
        await until(lambda: len(around.b.received("features")) > before)
        await around.around.waits(2)
        assert [names(await get(proxy, "/proxy", key)) for key in KEYS.values()] == [["newer"], ["of-b"]]
        page = (await get(proxy, METRICS, "")).text
        assert 'flagsvc_upstream_consecutive_failures{environment="a"} 0.0' in page
        assert 'flagsvc_upstream_consecutive_failures{environment="b"} 1.0' in page
        assert [line.split("environment=")[1][:1] for line in around.around.log if "environment=" in line] == ["b"]
