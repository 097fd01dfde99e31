"""Observations of the options of tokens that are looked up upstream."""

from __future__ import annotations

import asyncio
import json

from flagsvc import ProxyOptions
from support.aio import until
from support.loopback import reply
from support.scene import Scene

TOKEN = "*:development.of-an-app"
UNKNOWN = "*:development.unknown"
MOST = 9
"""More tokens than are looked up at once."""


def know(scene: Scene) -> None:
    """Have the upstream know one token of callers."""
    told = {"token": TOKEN, "type": "frontend", "environment": "development", "projects": ["*"]}
    scene.replies["validate"] = reply(200, json.dumps({"tokens": [told]}).encode(), content_type="application/json")


async def token_statuses(scene: Scene, options: ProxyOptions) -> object:
    """See the statuses for a token that the upstream knows and one that it does not know."""
    know(scene)
    async with scene.proxy(options) as proxy:
        asks = [{"authorization": token} for token in (TOKEN, UNKNOWN)]
        return [(await proxy.ask("GET", "/proxy", each)).status_code for each in asks]


async def questions_at_once(scene: Scene, options: ProxyOptions) -> object:
    """See how many requests about tokens go out, one for each token, before the next one has to wait."""
    know(scene)
    async with scene.proxy(options) as proxy:
        for number in range(MOST):
            asking = asyncio.ensure_future(proxy.ask("GET", "/proxy", {"authorization": f"{UNKNOWN}{number}"}))
            await until(lambda asking=asking: asking.done() or min(scene.clock.sleeping) < 1)  # type: ignore[misc]
            if not asking.done():
                asking.cancel()
                break
        return len(scene.received("validate"))


async def asks_again_within_a_minute(scene: Scene, options: ProxyOptions) -> object:
    """See whether the upstream is asked again within a minute about the tokens that it knew."""
    know(scene)
    async with scene.proxy(options):
        await until(lambda: len(scene.clock.sleeping) > 1)
        return any(50 < each <= 60 for each in scene.clock.sleeping)
