"""The effects of options of the upstream server, listening and usage metrics: one row for each tried value."""

from __future__ import annotations

import json

from flagsvc import ProxyOptions
from flagsvc.settings.defaults import instance_id
from support import option_observations as see
from support import option_observations_running as running
from support.aio import until
from support.option_observations import ask, names, statuses
from support.option_ways import Observe, Row, refused
from support.scene import TOKEN, Proxy, Scene, document, toggle


async def pace_of_metrics(scene: Scene, options: ProxyOptions) -> object:
    """Observe the seconds between metrics posts, and all requests to the upstream."""
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
        answer = await proxy.ask(
            "POST", "/api/frontend/client/metrics", body={"appName": "a", "impactMetrics": reported}
        )
        assert answer.status_code == 200
    return [metric["name"] for sent in scene.bodies("metrics") for metric in sent["impactMetrics"]]


def keys(header_name: str = "authorization") -> Observe:
    """See which of three keys are accepted."""
    return statuses(*(ask("/proxy", {header_name: key}) for key in ("one", "two", "unknown")))


REQUIRED = (
    Row(
        name="flagsvcUrl",
        text="{upstream}/flags",
        look=see.target,
        seen="/flags/client/features",
        unset=refused("flagsvcUrl"),
    ),
    Row(
        name="flagsvcUrl",
        text="file://{folder}/flags.json",
        files={"flags.json": json.dumps(document(toggle("from-a-file")))},
        look=names(),
        seen=["from-a-file"],
        unset=refused("flagsvcUrl"),
    ),
    Row(
        name="flagsvcApiToken",
        text="*:development.some-other-token",
        look=see.authorization,
        seen={"*:development.some-other-token"},
        unset=refused("flagsvcApiToken"),
    ),
    Row(
        name="clientKeys",
        text="one, two",
        native=["one", "two"],
        look=keys(),
        seen=[200, 200, 401],
        unset=refused("clientKeys"),
    ),
    Row(
        name="proxySecrets",
        text="one,two",
        native=["one", "two"],
        without=("clientKeys",),
        look=keys(),
        seen=[200, 200, 401],
        unset=refused("clientKeys"),
    ),
)

LISTENING = (
    Row(
        name="port",
        text="{port}",
        look=see.port,
        seen="the one given",
        unset="3000",
    ),
    Row(
        name="host",
        text="127.0.0.2",
        beside={"port": "{port}"},
        look=see.addresses,
        seen=[False, True],
        unset=[True, True],
    ),
    Row(
        name="keepAliveTimeout",
        text="1",
        native=1,
        beside={"port": "{port}"},
        look=see.idle_connection,
        seen="closed",
        unset="open",
    ),
    Row(
        name="shutdownGrace",
        text="0",
        native=0,
        beside={"port": "{port}"},
        look=running.answer_after_sigterm,
        seen="refused",
        unset="draining",
    ),
    Row(
        name="workers",
        text="2",
        native=2,
        beside={"port": "{port}"},
        look=running.processes_that_answer,
        seen=2.0,
        unset=1.0,
    ),
    Row(
        name="workerTimeout",
        text="500",
        native=500,
        look=running.silence,
        seen=0.5,
        unset=3.0,
    ),
    Row(
        name="proxyBasePath",
        text="base/path",
        look=statuses(ask("/base/path/proxy"), ask("/proxy")),
        seen=[200, 404],
        unset=[404, 200],
    ),
)

