"""Observations of options of a running process: reloading and shutdown."""

from __future__ import annotations

import asyncio
import http.client

from flagsvc import ProxyOptions
from flagsvc.process.process import UvicornServer
from flagsvc.process.reload import ConfigurationFiles, Reloader
from flagsvc.process.serve_workers import ParentProcess
from flagsvc.proxy.generations.setup import make_setup
from flagsvc.settings.options import OPTIONS
from flagsvc.settings.places import Resolved
from flagsvc.testing import RecordingLog, turns
from support.aio import until
from support.option_observations import listening
from support.option_ways import Observe
from support.processes import ask
from support.scene import Scene

PROBES = 40
PAUSE_S = 0.02
"""After so many probes with such pauses a process without a time of grace is surely gone, and one with the usual is not."""


async def answer_after_sigterm(scene: Scene, options: ProxyOptions) -> object:
    """Observe the answer to a new caller a while after SIGTERM."""
    servers: list[UvicornServer] = []
    async with listening(options, servers) as line:
        assert "listening" in line
        while await readiness(options.port) != "ready":
            await turns()
        servers[0].should_exit = True
        for _ in range(PROBES):
            if (got := await readiness(options.port)) == "refused":
                break
            await asyncio.sleep(PAUSE_S)
        return got


async def readiness(port: int) -> str:
    """Return the answer to a probe; `refused` if no connection is accepted."""
    try:
        answer = await asyncio.to_thread(ask, f"http://127.0.0.1:{port}/readyz")
    except (OSError, http.client.HTTPException):
        return "refused"
    return answer.body.decode()


def reading(scene: Scene, options: ProxyOptions, keys: tuple[str, ...], taken: list[ProxyOptions]) -> Reloader:
    """Return what reads the configuration again, and finds other client keys in it; `taken` gets the options to go on with."""
    values = {row.name: getattr(options, row.field) for row in OPTIONS} | {"clientKeys": keys}

    async def take(fresh: ProxyOptions) -> None:
        taken.append(fresh)

    again = ConfigurationFiles(lambda: Resolved(values, {}, {}, [], {}), {str(scene.folder / "keys"): b""})
    return Reloader(options, again, take, clock=scene.clock, log=RecordingLog(), draw=lambda: 0.5)


async def looks(scene: Scene, options: ProxyOptions) -> object:
    """See how many seconds lie between two looks at the files."""
    async with reading(scene, options, (), []):
        await turns()
        return scene.clock.sleeping


async def overlap(scene: Scene, options: ProxyOptions) -> object:
    """See which keys open when others took their place, and which half a minute later."""
    taken: list[ProxyOptions] = []
    async with reading(scene, options, ("new-key",), taken) as reload:
        reload.request_reload()
        await until(lambda: taken)
        await until(lambda: options.key_overlap in scene.clock.sleeping)
        await scene.clock.advance(30)
        return [each.client_keys for each in taken]


async def silence(scene: Scene, options: ProxyOptions) -> object:
    """See for how many seconds a worker may be silent."""
    return ParentProcess(make_setup(options), [], None).worker_pool.heartbeat.timeout_s


async def processes_that_answer(scene: Scene, options: ProxyOptions) -> object:
    """Observe the number of processes in a scrape."""
    async with listening(options) as line:
        assert "listening" in line
        url = f"http://127.0.0.1:{options.port}/proxy/internal-backstage/prometheus"
        while (answer := await asyncio.to_thread(ask, url)).status != 200:
            await turns()  # nothing was fetched yet
    [value] = [row.split()[1] for row in answer.body.decode().splitlines() if row.startswith("flagsvc_workers ")]
    return float(value)


def upstream_headers(*names: str) -> Observe:
    """See the values of headers in every request to the upstream."""

    async def look(scene: Scene, options: ProxyOptions) -> object:
        async with scene.proxy(options) as proxy:
            await until(lambda: scene.received("register"))
            await proxy.named("on")
        return {tuple(request.headers.get(name) for name in names) for request in scene.upstream.requests}

    return look
