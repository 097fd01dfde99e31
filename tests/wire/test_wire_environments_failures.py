"""Two environments, one of which has trouble with its upstream: it takes nothing away from the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.aio import asynchronous, until
from support.loopback import Behave, Request, Writer, reply
from support.processes import free_port
from support.scene import document, toggle
from support.two_environments import KEYS, TOKENS, Both, both, get, names

READY, METRICS = "/proxy/ready", "/proxy/internal-backstage/prometheus"
PROBES = (READY, "/readyz", "/proxy/health", "/proxy/live")


async def hang(_: Request, reader: Any, writer: Writer) -> None:
    """Answer nothing until the connection is closed."""
    await reader.read()


BROKEN: dict[str, Callable[[Both], dict[str, object]]] = {
    "down": lambda _: {"flagsvc_url": f"http://127.0.0.1:{free_port()}/api"},
    "refused": lambda around: special(around, reply(401)),
    "forbidden": lambda around: special(around, reply(403)),
    "failing": lambda around: special(around, reply(500)),
    "garbage": lambda around: special(around, reply(200, b"<html>", content_type="text/html")),
    "another shape": lambda around: special(around, reply(200, b'{"features": 5}', content_type="application/json")),
    "silent": lambda around: special(around, hang) | {"upstream_timeout": 50},
    "no file": lambda _: {"flagsvc_url": "file:///nowhere/flags.json"},
}


def special(around: Both, answer: bytes | Behave) -> dict[str, object]:
    """Have the second server answer questions for its document like this."""
    around.b.special["features"] = answer
    return {}


@pytest.mark.parametrize("trouble", BROKEN)
@asynchronous
async def test_an_upstream_that_is_no_use(trouble: str, tmp_path: Path) -> None:
    """Its callers get Not Ready. The other environment answers, and the process is ready."""
    async with both(tmp_path) as around:
        more = BROKEN[trouble](around)
        async with around.proxy(b=more) as proxy:
            assert names(await get(proxy, "/proxy", KEYS["a"])) == ["of-a", "shared"]
            answer = await get(proxy, "/proxy", KEYS["b"])
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1") and "Not Ready" in answer.text
            assert [
                (await get(proxy, path, "")).status_code for path in (READY, "/readyz", "/proxy/health", "/proxy/live")
            ] == [200] * 4
            page = (await get(proxy, METRICS, "")).text
            assert 'flagsvc_config_state{environment="a",state="fresh"} 1.0' in page
            assert 'flagsvc_config_state{environment="b",state="cold"} 1.0' in page
        assert not [line for line in around.around.log if "environment=a" in line]


@asynchronous
async def test_an_upstream_without_a_toggle(tmp_path: Path) -> None:
    """Its callers get an empty list, and the others their toggles."""
    async with both(tmp_path) as around:
        around.b.served = document()
        async with around.proxy() as proxy:
            assert [names(await get(proxy, "/proxy", key)) for key in KEYS.values()] == [["of-a", "shared"], []]
            assert (await get(proxy, READY, "")).status_code == 200


@asynchronous
async def test_all_upstreams_down(tmp_path: Path) -> None:
    """Then the process is not ready, as one with a single environment."""
    async with both(tmp_path) as around:
        for server in (around.a, around.b):
            server.special["features"] = reply(500)
        async with around.around.proxy(around.options(), ready=False) as proxy:
            await until(lambda: around.a.received("features") and around.b.received("features"))
            answer = await get(proxy, READY, "")
            assert (answer.status_code, answer.text) == (503, "cold")
            for path in ("/proxy", "/proxy/health"):
                assert [(await get(proxy, path, key)).status_code for key in (*KEYS.values(), "nobody")] == [503] * 3


@asynchronous
async def test_an_upstream_that_fails_later(tmp_path: Path) -> None:
    """Its environment goes on with what it has, and gets ready without harm to the others once it is back."""
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


@asynchronous
async def test_stored_configurations(tmp_path: Path) -> None:
    """Each environment is restored with its own, though both have the same upstream and token."""
    same = {"b": {"flagsvc_api_token": TOKENS["a"], "name_prefix": "x"}, "storage": (tmp_path / "state").as_uri()}
    async with both(tmp_path) as around:
        async with around.proxy(**same) as proxy:
            assert names(await get(proxy, "/proxy", KEYS["a"])) == ["of-a", "shared"]
        for server in (around.a, around.b):
            server.special["features"] = reply(500)
        async with around.proxy(**same) as proxy:
            assert [names(await get(proxy, "/proxy", key)) for key in KEYS.values()] == [["of-a", "shared"], []]