UPSTREAM = (
    Row(
        name="flagsvcAppName",
        text="some-app",
        features=(toggle("on"), toggle("some", ("appName", "some-app")), toggle("usual", ("appName", "flagsvc-proxy"))),
        look=see.identity("appName", "unleash-appname"),
        seen=({"some-app"}, "some-app", "some-app", ["on", "some"]),
        unset=({"flagsvc-proxy"}, "flagsvc-proxy", "flagsvc-proxy", ["on", "usual"]),
    ),
    Row(
        name="flagsvcInstanceId",
        text="one-of-many",
        look=see.identity("instanceId", "unleash-instanceid"),
        seen=({"one-of-many"}, "one-of-many", "one-of-many", ["on"]),
        unset=({instance_id({})}, instance_id({}), instance_id({}), ["on"]),
    ),
    Row(
        name="refreshInterval",
        text="2500",
        native=2500,
        beside={"metricsInterval": "0"},
        look=see.pace_of_polls,
        seen=("2500", [2.5, 2.5]),
        unset=("5000", [5.0, 5.0]),
    ),
    Row(
        name="refreshInterval",
        text="0",
        native=0,
        beside={"metricsInterval": "0"},
        look=see.pace_of_polls,
        seen=("0", []),
        unset=("5000", [5.0, 5.0]),
    ),
    Row(
        name="projectName",
        text="shop",
        features=(toggle("on", project="default"), toggle("cart", project="shop")),
        look=see.target_and_names,
        seen=("/api/client/features?project=shop", ["cart"]),
        unset=("/api/client/features", ["on", "cart"]),
    ),
    Row(
        name="namePrefix",
        text="shop.",
        features=(toggle("shopping"), toggle("shop.cart")),
        look=see.target_and_names,
        seen=("/api/client/features?namePrefix=shop.", ["shop.cart"]),
        unset=("/api/client/features", ["shopping", "shop.cart"]),
    ),
    Row(
        name="tags",
        text="team:web, url:https://a",
        native=["team:web", "url:https://a"],
        look=see.target,
        seen="/api/client/features?tag=team%3Aweb&tag=url%3Ahttps%3A%2F%2Fa",
        unset="/api/client/features",
    ),
    Row(
        name="httpOptions.rejectUnauthorized",
        text="false",
        native=False,
        tls=True,
        look=see.connection,
        seen=(200, False),
        unset=(503, True),
    ),
    Row(
        name="httpProxy",
        text="{other}",
        look=see.route_of_polls,
        seen=["GET http://UPSTREAM/api/client/features"],
        unset=[],
    ),
    Row(
        name="httpsProxy",
        text="{other}",
        beside={"httpOptions.rejectUnauthorized": "false", "metricsInterval": "0"},
        tls=True,
        look=see.route_of_polls,
        seen=["CONNECT UPSTREAM"],
        unset=[],
    ),
    Row(
        name="noProxy",
        text="localhost, 127.0.0.0/8",
        native=["localhost", "127.0.0.0/8"],
        beside={"httpProxy": "{other}"},
        look=see.route_of_polls,
        seen=[],
        unset=["GET http://UPSTREAM/api/client/features"],
    ),
    Row(
        name="upstreamHeaders",
        text="X-Gateway: open, X-Key: a:b",
        native=["X-Gateway: open", "X-Key: a:b"],
        look=running.upstream_headers("x-gateway", "x-key"),
        seen={("open", "a:b")},
        unset={(None, None)},
    ),
    Row(
        name="upstreamAuthHeader",
        text="X-Upstream-Key",
        look=running.upstream_headers("x-upstream-key", "authorization"),
        seen={(TOKEN, None)},
        unset={(None, TOKEN)},
    ),
    Row(
        name="upstreamTimeout",
        text="100",
        native=100,
        look=see.patience,
        seen=True,
        unset=False,
    ),
    Row(
        name="maxStaleness",
        text="3600",
        native=3600,
        look=see.readiness,
        seen=(200, 503, "stale", 200),
        unset=(200, 200, "ready", 200),
    ),
    Row(
        name="retryAfterLimit",
        text="70000",
        native=70_000,
        beside={"metricsInterval": "0"},
        look=see.pause_asked_for,
        seen=70,
        unset=300,
    ),
)

METRICS = (
    Row(
        name="metricsInterval",
        text="7000",
        native=7000,
        beside={"refreshInterval": "0"},
        look=pace_of_metrics,
        seen=([7.0, 7.0], ["features", "metrics", "register"]),
        unset=([30.0, 30.0], ["features", "metrics", "register"]),
    ),
    Row(
        name="metricsInterval",
        text="0",
        native=0,
        beside={"refreshInterval": "0"},
        look=pace_of_metrics,
        seen=([], ["features"]),
        unset=([30.0, 30.0], ["features", "metrics", "register"]),
    ),
    Row(
        name="metricsJitter",
        text="10000",
        native=10_000,
        beside={"refreshInterval": "0"},
        look=spread_of_metrics,
        seen={"varies": True, "within": True},
        unset={"varies": False, "within": True},
    ),
    Row(
        name="metricsBuffer",
        text="2",
        native=2,
        features=(toggle("one"), toggle("two"), toggle("three")),
        look=counted,
        seen=[2],
        unset=[3],
    ),
    Row(
        name="metricsBufferBytes",
        text="150",
        native=150,
        features=(toggle("one"), toggle("two"), toggle("three")),
        look=counted,
        seen=[2],
        unset=[3],
    ),
    Row(
        name="metricsBatch",
        text="2",
        native=2,
        features=(toggle("one"), toggle("two"), toggle("three")),
        look=counted,
        seen=[2, 1],
        unset=[3],
    ),
    Row(
        name="impactMetrics",
        text="sales, clicks",
        native=["sales", "clicks"],
        look=impact_metrics,
        seen=["sales"],
        unset=[],
    ),
)
