"""The effects of options of the upstream server, listening and usage metrics: one row for each tried value."""

from __future__ import annotations

import json

import option_looks as see
from option_looks import ask, names, statuses
from option_ways import STRANGER, Row, refused

from flagsvc import ProxyOptions
from flagsvc.settings.defaults import instance_id
from support.aio import until
from support.scene import TOKEN, Proxy, Scene, document, toggle


async def pace_of_metrics(scene: Scene, options: ProxyOptions) -> object:
    """See the seconds between metrics posts, and all requests to the upstream."""
    async with scene.proxy(options) as proxy:
        pauses = await metrics_pauses(scene, proxy, 2)
        if pauses:
            await until(lambda: scene.received("register"))
    return pauses, sorted({request.path.rpartition("/")[2] for request in scene.upstream.requests})


async def spread_of_metrics(scene: Scene, options: ProxyOptions) -> object:
    """See whether the seconds between metrics posts vary, and by how much at most."""
    async with scene.proxy(options) as proxy:
        pauses = await metrics_pauses(scene, proxy, 6)
    return {"varies": len(set(pauses)) > 1, "within": all(20 <= pause <= 40 for pause in pauses)}


async def metrics_pauses(scene: Scene, proxy: Proxy, times: int) -> list[float]:
    """Return the seconds before each of some metrics posts, none if there are none; the proxy must not poll."""
    pauses: list[float] = []
    if not scene.clock.sleeping:
        return pauses
    for _ in range(times):
        await proxy.named("on")
        [pause] = await scene.waits(1)
        await scene.clock.advance(pause)
        pauses.append(pause)
        await until(lambda: len(scene.received("metrics")) == len(pauses))
    return pauses


async def counted(scene: Scene, options: ProxyOptions) -> object:
    """See how many toggles are in each post of the metrics that are sent at the end."""
    async with scene.proxy(options) as proxy:
        await proxy.named("one", "two", "three")
    return [len(sent["bucket"]["toggles"]) for sent in scene.bodies("metrics")]


async def impact_metrics(scene: Scene, options: ProxyOptions) -> object:
    """See which impact metrics of a browser are in the posts that are sent at the end."""
    counter = {"help": "h", "type": "counter", "samples": [{"value": 2}]}
    reported = [{"name": name, **counter} for name in ("sales", "errors")]
    async with scene.proxy(options) as proxy:
        answer = await proxy.ask("POST", "/api/frontend/client/metrics", body={"appName": "a", "impactMetrics": reported})
        assert answer.status_code == 200
    return [metric["name"] for sent in scene.bodies("metrics") for metric in sent["impactMetrics"]]


KEYS = statuses(*(ask("/proxy", {"authorization": key}) for key in ("one", "two", "unknown")))
AUTHENTICATED = see.upstream_headers("x-upstream-key", "authorization")
NO_POLLS, NO_METRICS = {"refreshInterval": "0"}, {"metricsInterval": "0"}
FORWARDED = [f"GET http://UPSTREAM/api/client/{what}" for what in ("features", "streaming")]
THREE = (toggle("one"), toggle("two"), toggle("three"))

REQUIRED = (
    Row("flagsvcUrl", "{upstream}/flags", see.target, ("/flags/client/features", ["on"]), refused("flagsvcUrl")),
    Row(
        "flagsvcUrl",
        "file://{folder}/flags.json",
        names(),
        ["from-a-file"],
        refused("flagsvcUrl"),
        files={"flags.json": json.dumps(document(toggle("from-a-file")))},
    ),
    Row(
        "flagsvcApiToken",
        "*:development.some-other-token",
        see.upstream_headers("authorization"),
        {("*:development.some-other-token",)},
        refused("flagsvcApiToken"),
    ),
    Row("clientKeys", "one, two", KEYS, [200, 200, 401], refused("clientKeys"), native=["one", "two"]),
    Row("proxySecrets", "one,two", KEYS, [200, 200, 401], refused("clientKeys"), native=["one", "two"], without=("clientKeys",)),
)

LISTENING = (
    Row("port", "{port}", see.port, "the one given", "3000"),
    Row("host", "127.0.0.2", see.addresses, [False, True], [True, True], beside={"port": "{port}"}),
    Row("keepAliveTimeout", "1", see.idle_connection, "closed", "open", beside={"port": "{port}"}),
    Row("shutdownGrace", "0", see.answer_after_sigterm, "refused", "draining", beside={"port": "{port}"}),
    Row("workers", "2", see.processes_that_answer, 2.0, 1.0, beside={"port": "{port}"}),
    Row("workerTimeout", "500", see.patience_with_workers, 0.5, 3.0),
    Row("proxyBasePath", "base/path", statuses(ask("/base/path/proxy"), ask("/proxy")), [200, 404], [404, 200]),
)

