"""The whole proxy towards its upstream server, over sockets: one test for each rule (behaviour: Towards the upstream
server).

What a single session sends, and what follows from failures and bad documents, is in `tests/integration/test_upstream_wire*.py`.
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from flagsvc import Strategy
from support.aio import until
from support.loopback import reply
from support.scene import document, scene, toggle

BUILT_IN = [
    "default",
    "applicationHostname",
    "gradualRolloutRandom",
    "gradualRolloutUserId",
    "gradualRolloutSessionId",
    "userWithId",
    "remoteAddress",
    "flexibleRollout",
]


# ---- asking


async def test_one_connection_id_for_each_proxy(tmp_path: Path) -> None:
    """It is a UUID, the same in every request of one proxy, in header and payload, and another for the next proxy."""
    seen: list[set[str]] = []
    async with scene(tmp_path) as around:
        for _ in range(2):
            around.upstream.requests.clear()
            async with around.proxy(around.options()) as proxy:
                await until(lambda: around.received("register"))
                await proxy.named("on")
            headers = {request.headers["unleash-connection-id"] for request in around.upstream.requests}
            payloads = {json.loads(request.body)["connectionId"] for request in around.upstream.requests if request.body}
            assert headers == payloads and len(headers) == 1
            seen.append(headers)
    assert all(uuid.UUID(each).version == 4 for headers in seen for each in headers) and seen[0] != seen[1]


@pytest.mark.parametrize("source", ["upstream", "file", "bootstrap", "storage"])
async def test_project_and_prefix_hold_whatever_the_source(source: str, tmp_path: Path) -> None:
    """If a source does not filter, toggles of other projects or names are dropped, also from the document for SDKs."""
    flags = document(toggle("shop.cart", project="shop"), toggle("shop.bag", project="other"), toggle("cart", project="shop"))
    (tmp_path / "flags.json").write_text(json.dumps(flags))
    more: dict[str, Any] = {"project_name": "shop", "name_prefix": "shop."}
    more |= {"exp_server_side_sdk_config_tokens": "token"}
    async with scene(tmp_path) as around:
        around.served = flags
        if source == "storage":
            more |= {"storage": (tmp_path / "state").as_uri()}
            async with around.proxy(around.options(**more)):
                pass
        if source == "file":
            more |= {"flagsvc_url": (tmp_path / "flags.json").as_uri()}
        if source == "bootstrap":
            more |= {"exp_bootstrap_url": f"{around.other.url}/flags.json"}
        if source != "upstream":
            around.replies["features"] = reply(503)
        async with around.proxy(around.options(**more)) as proxy:
            assert await proxy.names() == ["shop.cart"]
            assert await proxy.named("shop.cart", "shop.bag", "cart") == [True, False, False]
            handed_on = (await proxy.ask("GET", "/proxy/client/features", {"authorization": "token"})).json()
            assert [feature["name"] for feature in handed_on["features"]] == ["shop.cart"]


# ---- registration


class Custom(Strategy):
    """A custom strategy."""

    name = "custom"

    def is_enabled(self, parameters: object, context: object) -> bool:
        return True


async def test_registration_says_who_and_what(tmp_path: Path) -> None:
    """A registration has names, start time and interval, and the built-in and custom strategies."""
    async with scene(tmp_path) as around:
        options = around.options(flagsvc_app_name="app", flagsvc_instance_id="one", custom_strategies=[Custom()])
        async with around.proxy(options):
            await until(lambda: around.received("register"))
    [sent] = around.bodies("register")
    assert (sent["appName"], sent["instanceId"]) == ("app", "one")
    assert (sent["started"], sent["interval"]) == ("2025-06-15T15:06:40.000Z", 30_000)
    assert sent["strategies"] == [*BUILT_IN, "custom"]
