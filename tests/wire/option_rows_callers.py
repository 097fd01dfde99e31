"""The effects of options that callers see: one row for each tried value."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import option_looks as see
from option_looks import Ask, ask, header, names, read, statuses
from option_ways import Row

from flagsvc import ProxyOptions
from support.aio import until
from support.loopback import reply
from support.scene import Scene, toggle

TOKEN = "*:development.of-an-app"
UNKNOWN_TOKEN = "*:development.unknown"
OFREP = "/ofrep/v1/evaluate/flags"
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
ALLOW = "access-control-allow"
BROWSER = {"origin": "https://a.example", "access-control-request-method": "GET"}
PREFLIGHT = ask("/proxy", {**BROWSER, "access-control-request-headers": "x-asked"}, method="OPTIONS")
ORIGINS = tuple(ask("/proxy", {"origin": f"https://{host}"}) for host in ("a.example", "b.example", "x.b.example"))
REPORT = {
    "appName": "a",
    "instanceId": "b",
    "bucket": {"start": "2025-01-01T00:00:00Z", "stop": "2025-01-01T00:00:00Z", "toggles": {}},
    "padding": "x" * 3000,
}
REPORTED = statuses(ask("/proxy/client/metrics", method="POST", body=REPORT))


FORWARDED = {"x-forwarded-for": "198.51.100.1, 203.0.113.5, 192.0.2.9"}
ADDRESSES = {"left": "198.51.100.1", "middle": "203.0.113.5", "right": "192.0.2.9", "peer": "127.0.0.1"}
CALLERS_ADDRESS = tuple(toggle(name, ("remoteAddress", address)) for name, address in ADDRESSES.items())


def trusting(text: str, seen: str, native: object = None) -> Row:
    """Return a row of trustProxy: which address counts as the caller's when a request comes from 127.0.0.1 over three proxies."""
    return Row("trustProxy", text, names(headers=FORWARDED), [seen], ["peer"], native=native or text, features=CALLERS_ADDRESS)


def preflighted(name: str, text: str, field: str, seen: str, unset: str, native: object = None) -> Row:
    """Return a row of an option: what a preflight has in a header of CORS."""
    return Row(name, text, header(f"access-control-{field}", PREFLIGHT), [seen], [unset], native=native)


def from_origins(text: str, seen: list[str | None], native: object = None) -> Row:
    """Return a row of cors.origin: which origin each of ORIGINS is answered with."""
    return Row("cors.origin", text, header(f"{ALLOW}-origin", *ORIGINS), seen, ["*"] * 3, native=native)


continued = read(lambda answer: (answer.status_code, answer.headers.get("allow")), PREFLIGHT)


def padded(name: str, text: str, make: Callable[[str], Ask], refusal: int, native: object = None) -> Row:
    """Return a row of a limit in bytes: a request with this padding is below it, and one with three times as much is not."""
    asks = [make("x" * size) for size in (1000, 3000)]
    return Row(name, text, statuses(*asks), [200, refusal], [200, 200], native=native)


CALLERS = (
    Row(
        "clientKeysHeaderName",
        "X-Client-Key",
        statuses(ask("/proxy", {"x-client-key": "client-key", **UNKNOWN}), ask("/proxy")),
        [200, 401],
        [401, 200],
    ),
    trusting("true", "left", native=True),
    trusting("127.0.0.0/8, 192.0.2.0/24", "middle"),
    trusting("loopback", "right", native=["loopback"]),
    Row("enableOAS", "true", statuses(ask("/docs/openapi.json", UNKNOWN), ask("/docs/openapi", UNKNOWN)), [200, 200], [404, 404]),
    Row("enableAllEndpoint", "1", statuses(ask("/proxy/all"), ask("/proxy/all", method="POST")), [200, 200], [501, 501]),
    Row("ofrep", "true", statuses(ask(OFREP, method="POST", body={"context": {}})), [200], [404]),
    Row("dialects", "Frontend", statuses(ask("/proxy"), ask("/api/frontend")), [404, 200], [200, 200], native=["frontend"]),
    Row("tokenValidation", "Upstream", token_statuses, [200, 401], [401, 401]),
    Row("tokenLookupRate", "2", questions_at_once, 2, 5, beside=LOOKED_UP),
    Row("tokenRevalidationInterval", "60", asks_again_within_a_minute, True, False, beside=LOOKED_UP),
    padded("bodyLimit", "2 kB", lambda padding: ask("/proxy", method="POST", body={"x": padding}), 413, native=2048),
    Row("metricsBodyLimit", "2kB", REPORTED, [413], [200], native=2048),
    padded("headerLimit", "2048", lambda padding: ask("/proxy", {"x-padding": padding}), 431),
    padded("queryLimit", "2048", lambda padding: ask(f"/proxy?x={padding}"), 414),
    Row("watchInterval", "7", see.looks, [7], [2]),
    Row("keyOverlap", "10", see.overlap, [("new-key", "client-key"), ("new-key",)], [("new-key", "client-key")]),
    Row("ageHeader", "X-Config-Age", header("x-config-age", ask("/proxy")), ["0"], [None]),
)

LIST = ["https://a.example", "https://b.example"]
CORS = (
    preflighted("cors.allowedHeaders", "X-One, X-Two", "allow-headers", "X-One, X-Two", "x-asked", ["X-One", "X-Two"]),
    Row("cors.credentials", "yes", header(f"{ALLOW}-credentials", PREFLIGHT, ORIGINS[0]), ["true"] * 2, [None] * 2),
    preflighted("cors.exposedHeaders", "X-One,X-Two", "expose-headers", "X-One, X-Two", "ETag", ["X-One", "X-Two"]),
    preflighted("cors.maxAge", "60", "max-age", "60", "172800"),
    preflighted("cors.methods", "GET, put", "allow-methods", "GET, PUT", "GET, POST", ["GET", "PUT"]),
    Row("cors.optionsSuccessStatus", "200", statuses(PREFLIGHT), [200], [204]),
    from_origins("https://a.example, https://b.example", [*LIST, None], LIST),
    from_origins("https://b.example", ["https://b.example"] * 3),
    from_origins("https://*.b.example", [None, None, "https://x.b.example"]),
    Row("cors.preflightContinue", "true", continued, [(200, "GET, HEAD, POST, OPTIONS")], [(204, None)]),
)
