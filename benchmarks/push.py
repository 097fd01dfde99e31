"""How fast a change travels by event streams, and what open streams cost: our two programs as processes on this machine.

`python benchmarks/push.py [--parts hops,pages,tree,streams,stop,idle,bulk] [--flags 1000] [--changes 100] [--streams 10000]` prints
a table for each part. Times begin when the request that changes a flag is sent, so they contain the commit. A caller is a plain
connection in this process.
"""

from __future__ import annotations

import argparse
import asyncio
import bisect
import json
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import uvloop

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / name) for name in ("src", "tests", "benchmarks")]

from flag_server import feature, parts  # noqa: E402
from harness import load, prepared, procs, servers  # noqa: E402
from support.flagservers import BACKEND_SECRET, USER_SECRET, OurFlagServer, our_flag_server  # noqa: E402
from support.processes import KEY, ask, our_proxy  # noqa: E402

BODY_LIMIT = 64_000_000
ENVIRONMENT = "development"
TOKEN = "server-side-token-of-the-benchmark"
QUIET = {"LOG_LEVEL": "error", "FLAGSVC_OFREP": "true", "FLAGSVC_MAX_STREAMS_PER_NETWORK": "1000000"}
CONTEXT = b'{"context":{"targetingKey":"7"}}'
FANOUT = (1, 4, 15)
"""The proxies of each level of the tree."""
SECONDS = 60.0
PAUSE_S = 0.25
"""Seconds between two changes. Of changes that follow each other faster than ten a second, a proxy fetches some together."""


def share(values: Sequence[float], part: float) -> float:
    """Return the value that so great a part of the values is not above."""
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def in_ms(name: str, values: Sequence[float]) -> str:
    found = (statistics.median(values), share(values, 0.99), max(values))
    return f"| {name} | {len(values)} | " + " | ".join(f"{each * 1000:.1f}" for each in found) + " |"


HEADER = "| What | times | p50 ms | p99 ms | longest ms |\n|---|---|---|---|---|"


class Listener(asyncio.Protocol):
    """A caller with an open stream. `heard` is called with each version, `gone` when the stream ends."""

    def __init__(self, request: bytes, heard: Callable[[bytes], object], gone: Callable[[], object] = lambda: None) -> None:
        self.request = request
        self.heard = heard
        self.gone = gone
        self.status = b""
        self.opened = asyncio.get_running_loop().create_future()
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        if not self.status:
            self.status = data.split(b" ", 2)[1]
        if b"retry: " in data and not self.opened.done():
            self.opened.set_result(None)
        if b"\ndata: " in data:
            self.heard(data)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.opened.done():
            self.opened.set_exception(ConnectionError(f"no stream: {self.status!r} {error!r}"))
            self.opened.exception()
        self.gone()

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()


