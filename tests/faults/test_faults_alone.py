"""Every fault of an upstream, alone: before the first configuration there is 503, after it no answer changes.

The last good configuration is served all the time (behaviour: Failures; specification: States and transitions).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.aio import asynchronous
from support.scene import Proxy, Scene, document, scene, toggle
from support.upstream_faults import FAULTS, WORSE, Fault

TOKEN = "server-side-token"
SHORT_MS, USUAL_MS = 300, 10_000
"""Milliseconds that the proxy waits for the upstream: where the fault is a timeout, and elsewhere."""
TIMES = 2
"""How often each fault is met before the first configuration, and again after it."""
ASKED: tuple[tuple[str, str, dict[str, str], Any], ...] = (
    ("GET", "/proxy?userId=7", {}, None),
    ("GET", "/proxy/all?userId=7&region=eu", {"accept-encoding": "gzip"}, None),
    ("POST", "/proxy", {}, {"toggles": ["first", "second", "never"], "context": {"userId": "7"}}),
    ("GET", "/proxy/client/features", {"authorization": TOKEN}, None),
    ("GET", "/proxy/health", {}, None),
)

Seen = list[tuple[int, str | None, bytes]]


async def seen(proxy: Proxy) -> Seen:
    """Return status, entity tag and body of the answer to each request."""
    answers = [await proxy.ask(*question) for question in ASKED]
    return [(answer.status_code, answer.headers.get("etag"), answer.content) for answer in answers]


async def suffers(around: Scene, fault: Fault) -> None:
    """Let the proxy poll once while the upstream has this fault."""
    around.replies["features"] = fault.answer
    await around.next_poll()


async def recovers(around: Scene, proxy: Proxy, name: str) -> None:
    """Let the upstream serve a toggle of this name, which counts with the first answer that arrives in time."""
    around.replies.clear()
    around.served = document(toggle(name))
    for _ in range(10):
        await around.next_poll()
        if (await proxy.ask("GET", "/proxy")).status_code == 200 and await proxy.names() == [name]:
            return
    raise AssertionError(f"the proxy does not recover: {around.log[-10:]}")


@pytest.mark.parametrize("fault", FAULTS, ids=repr)
@asynchronous
async def test_a_fault_alone(fault: Fault, tmp_path: Path) -> None:
    """A fault changes no answer, before and after the first configuration, and the next good document is served."""
    async with scene(tmp_path) as around:
        options = around.options(
            metrics_interval=0,
            enable_all_endpoint=True,
            exp_server_side_sdk_config_tokens=TOKEN,
            upstream_timeout=SHORT_MS if fault.slow else USUAL_MS,
        )
        around.replies["features"] = fault.answer
        async with around.proxy(options, ready=False) as proxy:
            for _ in range(TIMES):
                await suffers(around, fault)
                assert {status for status, _, _ in await seen(proxy)} == {503}
                assert (await proxy.ask("GET", "/proxy/live")).status_code == 200
            await recovers(around, proxy, "first")
            before = await seen(proxy)
            assert [status for status, _, _ in before] == [200] * len(ASKED)
            for _ in range(TIMES):
                await suffers(around, fault)
                assert await seen(proxy) == before
            await recovers(around, proxy, "second")
    assert "Traceback" not in around.stderr.getvalue() and "never" not in around.stderr.getvalue()


@asynchronous
async def test_a_worse_document_is_seen_where_it_is_let_through(tmp_path: Path) -> None:
    """Without the fault, its document would be served, so the test above can fail."""
    async with scene(tmp_path) as around:
        around.served = WORSE
        async with around.proxy(around.options(metrics_interval=0)) as proxy:
            assert await proxy.names() == ["never"]