UPSTREAM = (
    Row(
        "flagsvcAppName",
        "some-app",
        see.identity("appName", "unleash-appname"),
        ({"some-app"}, "some-app", "some-app", ["on", "some"]),
        ({"flagsvc-proxy"}, "flagsvc-proxy", "flagsvc-proxy", ["on", "usual"]),
        features=(toggle("on"), toggle("some", ("appName", "some-app")), toggle("usual", ("appName", "flagsvc-proxy"))),
    ),
    Row(
        "flagsvcInstanceId",
        "one-of-many",
        see.identity("instanceId", "unleash-instanceid"),
        ({"one-of-many"}, "one-of-many", "one-of-many", ["on"]),
        ({instance_id({})}, instance_id({}), instance_id({}), ["on"]),
    ),
    Row("refreshInterval", "2500", see.pace_of_polls, ("2500", [2.5, 2.5]), ("5000", [5.0, 5.0]), beside=NO_METRICS),
    Row("refreshInterval", "0", see.pace_of_polls, ("0", []), ("5000", [5.0, 5.0]), beside=NO_METRICS),
    Row("upstreamMode", "polling", see.streams, (0, 0.0), (1, 1.0), beside=NO_METRICS),
    Row("upstreamMode", "streaming", see.level_of_no_stream, ["warn"], [], beside=NO_METRICS),
    Row(
        "projectName",
        "shop",
        see.target,
        ("/api/client/features?project=shop", ["cart"]),
        ("/api/client/features", ["on", "cart"]),
        features=(toggle("on", project="default"), toggle("cart", project="shop")),
    ),
    Row(
        "namePrefix",
        "shop.",
        see.target,
        ("/api/client/features?namePrefix=shop.", ["shop.cart"]),
        ("/api/client/features", ["shopping", "shop.cart"]),
        features=(toggle("shopping"), toggle("shop.cart")),
    ),
    Row(
        "tags",
        "team:web, url:https://a",
        see.target,
        ("/api/client/features?tag=team%3Aweb&tag=url%3Ahttps%3A%2F%2Fa", ["on"]),
        ("/api/client/features", ["on"]),
        native=["team:web", "url:https://a"],
    ),
    Row(
        "httpOptions.rejectUnauthorized",
        "false",
        see.first_attempt("certificate"),
        (200, False),
        (503, True),
        tls=STRANGER.server(),
    ),
    Row("httpProxy", "{other}", see.route_of_polls, FORWARDED, []),
    Row(
        "httpsProxy",
        "{other}",
        see.route_of_polls,
        ["CONNECT UPSTREAM"],
        [],
        beside={"httpOptions.rejectUnauthorized": "false", **NO_METRICS},
        tls=STRANGER.server(),
    ),
    Row(
        "noProxy",
        "localhost, 127.0.0.0/8",
        see.route_of_polls,
        [],
        FORWARDED,
        native=["localhost", "127.0.0.0/8"],
        beside={"httpProxy": "{other}"},
    ),
    Row(
        "upstreamHeaders",
        "X-Gateway: open, X-Key: a:b",
        see.upstream_headers("x-gateway", "x-key"),
        {("open", "a:b")},
        {(None, None)},
        native=["X-Gateway: open", "X-Key: a:b"],
    ),
    Row("upstreamAuthHeader", "X-Upstream-Key", AUTHENTICATED, {(TOKEN, None)}, {(None, TOKEN)}),
    Row("upstreamTimeout", "100", see.patience, True, False),
    Row("maxStaleness", "3600", see.readiness, (200, 503, "stale", 200), (200, 200, "ready", 200)),
    Row("retryAfterLimit", "70000", see.pause_asked_for, 70, 300, beside=NO_METRICS),
)

SENT = ["features", "metrics", "register"]
METRICS = (
    Row("metricsInterval", "7000", pace_of_metrics, ([7.0, 7.0], SENT), ([30.0, 30.0], SENT), beside=NO_POLLS),
    Row("metricsInterval", "0", pace_of_metrics, ([], ["features"]), ([30.0, 30.0], SENT), beside=NO_POLLS),
    Row(
        "metricsJitter",
        "10000",
        spread_of_metrics,
        {"varies": True, "within": True},
        {"varies": False, "within": True},
        beside=NO_POLLS,
    ),
    Row("metricsBuffer", "2", counted, [2], [3], features=THREE),
    Row("metricsBufferBytes", "150", counted, [2], [3], features=THREE),
    Row("metricsBatch", "2", counted, [2, 1], [3], features=THREE),
    Row("impactMetrics", "sales, clicks", impact_metrics, ["sales"], [], native=["sales", "clicks"]),
)
