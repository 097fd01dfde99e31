"""One proxy with two environments on two upstream servers: answers, tags and counts are those of the environment of the key."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from flagsvc import ProxyOptions
from support.loopback import Loopback
from support.scene import Proxy, Scene, answer_as_server, document, scene, toggle

KEYS = {"a": "key-of-a", "b": "key-of-b"}
SERVERS = {"a": "sdk-token-of-a", "b": "sdk-token-of-b"}
TOKENS = {"a": "*:production.token-of-a", "b": "*:staging.token-of-b"}


def options(around: Scene, a: object, b: object, *, of_b: dict[str, object] | None = None, **more: Any) -> ProxyOptions:
    """Return options of two environments, whose upstream servers serve these documents; `of_b` are more of the second one."""
    tables: dict[str, dict[str, object]] = {}
    for name, server, served in (("a", around.upstream, a), ("b", around.other, b)):
        server.script(partial(answer_as_server, served, {}))
        tables[name] = {
            "flagsvc_url": f"{server.url}/api",
            "flagsvc_api_token": TOKENS[name],
            "client_keys": KEYS[name],
            "exp_server_side_sdk_config_tokens": SERVERS[name],
        }
    tables["b"] |= of_b or {}
    return ProxyOptions(**{"storage": "none", "environments": tables, **more})


def counted(server: Loopback) -> dict[str, Counter[str]]:
    """Return the toggles of all metrics posts, with how often they were on and off."""
    sums: dict[str, Counter[str]] = {}
    for request in server.requests:
        if request.path.endswith("/metrics"):
            for name, tally in json.loads(request.body)["bucket"]["toggles"].items():
                sums[name] = sums.get(name, Counter()) + Counter({state: tally[state] for state in ("yes", "no")})
    return sums


def reporting(name: str, times: int) -> dict[str, object]:
    """Return the report of an SDK for which a toggle was on so often."""
    moments = {"start": "2026-01-01T00:00:00Z", "stop": "2026-01-01T00:01:00Z"}
    return {"appName": "shop", "instanceId": "1", "bucket": {**moments, "toggles": {name: {"yes": times, "no": 0}}}}


async def test_answers_to_the_same_document(tmp_path: Path) -> None:
    """Options of an environment decide as its toggles do, also for the tag and for the answers that are kept."""
    same = document(toggle("x", ("environment", "beta")), toggle("y"))
    async with scene(tmp_path) as around:
        given = options(around, same, same, environment="alpha", of_b={"environment": "beta"})
        async with around.proxy(given) as proxy:
            for _ in range(2):
                one, other = [await proxy.ask("GET", "/proxy", {"authorization": key}) for key in KEYS.values()]
                found = [[each["name"] for each in answer.json()["toggles"]] for answer in (one, other)]
                assert found == [["y"], ["x", "y"]]
            assert one.headers["etag"] != other.headers["etag"]
            conditional = {"authorization": KEYS["b"], "if-none-match": one.headers["etag"]}
            assert (await proxy.ask("GET", "/proxy", conditional)).status_code == 200


async def post(proxy: Proxy, path: str, key: str, body: object) -> int:
    """Return the status of the answer to a POST with a key."""
    return (await proxy.ask("POST", path, {"authorization": key}, body)).status_code


async def test_usage_goes_to_the_upstream_of_its_environment(tmp_path: Path) -> None:
    """With the token of that environment: look-ups, reports of SDKs and reports of server-side applications."""
    async with scene(tmp_path) as around:
        of_b = document(toggle("of-b"), toggle("shared", enabled=False))
        async with around.proxy(options(around, document(toggle("of-a"), toggle("shared")), of_b)) as proxy:
            for name, times in (("a", 2), ("b", 3)):
                for _ in range(times):
                    assert await post(proxy, "/proxy", KEYS[name], {"toggles": ["shared", f"of-{name}"]}) == 200
                report = reporting("shared", 10 * times)
                assert await post(proxy, "/proxy/client/metrics", KEYS[name], report) == 200
                assert await post(proxy, "/api/frontend/client/metrics", KEYS[name], report) == 200
                assert await post(proxy, "/api/client/metrics", SERVERS[name], report) == 202
            assert await post(proxy, "/proxy/client/metrics", KEYS["a"], reporting("of-b", 1)) == 200
        assert counted(around.upstream) == {"shared": {"yes": 62}, "of-a": {"yes": 2}}
        assert counted(around.other) == {"shared": {"yes": 90, "no": 3}, "of-b": {"yes": 3}}
        for server, token in ((around.upstream, TOKENS["a"]), (around.other, TOKENS["b"])):
            assert {request.headers["authorization"] for request in server.requests} == {token}
            asked = {request.path.rpartition("/")[2] for request in server.requests}
            assert asked - {"streaming"} == {"features", "register", "metrics"}
