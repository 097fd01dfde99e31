"""Looks at options: each takes a scene and options, runs a proxy, and returns what is seen of it on some side."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import re
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from typing import Any

import httpx
import pytest
from option_ways import Observe

from flagsvc import ProxyOptions
from flagsvc.core.errors import FlagsvcError, ListenError
from flagsvc.process.process import UvicornServer
from flagsvc.process.reload import ConfigurationFiles, Reloader
from flagsvc.process.serve import serve
from flagsvc.process.serve_workers import ParentProcess
from flagsvc.proxy.generations.setup import make_setup
from flagsvc.settings.options import OPTIONS
from flagsvc.settings.places import Resolved
from flagsvc.testing import RecordingLog, turns
from support.aio import GIVEN_UP_S, fate, until
from support.loopback import reply, silence, tunnel
from support.processes import answers
from support.processes import ask as fetch
from support.scene import KEY, Proxy, Scene
from support.streams import STREAM_HEAD
from support.upstream_faults import then_silence

DAY_S = 86_400.0
AGES_S = 1000.0
"""Longer than anything in the proxy sleeps."""
Ask = tuple[str, str, Mapping[str, str], object]
"""Method, target, headers, body."""


def ask(target: str, headers: Mapping[str, str] | None = None, *, method: str = "GET", body: object = None) -> Ask:
    return method, target, headers or {}, body


# ---- towards callers


def read(part: Callable[[httpx.Response], object], *asks: Ask) -> Observe:
    """See a part of each answer."""

    async def look(scene: Scene, options: ProxyOptions) -> object:
        async with scene.proxy(options) as proxy:
            return [part(await proxy.ask(*each)) for each in asks]

    return look


def statuses(*asks: Ask) -> Observe:
    """See the status of each answer."""
    return read(lambda answer: answer.status_code, *asks)


def header(name: str, *asks: Ask) -> Observe:
    """See one header of each answer."""
    return read(lambda answer: answer.headers.get(name), *asks)


def names(target: str = "/proxy", headers: Mapping[str, str] | None = None) -> Observe:
    """See the names of the toggles in a list answer."""

    async def look(scene: Scene, options: ProxyOptions) -> object:
        async with scene.proxy(options) as proxy:
            return await proxy.names(target, headers)

    return look


def sample(name: str, *targets: str) -> Observe:
    """See a sample of the metrics after some requests."""

    async def look(scene: Scene, options: ProxyOptions) -> object:
        async with scene.proxy(options) as proxy:
            for each in targets:
                await proxy.ask("GET", each)
            return await proxy.sample(name)

    return look


# ---- towards the upstream


async def target(scene: Scene, options: ProxyOptions) -> object:
    """See the target of the first request to the upstream, which has no filters, and the names of the toggles that are on."""
    async with scene.proxy(options) as proxy:
        return scene.upstream.requests[0].target, await proxy.names()


def identity(field_name: str, header_name: str) -> Observe:
    """See under which name the proxy asks, registers and sends metrics, and which toggles are on for callers without one."""

    async def look(scene: Scene, options: ProxyOptions) -> object:
        async with scene.proxy(options) as proxy:
            await until(lambda: scene.received("register"))
            known = await proxy.names()
            await proxy.named("on")
        [registered], [sent] = scene.bodies("register"), scene.bodies("metrics")
        headers = {request.headers[header_name] for request in scene.upstream.requests}
        return headers, registered[field_name], sent[field_name], known

    return look


async def pace_of_polls(scene: Scene, options: ProxyOptions) -> object:
    """See how many seconds lie between the polls, as long as there are any."""
    pauses: list[float] = []
    async with scene.proxy(options):
        for _ in range(2 if scene.clock.sleeping else 0):
            [pause] = await scene.waits(1)
            await scene.clock.advance(pause / 2)
            assert len(scene.received("features")) == 1 + len(pauses)
            await scene.poll(pause / 2)
            pauses.append(pause)
    return scene.upstream.requests[0].headers["unleash-interval"], pauses


async def streams(scene: Scene, options: ProxyOptions) -> object:
    """See whether the upstream is asked for a stream that it offers, and whether the metrics tell that it is open."""
    scene.replies["streaming"] = then_silence(STREAM_HEAD)
    async with scene.proxy(options) as proxy:
        await scene.next_poll()
        await until(lambda: options.upstream_mode == "polling" or scene.received("streaming"))
        await until(lambda: options.upstream_mode == "polling" or has_opened(proxy))
        return len(scene.received("streaming")), await proxy.sample("flagsvc_upstream_streaming")


async def has_opened(proxy: Proxy) -> bool:
    """Return whether a stream of the upstream is open."""
    return await proxy.sample("flagsvc_upstream_streaming") == 1


async def level_of_no_stream(scene: Scene, options: ProxyOptions) -> object:
    """See at which level the log tells that the upstream offers no stream, if it does."""
    scene.replies["streaming"] = reply(404)
    async with scene.proxy(options) as proxy:
        await until(lambda: was_refused(proxy))
    return [line.split()[1] for line in scene.log if "polled without a stream" in line]


async def was_refused(proxy: Proxy) -> bool:
    """Return whether the upstream has told that it offers no stream."""
    return await proxy.sample('flagsvc_upstream_stream_ends_total{reason="not-offered"}') == 1


async def readiness(scene: Scene, options: ProxyOptions) -> object:
    """See whether a proxy that was ready still is, and still answers, when the upstream has been away for a day."""
    async with scene.proxy(options) as proxy:
        scene.replies["features"] = reply(503)
        ready = (await proxy.ask("GET", "/readyz")).status_code
        await scene.waits(2)
        await scene.clock.advance(DAY_S)
        stale = await proxy.ask("GET", "/readyz")
        return ready, stale.status_code, stale.text, (await proxy.ask("GET", "/proxy")).status_code


async def pause_asked_for(scene: Scene, options: ProxyOptions) -> object:
    """See for how many seconds an upstream is left alone that asks for an hour: tens of them, for the draw comes on top."""
    async with scene.proxy(options):
        scene.replies["features"] = reply(503, retry_after="3600")
        return await scene.next_poll() // 10 * 10


async def route_of_polls(scene: Scene, options: ProxyOptions) -> object:
    """See which server gets which request. The other one forwards https."""
    if options.flagsvc_url.startswith("https:"):
        scene.other.script(tunnel)
    async with scene.proxy(options):
        await until(
            lambda: [each for each in (*scene.other.requests, *scene.upstream.requests) if each.path.endswith("/streaming")]
        )
    asked = [request for request in scene.other.requests if request.path != "/api/client/register"]
    place = scene.upstream.url.partition("://")[2]
    return sorted({f"{request.method} {request.target}".replace(place, "UPSTREAM") for request in asked})


def first_attempt(reason: str = "") -> Observe:
    """See whether the first attempt to reach the upstream works; and if not, whether the log has the reason."""

    async def look(scene: Scene, options: ProxyOptions) -> object:
        async with scene.proxy(options, ready=False) as proxy:
            await scene.waits(2)
            status = (await proxy.ask("GET", "/proxy")).status_code
        return status, bool(reason) and any(reason in line for line in scene.log)

    return look


async def patience(scene: Scene, options: ProxyOptions) -> object:
    """See whether an upstream that says nothing is given up within GIVEN_UP_S."""
    scene.replies["features"] = silence
    async with scene.proxy(options, ready=False):
        with contextlib.suppress(TimeoutError):
            await until(lambda: any("limit" in line or "within" in line for line in scene.log), GIVEN_UP_S)
    return bool(scene.log)


async def bootstrap(scene: Scene, options: ProxyOptions) -> object:
    """See the answers while the upstream is away, and the bootstrap server's requests with their authorization."""
    scene.replies["features"] = reply(503)
    async with scene.proxy(options, ready=options.exp_bootstrap_url is not None) as proxy:
        await scene.waits(2)
        status = (await proxy.ask("GET", "/proxy")).status_code
    return status, [(seen.target, seen.headers.get("authorization")) for seen in scene.other.requests]


