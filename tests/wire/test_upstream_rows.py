"""The whole proxy towards its upstream server, over sockets: one test for each rule (behaviour: Towards the upstream
server).

What a single session sends is in `tests/integration/test_upstream_wire*.py`, failures and bad documents are in
`test_upstream_failures.py`.
"""

from __future__ import annotations

import json
import platform
import uuid
from pathlib import Path
from typing import Any

import pytest

from flagsvc import ProxyOptions, Strategy
from flagsvc.core.version import VERSION
from support.aio import asynchronous, until
from support.environments import only
from support.loopback import Answer, reply, then_reset
from support.scene import Scene, document, scene, toggle

FULL = document(toggle("on"), toggle("off", enabled=False))
METRICS_S = 30.0
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


def reporting(around: Scene, **more: Any) -> ProxyOptions:
    """Return options with which a ready proxy only registers and sends metrics."""
    return around.options(refresh_interval=0, **more)


async def next_metrics(around: Scene) -> float:
    """Let the proxy send metrics once more, and return how long it had slept."""
    before = len(around.received("metrics"))
    [pause] = await around.waits(1)
    await around.clock.advance(pause)
    await until(lambda: len(around.received("metrics")) > before)
    await around.waits(1)
    return pause


# ---- asking


@asynchronous
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
            payloads = {
                json.loads(request.body)["connectionId"] for request in around.upstream.requests if request.body
            }
            assert headers == payloads and len(headers) == 1
            seen.append(headers)
    assert all(uuid.UUID(each).version == 4 for headers in seen for each in headers) and seen[0] != seen[1]


@pytest.mark.parametrize("source", ["upstream", "file", "bootstrap", "storage"])
@asynchronous
async def test_project_and_prefix_hold_whatever_the_source(source: str, tmp_path: Path) -> None:
    """If a source does not filter, toggles of other projects or names are dropped, also from the document for SDKs."""
    flags = document(
        toggle("shop.cart", project="shop"), toggle("shop.bag", project="other"), toggle("cart", project="shop")
    )
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
        """Return yes."""
        return True


@asynchronous
async def test_registration_says_who_and_what(tmp_path: Path) -> None:
    """A registration has names, versions, built-in and custom strategies, start time and interval, and nothing else."""
    async with scene(tmp_path) as around:
        options = around.options(flagsvc_app_name="app", flagsvc_instance_id="one", custom_strategies=[Custom()])
        async with around.proxy(options):
            await until(lambda: around.received("register"))
    [sent] = around.bodies("register")
    assert uuid.UUID(sent.pop("connectionId"))  # type: ignore[truthy-bool]
    assert sent == {
        "appName": "app",
        "instanceId": "one",
        "sdkVersion": f"flagsvc:{VERSION}",
        "strategies": [*BUILT_IN, "custom"],
        "started": "2025-06-15T15:06:40.000Z",
        "interval": 30_000,
        "platformName": platform.python_implementation(),
        "platformVersion": platform.python_version(),
        "yggdrasilVersion": None,
        "specVersion": "6.1.0",
    }


@asynchronous
async def test_registration_follows_the_first_synchronisation_and_is_retried(tmp_path: Path) -> None:
    """The proxy registers after the first configuration from the upstream, retries until it succeeds, and never registers again."""
    async with scene(tmp_path) as around:
        around.replies |= {"features": reply(503), "register": reply(500)}
        async with around.proxy(around.options(log_level="info"), ready=False) as proxy:
            for _ in range(3):
                await around.waits(2)
                await around.poll()
            await around.waits(2)
            assert around.received("register") == []
            del around.replies["features"]
            await around.poll()
            while len(around.received("register")) < 4:
                await around.waits(3)
                await around.poll(400.0)
            del around.replies["register"]
            while not any("the registration was taken" in line for line in around.log):
                await around.waits(3)
                await around.poll(400.0)
                await around.waits(2)
            attempts = len(around.received("register"))
            for _ in range(3):
                await around.waits(2)
                await around.poll(400.0)
            assert await proxy.names() == ["on"]
        assert len(around.received("register")) == attempts
    assert sum("the registration was not taken" in line for line in around.log) == 1
    assert sum("the registration was taken" in line for line in around.log) == 1


# ---- metrics


