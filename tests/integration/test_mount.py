"""The proxy in other applications and ASGI servers: flags arrive, the last usage metrics are sent, two proxies share nothing."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from hypercorn.asyncio import serve
from hypercorn.config import Config
from starlette.applications import Starlette
from starlette.routing import Mount

from flagsvc import ProxyApp, ProxyOptions, create_app
from support.aio import until
from support.environments import only
from support.fake_upstream import METRICS, REGISTER, FakeUpstream, fake_upstream
from support.processes import ROOT, Answer, answers, ask, free_port, running, scratch
from support.smuggling import mounted
from support.waiting import wait_until
from support.worker_pools import document

KEY = {"Authorization": "some-client-key"}
NEVER = 3_600_000


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The request that starts a proxy waits longer for its configuration: the machine may be busy."""
    monkeypatch.setattr("flagsvc.proxy.application.FIRST_REQUEST_S", 20.0)


def options(upstream: FakeUpstream, **given: Any) -> ProxyOptions:
    """Options for a proxy of this upstream that keeps nothing and posts no metrics before it stops."""
    usual = {"client_keys": "some-client-key", "storage": "none", "refresh_interval": 50, "metrics_interval": NEVER}
    return ProxyOptions(flagsvc_url=upstream.url, flagsvc_api_token="some-token", **usual | given)  # type: ignore[arg-type]


def in_starlette(proxy: ProxyApp, *, lifespan: bool) -> Starlette:
    """A Starlette application with the proxy under /flags."""
    return Starlette(routes=[Mount("/flags", proxy)], lifespan=proxy.lifespan if lifespan else None)


def in_fastapi(proxy: ProxyApp, *, lifespan: bool) -> FastAPI:
    """A FastAPI application with the proxy under /flags."""
    app = FastAPI(lifespan=proxy.lifespan) if lifespan else FastAPI()
    app.mount("/flags", proxy)
    return app


@contextmanager
def served(app: Any) -> Iterator[str]:
    """Run an application under uvicorn in a thread; end it as uvicorn ends for itself."""
    with mounted(app) as port:
        yield f"http://127.0.0.1:{port}"


def look_up(url: str, *names: str) -> Answer:
    """Ask for toggles by name, which counts them."""
    return ask(url, method="POST", headers=KEY, body={"toggles": list(names), "context": {"userId": "7"}})


def counts(upstream: FakeUpstream) -> list[dict[str, Any]]:
    """What each metrics post counted."""
    return [post.json()["bucket"]["toggles"] for post in upstream.received(METRICS)]


def names(answer: Answer) -> list[str]:
    """The toggles of a list answer."""
    assert answer.status == 200, answer
    return [toggle["name"] for toggle in answer.json()["toggles"]]


@pytest.mark.parametrize(("inside", "lifespan"), [(in_starlette, True), (in_fastapi, False)])
def test_mounted(upstream: FakeUpstream, inside: Callable[..., Any], lifespan: bool) -> None:
    """Under a prefix flags arrive with the first request, a change arrives, and the last metrics leave once at the end."""
    with served(inside(create_app(options(upstream)), lifespan=lifespan)) as url:
        if lifespan:
            wait_until(lambda: answers(f"{url}/flags/proxy/health"))
        assert names(ask(f"{url}/flags/proxy", headers=KEY)) == ["first", "second"]
        upstream.replace(document("third"))
        wait_until(lambda: names(ask(f"{url}/flags/proxy", headers=KEY)) == ["third"])
        assert look_up(f"{url}/flags/proxy", "third", "unknown").status == 200
        upstream.wait(lambda: upstream.received(REGISTER))
        assert counts(upstream) == []
    assert counts(upstream) == [{"third": {"yes": 1, "no": 0, "variants": {}}}]