def request(method: str, path: str, key: str = KEY, body: bytes = b"", **headers: str) -> bytes:
    lines = [
        f"{method} {path} HTTP/1.1",
        "host: x",
        f"authorization: {key}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    if body:
        lines += ["content-type: application/json", f"content-length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def listen(port: int, heard: Callable[[bytes], object], gone: Callable[[], object] = lambda: None) -> Listener:
    """Return a caller whose stream is open. Raises ConnectionError if it is refused."""
    loop = asyncio.get_running_loop()
    _, made = await loop.create_connection(lambda: Listener(request("GET", "/proxy/stream"), heard, gone), "127.0.0.1", port)
    await made.opened
    return made


class Caller:
    """A kept connection that asks one thing after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.tag = ""

    @classmethod
    async def dial(cls, port: int) -> Caller:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def ask(self, asked: bytes) -> tuple[int, bytes]:
        """Return status and body of an answer."""
        self.writer.write(asked)
        head = await self.reader.readuntil(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
        if b"etag" in fields:
            self.tag = fields[b"etag"].decode()
        body = await self.reader.readexactly(int(fields.get(b"content-length", 0)))
        return int(head.split(b" ", 2)[1]), body


@contextmanager
def flag_server(flags: int) -> Iterator[OurFlagServer]:
    """Run a flag server with so many flags."""
    limits = ("--body-limit", str(BODY_LIMIT))
    with our_flag_server(*limits, FLAGSVC_LOG_LEVEL="error", FLAGSVC_MAX_STREAMS_PER_NETWORK="1000000") as server:
        for body in parts(flags, BODY_LIMIT):
            headers = {"Authorization": USER_SECRET, "Content-Type": "application/json"}
            answer = ask(f"{server.url}/admin/features-batch/import", method="POST", headers=headers, body=body, seconds=600)
            assert answer.status == 200, answer.body
        yield server


def proxy(upstream: str, token: str = BACKEND_SECRET, **env: str) -> Any:
    """Return what runs a proxy on an upstream, which other proxies may follow."""
    return our_proxy(
        upstream, **QUIET, FLAGSVC_API_TOKEN=token, EXP_SERVER_SIDE_SDK_CONFIG_TOKENS=TOKEN, UNLEASH_API_TOKEN=token, **env
    )


class Changer:
    """Changes a flag again and again over the admin API."""

    def __init__(self, server: OurFlagServer) -> None:
        self.path = f"/api/admin/projects/default/features/{feature(0)}/environments/{ENVIRONMENT}/"
        self.port = int(server.url.split(":")[2].split("/")[0])
        self.is_on = True
        self.caller: Caller | None = None

    async def change(self) -> float:
        """Switch the flag, and return when the request was sent."""
        if self.caller is None:
            self.caller = await Caller.dial(self.port)
        self.is_on = not self.is_on
        begun = time.perf_counter()
        status, body = await self.caller.ask(request("POST", self.path + ("on" if self.is_on else "off"), USER_SECRET))
        assert status == 200, body
        return begun


def has(found: Sequence[object], wanted: int) -> bool:
    return len(found) >= wanted


async def wait(done: Callable[[], bool], seconds: float = SECONDS) -> None:
    """Wait until something is so. Raises TimeoutError."""
    end = time.perf_counter() + seconds
    while not done():
        if time.perf_counter() > end:
            raise TimeoutError
        await asyncio.sleep(0.001)


async def follow(changer: Changer, ports: Iterable[int], changes: int) -> tuple[list[float], list[float]]:
    """Return for each change and port the seconds until the stream there says so, and until the last of them does."""
    loop_times: list[float] = []
    last: list[float] = []
    moments: dict[int, float] = {}

    def hear(number: int, _: bytes) -> None:
        moments.setdefault(number, time.perf_counter())

    listeners = [await listen(port, partial(hear, number)) for number, port in enumerate(ports)]
    for _ in range(changes):
        moments.clear()
        begun = await changer.change()
        await wait(lambda: len(moments) == len(listeners))
        loop_times += [moment - begun for moment in moments.values()]
        last.append(max(moments.values()) - begun)
        await asyncio.sleep(PAUSE_S)
    for each in listeners:
        each.close()
    return loop_times, last


async def hops(server: OurFlagServer, changes: int) -> None:
    """A change at the flag server, until a proxy serves it: its stream says so, and the next answer has it."""
    with proxy(server.url) as first:
        served: list[float] = []
        changer, caller, news = Changer(server), await Caller.dial(first.port), asyncio.Event()
        listener = await listen(first.port, lambda _: news.set())
        asked = request("GET", "/proxy/all?userId=7&region=eu")
        for _ in range(changes):
            news.clear()
            begun = await changer.change()
            await asyncio.wait_for(news.wait(), SECONDS)
            _, body = await caller.ask(asked)
            served.append(time.perf_counter() - begun)
            state = next(each["enabled"] for each in json.loads(body)["toggles"] if each["name"] == feature(0))
            assert state == changer.is_on, "the answer after the hint has the change"
            await asyncio.sleep(PAUSE_S)
        listener.close()
        print(in_ms("change at the flag server → a proxy serves it", served))


async def pages(server: OurFlagServer, changes: int, callers: int = 100) -> None:
    """A change, until each of many pages at one proxy has the new answer of OpenFeature's protocol."""
    with proxy(server.url) as first:
        shown: list[float] = []
        changer, begun = Changer(server), 0.0
        waiting: set[asyncio.Task[None]] = set()

        async def refetch(caller: Caller) -> None:
            status, _ = await caller.ask(
                request("POST", "/ofrep/v1/evaluate/flags", body=CONTEXT, **({"if-none-match": caller.tag} if caller.tag else {}))
            )
            assert status in (200, 304), status
            shown.append(time.perf_counter() - begun)

        def hear(caller: Caller, _: bytes) -> None:
            task = asyncio.ensure_future(refetch(caller))
            waiting.add(task)
            task.add_done_callback(waiting.discard)

        every = [await Caller.dial(first.port) for _ in range(callers)]
        listeners = [await listen(first.port, partial(hear, caller)) for caller in every]
        for number in range(changes):
            begun = await changer.change()
            wanted = (number + 1) * callers
            await wait(partial(has, shown, wanted))
            await asyncio.sleep(PAUSE_S)
        for each in listeners:
            each.close()
        print(in_ms(f"change at the flag server → each of {callers} pages at one proxy has the answer", shown))


async def tree(server: OurFlagServer, changes: int) -> None:
    """A change, until the streams of every proxy of a tree say so."""
    with ExitStack() as made:
        levels = [[server.url]]
        ports: list[list[int]] = []
        for count in FANOUT:
            token = BACKEND_SECRET if len(levels) == 1 else TOKEN
            proxies = [made.enter_context(proxy(levels[-1][at % len(levels[-1])], token)) for at in range(count)]
            levels.append([f"http://127.0.0.1:{each.port}/api" for each in proxies])
            ports.append([each.port for each in proxies])
        changer = Changer(server)
        for depth, level in enumerate(ports, 1):
            every, last = await follow(changer, level, max(1, changes // 2))
            print(in_ms(f"level {depth} of the tree, {len(level)} proxies, each", every))
            print(in_ms(f"level {depth}, the last of them", last))


class Crowd:
    """Many callers with open streams at one proxy, who come back when their stream ends."""

    def __init__(self, port: int, size: int) -> None:
        self.port, self.size = port, size
        self.moments: list[float] = []
        self.opened: list[float] = []
        self.ended: list[float] = []
        self.listeners: set[Listener] = set()
        self.comes_back = False
        self.tasks: set[asyncio.Task[None]] = set()
        self.places = asyncio.Semaphore(200)

    async def come(self, delay: float = 0.0) -> None:
        """Open a stream, again and again until there is one."""
        await asyncio.sleep(delay)
        while True:
            try:
                async with self.places:
                    found = await listen(self.port, lambda _: self.moments.append(time.perf_counter()), self.leave)
            except OSError:
                if not self.comes_back:
                    raise
                await asyncio.sleep(1.0)
            else:
                self.opened.append(time.perf_counter())
                self.listeners.add(found)
                return

    def leave(self) -> None:
        """Note the end of a stream, and come back as a browser does: after the time that the stream has said."""
        self.ended.append(time.perf_counter())
        if self.comes_back:
            task = asyncio.ensure_future(self.come(1.0 + 4.0 * ((len(self.ended) * 0.618) % 1.0)))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def gather(self) -> None:
        for start in range(0, self.size, 500):
            await asyncio.gather(*(self.come() for _ in range(min(500, self.size - start))))


async def poll(port: int, seconds: float, rate: float) -> list[float]:
    """Return the seconds of each answer of `GET /proxy` at so many a second."""
    took: list[float] = []
    caller = await Caller.dial(port)
    end = time.perf_counter() + seconds
    while (now := time.perf_counter()) < end:
        status, _ = await caller.ask(request("GET", f"/proxy?userId={len(took) % 50}"))
        assert status == 200, status
        took.append(time.perf_counter() - now)
        await asyncio.sleep(1 / rate)
    return took


async def streams(server: OurFlagServer, size: int) -> None:
    """Many streams at one worker: their memory, how a change reaches them, and the requests after it."""
    with proxy(server.url, FLAGSVC_MAX_STREAMS=str(2 * size)) as first:
        pid = first.program.process.pid
        await poll(first.port, 2.0, 200)
        alone, before = await poll(first.port, 5.0, 200), procs.memory(pid).rss
        crowd = Crowd(first.port, size)
        await crowd.gather()
        kilobytes = (procs.memory(pid).rss - before) * 1024 / size
        beside = await poll(first.port, 16.0, 200)
        print(f"| {size} open streams: memory of each | | {kilobytes:.1f} kB | | |")
        print(in_ms("GET /proxy without streams", alone))
        print(in_ms(f"GET /proxy beside {size} silent streams", beside))
        changer = Changer(server)
        for _ in range(3):
            crowd.moments.clear()
            polling = asyncio.ensure_future(poll(first.port, 3.0, 200))
            begun = await changer.change()
            await wait(lambda: len(crowd.moments) >= size)
            print(in_ms(f"change → each of {size} callers hears of it", [each - begun for each in crowd.moments]))
            print(in_ms("GET /proxy meanwhile", await polling))
        await refetches(changer, first.port, size)
        for each in list(crowd.listeners):
            each.close()


async def refetches(changer: Changer, port: int, size: int, connections: int = 100) -> None:
    """So many users ask again, each with the entity tag of its own answer: after a change of the configuration, and without one."""
    every = [await Caller.dial(port) for _ in range(connections)]
    tags: dict[int, str] = {}

    async def go(caller: Caller, users: range, statuses: dict[int, int]) -> None:
        for user in users:
            body = b'{"context":{"targetingKey":"%d"}}' % user
            known = {"if-none-match": tags[user]} if user in tags else {}
            status, _ = await caller.ask(request("POST", "/ofrep/v1/evaluate/flags", body=body, **known))
            statuses[status] = statuses.get(status, 0) + 1
            tags[user] = caller.tag

    for what in ("", "after a change", "without a change"):
        if what == "after a change":
            await changer.change()
            await asyncio.sleep(1.0)
        statuses: dict[int, int] = {}
        begun = time.perf_counter()
        await asyncio.gather(*(go(caller, range(at, size, connections), statuses) for at, caller in enumerate(every)))
        if what:
            took = time.perf_counter() - begun
            print(f"| {size} users ask again {what}, as fast as it goes | {statuses} | {took:.2f} s | | |")


async def stop(server: OurFlagServer, size: int) -> None:
    """SIGTERM with many streams, and another process at the same port."""
    first = proxy(server.url, FLAGSVC_MAX_STREAMS=str(2 * size))
    running = first.__enter__()
    crowd = Crowd(running.port, size)
    await crowd.gather()
    crowd.comes_back = True
    crowd.opened.clear()
    begun = time.perf_counter()
    running.program.process.send_signal(signal.SIGTERM)
    await asyncio.to_thread(running.program.process.wait, 60)
    over = time.perf_counter()
    with proxy(server.url, PORT=str(running.port), FLAGSVC_MAX_STREAMS=str(2 * size)):
        back = time.perf_counter()
        await wait(lambda: len(crowd.opened) >= size)
        ended = [each - begun for each in crowd.ended[:size]]
        print(in_ms(f"SIGTERM → the end of each of {size} streams", ended))
        print(in_ms("the next process is ready → each caller is back", [max(0.0, each - back) for each in crowd.opened[:size]]))
        print(f"| the process ended after | | {over - begun:.1f} s | | |")
        crowd.comes_back = False
        for each in list(crowd.listeners):
            each.close()
    first.__exit__(None, None, None)


async def idle(server: OurFlagServer, size: int, seconds: float = 60.0) -> None:
    """What a proxy uses while nothing changes: by polls, by stream, and with open streams of callers."""
    for name, mode, callers in (("polls every 5 s", "polling", 0), ("follows by stream", "streaming", 0), ("", "streaming", size)):
        with proxy(server.url, FLAGSVC_UPSTREAM_MODE=mode) as first:
            crowd = Crowd(first.port, callers)
            await crowd.gather()
            await asyncio.sleep(3.0)
            before = procs.cpu_seconds(first.program.process.pid)
            await asyncio.sleep(seconds)
            used = procs.cpu_seconds(first.program.process.pid) - before
            what = name or f"follows by stream, with {callers} open streams"
            print(f"| a proxy that {what}: CPU of an hour | | {used * 3600 / seconds:.2f} s | | |")
            for each in list(crowd.listeners):
                each.close()


def ask_frontend(routes: prepared.Routes, headers: prepared.Headers, at: int, names: list[str]) -> prepared.Request:
    """Ask for every flag at the frontend API, with the context in a body, too."""
    body = prepared.compact({"context": prepared.wire_context(at)})
    return prepared.EVALUATION, prepared.raw("POST", "/api/frontend/all", headers, body)


def ask_ofrep(routes: prepared.Routes, headers: prepared.Headers, at: int, names: list[str]) -> prepared.Request:
    """Ask for every flag by OpenFeature's protocol."""
    context = prepared.wire_context(at)
    fields = context.pop("properties") | context
    fields["targetingKey"] = fields.pop("userId")
    body = prepared.compact({"context": fields})
    return prepared.EVALUATION, prepared.raw("POST", "/ofrep/v1/evaluate/flags", headers, body)


BULK = (prepared.Form("frontend API", ask_frontend), prepared.Form("OFREP", ask_ofrep))
"""Two ways to ask for every flag, for another user each time."""


def cost(server: servers.Server, binary: Path, form: prepared.Form) -> tuple[float, float]:
    """Return the bytes of an answer and the processor time of a request, in microseconds."""
    with tempfile.NamedTemporaryFile() as file:
        requests = prepared.write(Path(file.name), form, servers.FRONTEND, prepared.IDENTITY, 20_000, [])
        result = load.run_load(binary, server.port, server.pid, requests, load.Plan(seconds=1.0), frozenset({200}))
    return result.bytes / result.requests, result.cpu_us


def at_size(size: float, sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Return what an answer of this size costs, between the two measured sizes around it."""
    after = min(max(bisect.bisect(sizes, size), 1), len(sizes) - 1)
    slope = (costs[after] - costs[after - 1]) / (sizes[after] - sizes[after - 1])
    return costs[after - 1] + slope * (size - sizes[after - 1])


def bulk(sizes: Sequence[int] = (10, 100, 350, 1000, 2000), rounds: int = 10) -> None:
    """What an answer with every flag costs by OpenFeature's protocol, beside an answer of as many bytes at the frontend API."""
    binary = load.build()
    if isinstance(binary, str):
        raise SystemExit(binary)
    found: dict[int, list[tuple[float, float]]] = {}
    with servers.upstream() as upstream:
        for flags in sizes:
            with servers.ours(FLAGSVC_OFREP="true")(f"{upstream}/{flags}") as server:
                taken = [[cost(server, binary, form) for form in BULK] for _ in range(rounds)]
            found[flags] = [
                (statistics.median(each[0] for each in way), statistics.median(each[1] for each in way))
                for way in zip(*taken, strict=True)
            ]
    frontend = [found[flags][0] for flags in sizes]
    for flags in sizes[:-1]:
        (here, here_us), (size, spent_us) = found[flags]
        same = at_size(size, [each[0] for each in frontend], [each[1] for each in frontend])
        texts = (f"frontend API, {here:.0f} bytes | {here_us:.1f} µs", f"OFREP, {size:.0f} bytes | {spent_us:.1f} µs")
        print(f"| {flags} flags: {' | '.join(texts)} | {spent_us / same:.2f} |")


async def main(options: argparse.Namespace) -> None:
    print(HEADER)
    wanted = options.parts.split(",")
    with flag_server(options.flags) as server:
        every: dict[str, Callable[[], Awaitable[None]]] = {
            "hops": partial(hops, server, options.changes),
            "pages": partial(pages, server, max(1, options.changes // 5)),
            "tree": partial(tree, server, options.changes),
            "streams": partial(streams, server, options.streams),
            "stop": partial(stop, server, options.streams),
            "idle": partial(idle, server, 1000),
            "bulk": partial(asyncio.to_thread, bulk),
        }
        for name in wanted:
            await every[name]()


if __name__ == "__main__":
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--parts", default="hops,pages,tree,streams,stop,idle,bulk")
    given.add_argument("--flags", type=int, default=1000)
    given.add_argument("--changes", type=int, default=100)
    given.add_argument("--streams", type=int, default=10_000)
    uvloop.run(main(given.parse_args()))