@asynchronous
async def test_metrics_say_what_was_asked_by_name(tmp_path: Path) -> None:
    """A post counts yes and no for each known name, with start and end time; list answers are not counted."""
    async with scene(tmp_path) as around:
        around.served = FULL
        async with around.proxy(reporting(around, flagsvc_app_name="app", flagsvc_instance_id="one")) as proxy:
            assert await proxy.named("on", "off", "on", "unknown") == [True, False, True, False]
            assert await proxy.named("on") == [True]
            assert await proxy.names() == ["on"]
            assert await next_metrics(around) == METRICS_S
            assert only(proxy.app).counters.unknown == 1
    [sent] = around.bodies("metrics")
    assert uuid.UUID(sent.pop("connectionId"))  # type: ignore[truthy-bool]
    assert sent == {
        "appName": "app",
        "instanceId": "one",
        "platformName": platform.python_implementation(),
        "platformVersion": platform.python_version(),
        "yggdrasilVersion": None,
        "specVersion": "6.1.0",
        "bucket": {
            "start": "2025-06-15T15:06:40.000Z",
            "stop": "2025-06-15T15:07:10.000Z",
            "toggles": {"on": {"yes": 3, "no": 0, "variants": {}}, "off": {"yes": 0, "no": 1, "variants": {}}},
        },
    }


@asynchronous
async def test_nothing_to_tell_is_not_told(tmp_path: Path) -> None:
    """List answers and unknown names cause no post within an hour, and none at the end."""
    async with scene(tmp_path) as around:
        async with around.proxy(reporting(around)) as proxy:
            await until(lambda: around.received("register"))
            for _ in range(120):
                await around.waits(1)
                await around.clock.advance(METRICS_S)
            await proxy.names()
            await proxy.named("unknown")
        assert around.received("metrics") == []


@asynchronous
async def test_the_last_metrics_leave_at_the_end(tmp_path: Path) -> None:
    """What was counted since the last post is sent once more on shutdown."""
    async with scene(tmp_path) as around, around.proxy(reporting(around)) as proxy:
        await proxy.named("on")
        await next_metrics(around)
        await proxy.named("on", "on")
        await proxy.app.aclose()
        counts = [sent["bucket"]["toggles"]["on"]["yes"] for sent in around.bodies("metrics")]
        assert counts == [1, 2]


PASSING: dict[str, Answer] = {str(status): reply(status) for status in (401, 404, 429, 500, 503)}


@pytest.mark.parametrize("failure", [*PASSING.values(), then_reset()], ids=[*PASSING, "connection reset"])
@asynchronous
async def test_metrics_that_could_not_be_sent_are_kept(failure: Answer, tmp_path: Path) -> None:
    """They are merged with later counts, from the first start time on; after a success the interval is the normal one."""
    async with scene(tmp_path) as around:
        around.replies["metrics"] = failure
        async with around.proxy(reporting(around)) as proxy:
            pauses = []
            for _ in range(3):
                await proxy.named("on")
                pauses.append(await next_metrics(around))
            around.replies.clear()
            await proxy.named("on")
            pauses.append(await next_metrics(around))
            await proxy.named("on")
            pauses.append(await next_metrics(around))
    *_, merged, last = [sent["bucket"] for sent in around.bodies("metrics")]
    assert merged["start"] == "2025-06-15T15:06:40.000Z" and last["start"] == merged["stop"]
    assert [bucket["toggles"]["on"]["yes"] for bucket in (merged, last)] == [4, 1]
    assert pauses[0] == pauses[-1] == METRICS_S and all(METRICS_S <= pause <= 300 for pause in pauses)
    assert len([line for line in around.log if "could not be sent" in line]) == 1


@asynchronous
async def test_what_the_bound_drops_is_counted(tmp_path: Path) -> None:
    """While posts fail, at most metricsBuffer counters are kept; a Prometheus metric counts the dropped ones."""
    async with scene(tmp_path) as around:
        around.served = document(*(toggle(f"t{number}") for number in range(10)))
        around.replies["metrics"] = reply(500)
        async with around.proxy(reporting(around, metrics_buffer=4)) as proxy:
            for number in range(10):
                await proxy.named(f"t{number}")
                if number == 2:
                    await next_metrics(around)
            around.replies.clear()
            await next_metrics(around)
            assert await proxy.sample('flagsvc_usage_dropped_total{reason="full"}') == 6
    assert len(around.bodies("metrics")[-1]["bucket"]["toggles"]) == 4
