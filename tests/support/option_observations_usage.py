"""Observations of the options of usage metrics: each function runs a proxy and returns what the upstream gets."""

from __future__ import annotations

from flagsvc import ProxyOptions
from support.aio import until
from support.scene import Proxy, Scene


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
