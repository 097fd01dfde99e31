"""The proxy under an ASGI server other than ours."""

from __future__ import annotations

import asyncio

from hypercorn.asyncio import serve
from hypercorn.config import Config

from flagsvc import ProxyOptions, create_app
from support.aio import asynchronous, until
from support.fake_upstream import METRICS, fake_upstream
from support.processes import answers, ask, free_port

KEY = {"Authorization": "some-client-key"}
DOCUMENT = {"version": 2, "features": [{"name": "first", "enabled": True, "strategies": [{"name": "default"}]}]}


@asynchronous
async def test_any_asgi_server_runs_it() -> None:
    """Hypercorn starts it by its lifespan, serves it, and its last usage metrics leave when it stops."""
    with fake_upstream(DOCUMENT) as upstream:
        options = ProxyOptions(
            flagsvc_url=upstream.url,
            flagsvc_api_token="some-token",
            client_keys="some-client-key",
            storage="none",
            metrics_interval=3_600_000,
        )
        config, stop = Config(), asyncio.Event()
        url = f"http://127.0.0.1:{(port := free_port())}"
        config.bind, config.errorlog = [f"127.0.0.1:{port}"], None
        server = asyncio.create_task(serve(create_app(options), config, shutdown_trigger=stop.wait))  # type: ignore[arg-type]
        asked = {"toggles": ["first"], "context": {"userId": "7"}}
        try:
            await until(lambda: upstream.requests or server.done())
            while not await asyncio.to_thread(answers, f"{url}/proxy/health"):
                assert not server.done()
            answer = await asyncio.to_thread(ask, f"{url}/proxy", headers=KEY)
            assert (answer.status, [toggle["name"] for toggle in answer.json()["toggles"]]) == (200, ["first"])
            counted = await asyncio.to_thread(ask, f"{url}/proxy", method="POST", headers=KEY, body=asked)
            assert (counted.status, upstream.received(METRICS)) == (200, [])
        finally:
            stop.set()
            await server
        (post,) = upstream.received(METRICS)
        assert post.json()["bucket"]["toggles"] == {"first": {"yes": 1, "no": 0, "variants": {}}}