# ---- what survives, what is logged


async def survival(scene: Scene, options: ProxyOptions) -> object:
    """See the answers after a restart while the upstream is away, and the folders with files."""
    async with scene.proxy(options):
        pass
    scene.replies["features"] = reply(503)
    folders = {str(path.parent.relative_to(scene.folder)) for path in scene.folder.rglob("*.flags")}
    async with scene.proxy(options, ready=False) as proxy:
        await scene.waits(2)
        return (await proxy.ask("GET", "/proxy")).status_code, sorted(folders)


async def trouble(scene: Scene, options: ProxyOptions) -> None:
    """Let something of each level happen: a request, a new configuration, a malformed toggle, a token that is refused twice."""
    scene.served = {"version": 2, "features": [{"name": "on", "enabled": True, "strategies": []}, {"enabled": True}]}
    async with scene.proxy(options) as proxy:
        await proxy.ask("GET", "/proxy")
        for status in (401, 401, 500, 500):
            scene.replies["features"] = reply(status)
            await scene.waits(2)
            await scene.poll(AGES_S)
        await scene.waits(2)


async def levels(scene: Scene, options: ProxyOptions) -> object:
    """See the levels of the lines on standard error."""
    await trouble(scene, options)
    return {line.split()[1] for line in scene.log}


async def shape(scene: Scene, options: ProxyOptions) -> object:
    """See which fields the lines on standard error have that are JSON."""
    await trouble(scene, options)
    return {name for line in scene.log if line.startswith("{") for name in json.loads(line)} & {"time", "level"}


async def access(scene: Scene, options: ProxyOptions) -> object:
    """See the log lines of requests."""
    async with scene.proxy(options) as proxy:
        await proxy.ask("GET", "/proxy?userId=7")
        await proxy.ask("POST", "/proxy/client/nothing")
    words = [line.split()[1:] for line in scene.log]
    return [[word for word in line if not word.startswith(("bytes", "milliseconds"))] for line in words]


# ---- what only a listening server shows