def test_not_ready(upstream: FakeUpstream, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a configuration a mounted proxy says so, and the request that starts it waits only for a limited time."""
    monkeypatch.undo()
    upstream.replace(b"no document")
    with served(in_starlette(create_app(options(upstream)), lifespan=False)) as url:
        assert ask(f"{url}/flags/proxy", headers=KEY).status == 503
        assert ask(f"{url}/flags/proxy/live").status == 200
        upstream.replace(document("first"))
        wait_until(lambda: ask(f"{url}/flags/proxy", headers=KEY).status == 200)


class Shouting:
    """A strategy that is on for a word of its own."""

    name = "shouting"

    def __init__(self, word: str) -> None:
        self.word = word

    def is_enabled(self, parameters: object, context: Any) -> bool:
        """Return whether the caller says the word."""
        return bool(context.get("word") == self.word)


def test_two_in_one_process() -> None:
    """Two proxies with other upstreams, keys, strategies of one name and base paths answer each for itself."""
    shouting = {"name": "loud", "enabled": True, "strategies": [{"name": "shouting"}]}
    with fake_upstream({"features": [shouting]}) as one, fake_upstream({"features": [shouting]}) as other:
        first = create_app(options(one, client_keys="one", custom_strategies=[Shouting("hey")], enable_all_endpoint=True))
        second = create_app(options(other, client_keys="two", custom_strategies=[Shouting("ho")]))
        app = Starlette(routes=[Mount("/one", first), Mount("/two", second)])
        with served(app) as url:
            loud, quiet = ask_as("one", f"{url}/one/proxy?word=hey"), ask_as("two", f"{url}/two/proxy?word=hey")
            assert (names(loud), names(quiet)) == (["loud"], [])
            assert names(ask_as("two", f"{url}/two/proxy?word=ho")) == ["loud"]
            assert ask_as("one", f"{url}/two/proxy").status == 401
            assert ask_as("one", f"{url}/one/proxy/all").status == 200
            assert ask_as("two", f"{url}/two/proxy/all").status == 501
            assert ask_as("one", f"{url}/one/proxy", {"toggles": ["loud"]}).status == 200
        assert counts(one) == [{"loud": {"yes": 0, "no": 1, "variants": {}}}]
        assert counts(other) == []


def ask_as(key: str, url: str, body: object = None) -> Answer:
    """Ask with a client key."""
    return ask(url, method="GET" if body is None else "POST", headers={"Authorization": key}, body=body)


def test_by_hand(upstream: FakeUpstream) -> None:
    """`async with` runs it, `ready` waits, a call without a socket is answered, and metrics leave at the end of the block."""
    proxy = create_app(options(upstream))

    async def main() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(proxy), base_url="http://test") as client:
            async with proxy:
                await proxy.ready(20)
                answer = await client.get("/proxy", headers=KEY)
                assert [toggle["name"] for toggle in answer.json()["toggles"]] == ["first", "second"]
                only(proxy).counters.count("first", True)
            assert len(counts(upstream)) == 1
            late = await client.get("/proxy", headers=KEY)
            assert late.status_code == 200, "requests that come late are answered from memory"

    asyncio.run(main())
    assert counts(upstream) == [{"first": {"yes": 1, "no": 0, "variants": {}}}]


def test_another_loop(upstream: FakeUpstream) -> None:
    """In a new loop, as test clients make for each request, the proxy starts again with its configuration, and no count is lost."""
    app = in_starlette(create_app(options(upstream)), lifespan=False)
    for _ in range(3):
        assert in_a_loop_of_its_own(app, "POST", {"toggles": ["first"]}) == 200
    assert sum(count["first"]["yes"] for count in counts(upstream)) == 3
    upstream.replace(b"no document")
    assert in_a_loop_of_its_own(app, "GET", None) == 200, "what was served last is served in a new loop too"


def in_a_loop_of_its_own(app: Any, method: str, body: object) -> int:
    """Send one request the way a test client without a lifespan does; return the status."""

    async def main() -> int:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            return (await client.request(method, "/flags/proxy", headers=KEY, json=body)).status_code

    return asyncio.run(main())


def test_a_failed_start_leaves_nothing(upstream: FakeUpstream, monkeypatch: pytest.MonkeyPatch) -> None:
    """When a part cannot start, those that had started are stopped, and the next attempt works."""
    proxy = create_app(options(upstream))

    def broken() -> None:
        raise RuntimeError("no threads left")

    async def main() -> None:
        reporter = only(proxy).reporter
        assert reporter is not None
        with monkeypatch.context() as patch:
            patch.setattr(reporter, "start", broken)
            with pytest.raises(RuntimeError, match="no threads left"):
                await proxy.start()
        assert len(asyncio.all_tasks()) == 1
        await proxy.ready(20)
        await proxy.aclose()

    asyncio.run(main())


def test_the_example_in_a_process(upstream: FakeUpstream) -> None:
    """examples/mount_fastapi.py under uvicorn's own command: its flags arrive and its last metrics leave."""
    port = free_port()
    env = {"FLAGSVC_URL": upstream.url, "FLAGSVC_API_TOKEN": "t", "FLAGSVC_PROXY_CLIENT_KEYS": "some-client-key"}
    env |= {"PYTHONPATH": str(ROOT / "src"), "FLAGSVC_METRICS_INTERVAL": str(NEVER)}
    command = [sys.executable, "-m", "uvicorn", "--factory", "mount_fastapi:application", "--port", str(port)]
    with scratch() as folder:
        command += ["--app-dir", str(ROOT / "examples"), "--log-level", "error"]
        with running("mounted", command, env=env, folder=folder) as program:
            program.wait(lambda: answers(f"http://127.0.0.1:{port}/flags/proxy/health"), "ready")
            assert ask(f"http://127.0.0.1:{port}/").json() == {"flags": "/flags/proxy"}
            assert look_up(f"http://127.0.0.1:{port}/flags/proxy", "first").status == 200
            program.stop()
            assert "Traceback" not in program.output()
    assert counts(upstream) == [{"first": {"yes": 1, "no": 0, "variants": {}}}]


WITHOUT_LIFESPAN = """
import os, uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount
from flagsvc import ProxyOptions, create_app

given = ProxyOptions(flagsvc_url=os.environ["UPSTREAM"], flagsvc_api_token="t", client_keys="some-client-key", storage="none")
uvicorn.run(Starlette(routes=[Mount("/flags", create_app(given))]), port=int(os.environ["PORT"]), log_level="error")
"""


@pytest.mark.parametrize(("number", "posts"), [(signal.SIGINT, 1), (signal.SIGTERM, 0)])
def test_without_a_lifespan_in_a_process(upstream: FakeUpstream, number: int, posts: int) -> None:
    """Ctrl-C lets the loop end, so the last metrics leave. After SIGTERM uvicorn kills the process before the loop ends.

    The page docs/how-to/mount-in-an-application.md says so; should the second row ever fail, that page is better news.
    """
    port = free_port()
    env = {"UPSTREAM": upstream.url, "PORT": str(port), "PYTHONPATH": str(ROOT / "src")}
    with scratch() as folder, running("bare", [sys.executable, "-c", WITHOUT_LIFESPAN], env=env, folder=folder) as program:
        program.wait(lambda: answers(f"http://127.0.0.1:{port}/flags/proxy/health"), "ready")
        assert look_up(f"http://127.0.0.1:{port}/flags/proxy", "first").status == 200
        program.stop(number)
        assert "Traceback" not in program.output()
    assert len(counts(upstream)) == posts


async def test_any_asgi_server_runs_it(upstream: FakeUpstream) -> None:
    """Hypercorn starts it by its lifespan, serves it, and its last usage metrics leave when it stops."""
    config, stop = Config(), asyncio.Event()
    url = f"http://127.0.0.1:{(port := free_port())}/proxy"
    config.bind, config.errorlog = [f"127.0.0.1:{port}"], None
    server = asyncio.create_task(serve(create_app(options(upstream)), config, shutdown_trigger=stop.wait))  # type: ignore[arg-type]
    try:
        await until(lambda: upstream.requests or server.done())
        while not await asyncio.to_thread(answers, f"{url}/health"):
            assert not server.done()
        assert names(await asyncio.to_thread(ask, url, headers=KEY)) == ["first", "second"]
        assert (await asyncio.to_thread(look_up, url, "first")).status == 200
        assert counts(upstream) == []
    finally:
        stop.set()
        await server
    assert counts(upstream) == [{"first": {"yes": 1, "no": 0, "variants": {}}}]
