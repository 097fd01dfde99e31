"""The effects of options that callers see: one row for each tried value."""

from __future__ import annotations

import asyncio
import json

from flagsvc import ProxyOptions
from support.aio import until
from support.loopback import reply
from support.option_observations import ask, header, names, status_and_header, statuses
from support.option_observations_running import looks, overlap
from support.option_ways import Row
from support.scene import Scene, toggle

TOKEN = "*:development.of-an-app"
UNKNOWN_TOKEN = "*:development.unknown"
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
        asks = [{"authorization": token} for token in (TOKEN, UNKNOWN_TOKEN)]
        return [(await proxy.ask("GET", "/proxy", each)).status_code for each in asks]


async def questions_at_once(scene: Scene, options: ProxyOptions) -> object:
    """See how many requests about tokens go out, one for each token, before the next one has to wait."""
    know(scene)
    async with scene.proxy(options) as proxy:
        for number in range(MOST):
            asking = asyncio.ensure_future(proxy.ask("GET", "/proxy", {"authorization": f"{UNKNOWN_TOKEN}{number}"}))
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


LOOKED_UP = {"tokenValidation": "upstream"}
UNKNOWN = {"authorization": "unknown"}
BROWSER = {"origin": "https://a.example", "access-control-request-method": "GET"}
PREFLIGHT = ask("/proxy", {**BROWSER, "access-control-request-headers": "x-asked"}, method="OPTIONS")
ORIGINS = tuple(ask("/proxy", {"origin": f"https://{host}"}) for host in ("a.example", "b.example", "x.b.example"))
REPORT = {
    "appName": "a",
    "instanceId": "b",
    "bucket": {"start": "2025-01-01T00:00:00Z", "stop": "2025-01-01T00:00:00Z", "toggles": {}},
    "padding": "x" * 3000,
}


FORWARDED = {"x-forwarded-for": "198.51.100.1, 203.0.113.5, 192.0.2.9"}
ADDRESSES = {"left": "198.51.100.1", "middle": "203.0.113.5", "right": "192.0.2.9", "peer": "127.0.0.1"}
CALLERS_ADDRESS = tuple(toggle(name, ("remoteAddress", address)) for name, address in ADDRESSES.items())


def trusting(text: str, seen: str, native: object = None) -> Row:
    """Return a row of trustProxy: which address counts as the caller's when a request comes from 127.0.0.1 over three proxies."""
    return Row(
        name="trustProxy",
        text=text,
        native=native,
        features=CALLERS_ADDRESS,
        look=names(headers=FORWARDED),
        seen=[seen],
        unset=["peer"],
    )