@asynccontextmanager
async def listening(options: ProxyOptions, servers: list[UvicornServer] | None = None) -> AsyncIterator[str]:
    """Run `flagsvc proxy`'s own function in a thread, stopped like by a second signal. `servers` gets what it runs.

    Yields its line about the address. Raises the error with which it does not start.
    """
    printed, servers = StringIO(), [] if servers is None else servers
    failed: list[FlagsvcError] = []

    @contextmanager
    def stopped_otherwise(server: UvicornServer) -> Iterator[None]:
        servers.append(server)
        yield

    def run() -> None:
        try:
            serve(options)
        except FlagsvcError as error:
            failed.append(error)

    with redirect_stdout(printed), redirect_stderr(printed), pytest.MonkeyPatch.context() as patch:
        patch.setattr("flagsvc.process.process.handle_signals", stopped_otherwise)
        thread = threading.Thread(target=run)
        thread.start()
        try:
            await until(lambda: failed or "listening" in printed.getvalue(), 20)
            for error in failed:
                raise error
            yield next(line for line in printed.getvalue().splitlines() if "listening" in line)
        finally:
            for server in servers:
                server.should_exit = server.grace.is_cut_short = True
            await until(lambda: not thread.is_alive(), 20)
            thread.join()


async def port(scene: Scene, options: ProxyOptions) -> object:
    """See whether the port of the options is what answers; 3000 may be taken on this machine, which names it as well."""
    try:
        async with listening(options) as line:
            live = f"http://127.0.0.1:{options.port}/proxy/live"
            given = f":{options.port}/" in line and await asyncio.to_thread(answers, live)
    except ListenError as error:
        line, given = str(error), False
    return "3000" if re.search(r"\b3000\b", line) else "the one given" if given else line


async def addresses(scene: Scene, options: ProxyOptions) -> object:
    """See which of two addresses of this machine answer."""
    async with listening(options):
        return [can_connect(address, options.port) for address in ("127.0.0.1", "127.0.0.2")]


def can_connect(address: str, number: int) -> bool:
    """Return whether a socket listens there."""
    with contextlib.closing(socket.socket()) as client:
        return client.connect_ex((address, number)) == 0


async def idle_connection(scene: Scene, options: ProxyOptions) -> object:
    """See whether a connection that has been idle for GIVEN_UP_S is closed."""
    async with listening(options):
        reader, writer = await asyncio.open_connection("127.0.0.1", options.port)
        writer.write(f"GET /proxy/live HTTP/1.1\r\nHost: a\r\nAuthorization: {KEY}\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        try:
            return await fate(reader)
        finally:
            writer.close()


# ---- in code


class Notes:
    """A logger of structlog's shape that writes into a list."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def debug(self, event: str, **fields: Any) -> None:
        """Note nothing."""

    def info(self, event: str, **fields: Any) -> None:
        self.lines.append(("info", event))

    def warning(self, event: str, **fields: Any) -> None:
        self.lines.append(("warning", event))

    error = warning


async def where_it_is_logged(scene: Scene, options: ProxyOptions) -> object:
    """See where log lines go: the levels of our logger, and whether standard error has lines."""
    await trouble(scene, options)
    noted = {level for level, _ in options.logger.lines} if isinstance(options.logger, Notes) else set()
    await turns()
    return noted, bool(scene.log)


# ---- of a running process

PROBES = 40
PAUSE_S = 0.02
"""After so many probes with such pauses a process without a time of grace is surely gone, and one with the usual is not."""


async def answer_after_sigterm(scene: Scene, options: ProxyOptions) -> object:
    """See the answer to a new caller a while after SIGTERM."""
    servers: list[UvicornServer] = []
    async with listening(options, servers):
        while await probed(options.port) != "ready":
            await turns()
        servers[0].should_exit = True
        for _ in range(PROBES):
            if (got := await probed(options.port)) == "refused":
                break
            await asyncio.sleep(PAUSE_S)
        return got


async def probed(port: int) -> str:
    """Return the answer to a probe; `refused` if no connection is accepted."""
    try:
        answer = await asyncio.to_thread(fetch, f"http://127.0.0.1:{port}/readyz")
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


async def patience_with_workers(scene: Scene, options: ProxyOptions) -> object:
    """See for how many seconds a worker may be silent."""
    return ParentProcess(make_setup(options), [], None).worker_pool.heartbeat.timeout_s


async def processes_that_answer(scene: Scene, options: ProxyOptions) -> object:
    """See the number of processes in a scrape."""
    async with listening(options):
        url = f"http://127.0.0.1:{options.port}/proxy/internal-backstage/prometheus"
        while (answer := await asyncio.to_thread(fetch, url)).status != 200:
            await turns()  # nothing was fetched yet
    [value] = re.findall(r"^flagsvc_workers (.+)$", answer.text, re.MULTILINE)
    return float(value)


def upstream_headers(*names: str) -> Observe:
    """See the values of headers in every request to the upstream."""

    async def look(scene: Scene, options: ProxyOptions) -> object:
        async with scene.proxy(options) as proxy:
            await until(lambda: scene.received("register") and scene.received("streaming"))
            await proxy.named("on")
        assert len(scene.upstream.requests) == 4
        return {tuple(request.headers.get(name) for name in names) for request in scene.upstream.requests}

    return look
