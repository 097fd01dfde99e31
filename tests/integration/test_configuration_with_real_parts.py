"""Upstream, poller, engine, storage and usage together: real sockets, real files, the real engine, the real clock."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from flagsvc.core.clock import SystemClock
from flagsvc.engine.compile import CompileOptions, Compiler
from flagsvc.engine.context import Context
from flagsvc.engine.parse import is_included
from flagsvc.proxy.configuration import Holder, Poller, Preparer
from flagsvc.proxy.configuration.sources import FileSource, HttpSource
from flagsvc.proxy.configuration.stores import DocumentStorage, FileStore
from flagsvc.proxy.upstream import Identity, Limits, Upstream, UpstreamSettings
from flagsvc.proxy.usage import Reporter, UsageCounters
from flagsvc.testing import RecordingLog
from support.aio import asynchronous, until
from support.loopback import Loopback, Request, loopback, reply, silence, then_close, then_reset

OPTIONS = CompileOptions(hostname="some-host")
SHORT, LONG = Limits(0.2, 0.2), Limits(10, 10)
"""For an upstream that is silent on purpose, and for one that a busy machine delays."""
FAULTS = [
    reply(401),
    reply(403),
    reply(404),
    reply(429, retry_after="0"),
    reply(500),
    reply(503),
    reply(200, b"<html>", content_type="text/html"),
    reply(200, b"[]"),
    reply(200, b"\x1f\x8b rubbish", content_encoding="gzip"),
    reply(302, location="http://elsewhere.invalid/"),
    then_close(reply(200, b'{"version":2', content_length="500")),
    then_close(b""),
    then_reset(),
    silence,
]


def document(*names: str) -> bytes:
    """Return a document of toggles that are on for everybody."""
    features = [{"name": name, "enabled": True, "strategies": [{"name": "default"}], "project": "p"} for name in names]
    return json.dumps({"version": 2, "features": features}).encode()


@dataclass
class Proxy:
    """A proxy without its front."""

    holder: Holder
    poller: Poller
    counters: UsageCounters
    reporter: Reporter

    @property
    def serves(self) -> list[str]:
        """The names of the toggles that are on."""
        current = self.holder.current
        body = b'{"toggles":[]}' if current is None else current.enabled(Context())
        return [toggle["name"] for toggle in json.loads(body)["toggles"]]


@asynccontextmanager
async def proxy(url: str, folder: Path, interval_ms: int = 20, limits: Limits = LONG) -> AsyncIterator[Proxy]:
    """Run everything against an upstream."""
    clock, log, holder = SystemClock(), RecordingLog(), Holder()
    identity = Identity("some-app", "some-instance")
    options = UpstreamSettings(url, "some-token", identity, interval_ms, interval_ms, limits=limits)
    upstream = Upstream(options, clock=clock, log=log)
    draw = Random(1).random
    document_storage = DocumentStorage(FileStore(folder), "0123", log)
    ports: dict[str, Any] = {"clock": clock, "log": log, "draw": draw}
    poller = Poller(
        HttpSource(upstream), holder, Preparer(Compiler(OPTIONS)), document_storage, **ports, refresh_ms=interval_ms
    )
    counters = UsageCounters(lambda: holder.current.names if holder.current else {}, clock.now)
    reporter = Reporter(
        counters, upstream, identity, **ports, interval_ms=interval_ms, synchronised=holder.wait_synchronised
    )
    poller.start()
    reporter.start()
    try:
        yield Proxy(holder, poller, counters, reporter)
    finally:
        await poller.stop()
        await reporter.stop()
        await upstream.aclose()


def posted(server: Loopback, path: str) -> list[Request]:
    """Return the posts to a path so far."""
    return [seen for seen in server.requests if (seen.method, seen.path) == ("POST", f"/api/client/{path}")]


@asynchronous
async def test_every_fault_of_an_upstream_is_survived(tmp_path: Path) -> None:
    """After each fault the old configuration is served, and the first good answer replaces it."""
    async with loopback() as server:
        server.script(reply(200, document("start")))
        async with proxy(f"{server.url}/api", tmp_path, 10, SHORT) as running:
            await running.holder.wait_ready()
            for number, fault in enumerate(FAULTS):
                before = running.serves
                seen = len(server.requests)
                server.script(fault)  # type: ignore[arg-type]
                await until(lambda: len(server.requests) > seen and running.holder.state in ("stale", "refused"))  # noqa: B023
                assert running.serves == before
                server.script(reply(200, document(f"after-{number}")))
                await until(lambda number=number: running.serves == [f"after-{number}"])  # type: ignore[misc]
                assert running.holder.state == "fresh"
            assert running.poller.restarts == running.reporter.restarts == 0


@asynchronous
async def test_a_restart_with_the_upstream_down_is_ready_from_storage(tmp_path: Path) -> None:
    """It has the former flags, but not with another folder."""
    async with loopback() as server:
        server.script(reply(200, document("kept"), etag='"e"'))
        url = f"{server.url}/api"
        async with proxy(url, tmp_path) as running:
            await running.holder.wait_synchronised()
    async with proxy(url, tmp_path) as running:
        await asyncio.wait_for(running.holder.wait_ready(), 5)
        assert (running.serves, running.holder.state) == (["kept"], "restored")
    async with proxy(url, tmp_path / "other") as running:
        await until(lambda: running.poller.is_running)
        assert not running.holder.is_ready


@asynchronous
async def test_registration_and_usage_reach_the_upstream_with_nothing_about_anybody(tmp_path: Path) -> None:
    """Names that are not toggles are in no sent byte (specification: What the service does, point 6)."""
    async with loopback() as server:
        server.script(reply(200, document("flag")), reply(200, document("flag")))
        async with proxy(f"{server.url}/api", tmp_path) as running:
            await until(lambda: posted(server, "register"))
            for name in ("flag", "flag", "someone@example.com", "10.1.2.3"):
                running.counters.count(name, name == "flag")
            await until(lambda: posted(server, "metrics"))
            running.counters.count("flag", False)
        registration = json.loads(posted(server, "register")[0].body)
        assert registration["appName"] == "some-app" and registration["interval"] == 20
        toggles = [json.loads(seen.body)["bucket"]["toggles"] for seen in posted(server, "metrics")]
        assert sum(each["flag"]["yes"] for each in toggles) == 2
        assert sum(each["flag"]["no"] for each in toggles) == 1
        assert {name for each in toggles for name in each} == {"flag"}
        sent = b"".join(repr(seen).encode() for seen in server.requests)
        assert b"someone" not in sent and b"10.1.2.3" not in sent
        assert running.counters.unknown == 2


@asynchronous
async def test_a_large_configuration_from_a_file_in_a_thread(tmp_path: Path) -> None:
    """The event loop runs while thousands of toggles are compiled. The filter also applies to SDKs."""
    path = tmp_path / "flags.json"
    path.write_bytes(document("other", *(f"flag-{number}" for number in range(3000))))
    clock, log, holder = SystemClock(), RecordingLog(), Holder()
    options = CompileOptions(project="p", name_prefix="flag")
    prepare = Preparer(Compiler(options), lambda feature: is_included(feature, "p", "flag"))
    source = FileSource(path, clock=clock, refresh_ms=50)
    document_storage = DocumentStorage(FileStore(tmp_path / "store"), "0123", log)
    poller = Poller(source, holder, prepare, document_storage, clock=clock, log=log, draw=lambda: 0.5, refresh_ms=50)
    poller.start()
    await holder.wait_ready()
    assert holder.current is not None and len(holder.current.names) == 3000
    assert holder.document is not None and len(json.loads(holder.document.body)["features"]) == 3000
    path.write_bytes(document("flag"))
    await until(lambda: holder.current is not None and list(holder.current.names) == ["flag"])
    await poller.stop()
    assert log.at("error") == []