CALLERS = (
    Row(
        name="clientKeysHeaderName",
        text="X-Client-Key",
        look=statuses(ask("/proxy", {"x-client-key": "client-key", **UNKNOWN}), ask("/proxy")),
        seen=[200, 401],
        unset=[401, 200],
    ),
    trusting("true", "left", native=True),
    trusting("127.0.0.1,192.168.1.1/24", "right", native=["127.0.0.1", "192.168.1.1/24"]),
    trusting("127.0.0.1", "right"),
    trusting("127.0.0.0/8, 192.0.2.0/24", "middle"),
    trusting("loopback", "right", native=["loopback"]),
    trusting("loopback,0.0.0.0/0", "left"),
    Row(
        name="enableOAS",
        text="true",
        native=True,
        look=statuses(ask("/docs/openapi.json", UNKNOWN), ask("/docs/openapi", UNKNOWN)),
        seen=[200, 200],
        unset=[404, 404],
    ),
    Row(
        name="enableAllEndpoint",
        text="1",
        native=True,
        look=statuses(ask("/proxy/all"), ask("/proxy/all", method="POST")),
        seen=[200, 200],
        unset=[501, 501],
    ),
    Row(
        name="dialects",
        text="Frontend",
        native=["frontend"],
        look=statuses(ask("/proxy"), ask("/api/frontend")),
        seen=[404, 200],
        unset=[200, 200],
    ),
    Row(
        name="tokenValidation",
        text="Upstream",
        look=token_statuses,
        seen=[200, 401],
        unset=[401, 401],
    ),
    Row(
        name="tokenLookupRate",
        text="2",
        native=2,
        beside=LOOKED_UP,
        look=questions_at_once,
        seen=2,
        unset=5,
    ),
    Row(
        name="tokenRevalidationInterval",
        text="60",
        native=60,
        beside=LOOKED_UP,
        look=asks_again_within_a_minute,
        seen=True,
        unset=False,
    ),
    Row(
        name="bodyLimit",
        text="2 kB",
        native=2048,
        look=statuses(*(ask("/proxy", method="POST", body={"padding": "x" * size}) for size in (1000, 3000))),
        seen=[200, 413],
        unset=[200, 200],
    ),
    Row(
        name="metricsBodyLimit",
        text="2kB",
        native=2048,
        look=statuses(ask("/proxy/client/metrics", method="POST", body=REPORT)),
        seen=[413],
        unset=[200],
    ),
    Row(
        name="headerLimit",
        text="2048",
        native=2048,
        look=statuses(*(ask("/proxy", {"x-padding": "x" * size}) for size in (1000, 3000))),
        seen=[200, 431],
        unset=[200, 200],
    ),
    Row(
        name="queryLimit",
        text="2048",
        native=2048,
        look=statuses(*(ask(f"/proxy?x={'x' * size}") for size in (1000, 3000))),
        seen=[200, 414],
        unset=[200, 200],
    ),
    Row(
        name="watchInterval",
        text="7",
        native=7,
        look=looks,
        seen=[7],
        unset=[2],
    ),
    Row(
        name="keyOverlap",
        text="10",
        native=10,
        look=overlap,
        seen=[("new-key", "client-key"), ("new-key",)],
        unset=[("new-key", "client-key")],
    ),
    Row(
        name="ageHeader",
        text="X-Config-Age",
        look=header("x-config-age", ask("/proxy")),
        seen="0",
        unset=None,
    ),
)

CORS = (
    Row(
        name="cors.allowedHeaders",
        text="X-One, X-Two",
        native=["X-One", "X-Two"],
        look=header("access-control-allow-headers", PREFLIGHT),
        seen="X-One, X-Two",
        unset="x-asked",
    ),
    Row(
        name="cors.credentials",
        text="yes",
        native=True,
        look=header("access-control-allow-credentials", PREFLIGHT, ORIGINS[0]),
        seen=["true", "true"],
        unset=[None, None],
    ),
    Row(
        name="cors.exposedHeaders",
        text="X-One,X-Two",
        native=["X-One", "X-Two"],
        look=header("access-control-expose-headers", ORIGINS[0]),
        seen="X-One, X-Two",
        unset="ETag",
    ),
    Row(
        name="cors.maxAge",
        text="60",
        native=60,
        look=header("access-control-max-age", PREFLIGHT),
        seen="60",
        unset="172800",
    ),
    Row(
        name="cors.methods",
        text="GET, put",
        native=["GET", "PUT"],
        look=header("access-control-allow-methods", PREFLIGHT),
        seen="GET, PUT",
        unset="GET, POST",
    ),
    Row(
        name="cors.optionsSuccessStatus",
        text="200",
        native=200,
        look=statuses(PREFLIGHT),
        seen=[200],
        unset=[204],
    ),
    Row(
        name="cors.origin",
        text="https://a.example, https://b.example",
        native=["https://a.example", "https://b.example"],
        look=header("access-control-allow-origin", *ORIGINS),
        seen=["https://a.example", "https://b.example", None],
        unset=["*", "*", "*"],
    ),
    Row(
        name="cors.origin",
        text="https://b.example",
        look=header("access-control-allow-origin", *ORIGINS),
        seen=["https://b.example"] * 3,
        unset=["*", "*", "*"],
    ),
    Row(
        name="cors.origin",
        text="https://*.b.example",
        look=header("access-control-allow-origin", *ORIGINS),
        seen=[None, None, "https://x.b.example"],
        unset=["*", "*", "*"],
    ),
    Row(
        name="cors.preflightContinue",
        text="true",
        native=True,
        look=status_and_header("allow", PREFLIGHT),
        seen=(200, "GET, HEAD, POST, OPTIONS"),
        unset=(204, None),
    ),
)
