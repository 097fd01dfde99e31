"""The contract of every source of configuration documents."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from flagsvc.core.clock import SystemClock
from flagsvc.core.errors import UpstreamError
from flagsvc.proxy.configuration import Source
from flagsvc.proxy.configuration.sources import BootstrapSource, FileSource, HttpSource
from flagsvc.proxy.upstream import Identity, Upstream, UpstreamSettings
from flagsvc.testing import FakeSource, RecordingLog, RecordingUpstream
from support.loopback import Loopback, Request, loopback, reply
from support.polling import document

Put = Callable[[bytes | None], None]
"""Makes the source give a document from now on, or fail (None)."""


class Dates:
    """Gives each version of a file a date of its own, long ago."""

    def __init__(self, path: Path) -> None:
        self.path, self.when = path, 1_000_000_000

    def put(self, body: bytes | None) -> None:
        self.when += 1
        self.path.unlink(missing_ok=True)
        if body is not None:
            self.path.write_bytes(body)
            os.utime(self.path, (self.when, self.when))


def serve(server: Loopback) -> Put:
    """Return what makes a server answer as a flag server does, ETags included."""

    def put(body: bytes | None) -> None:
        async def behave(request: Request, _: object, writer: object) -> None:
            etag = f'"{hashlib.sha256(body or b"").hexdigest()}"'
            same = body is not None and request.headers.get("if-none-match") == etag
            answer = reply(500) if body is None else reply(304) if same else reply(200, body, etag=etag)
            writer.write(answer)  # type: ignore[attr-defined]

        server.script(behave)

    return put


@asynccontextmanager
async def http(_: Path) -> AsyncIterator[tuple[Source, Put]]:
    """The upstream over a socket."""
    async with loopback() as server:
        options = UpstreamSettings(f"{server.url}/api", "token", Identity("a", "i"))
        upstream = Upstream(options, clock=SystemClock(), log=RecordingLog())
        yield HttpSource(upstream), serve(server)
        await upstream.aclose()


@asynccontextmanager
async def recording(_: Path) -> AsyncIterator[tuple[Source, Put]]:
    """The public fakes."""
    source = FakeSource(b"")
    upstream = HttpSource(RecordingUpstream(source))
    yield upstream, lambda body: source.then([UpstreamError("server", "x") if body is None else body])


@asynccontextmanager
async def file(folder: Path) -> AsyncIterator[tuple[Source, Put]]:
    """A watched file."""
    path = folder / "flags.json"
    yield FileSource(path, clock=SystemClock(), refresh_ms=3_600_000), Dates(path).put


@asynccontextmanager
async def bootstrap_file(folder: Path) -> AsyncIterator[tuple[Source, Put]]:
    """Bootstrapping from a file."""
    path = folder / "flags.json"
    yield BootstrapSource(path.as_uri(), clock=SystemClock()), Dates(path).put


@asynccontextmanager
async def bootstrap_http(_: Path) -> AsyncIterator[tuple[Source, Put]]:
    """Bootstrapping over a socket."""
    async with loopback() as server:
        yield BootstrapSource(f"{server.url}/flags", authorization="some", clock=SystemClock()), serve(server)


Open = Callable[[Path], AbstractAsyncContextManager[tuple[Source, Put]]]
WITH_ETAGS: dict[str, Open] = {"http": http, "fake": recording, "file": file}
EVERY: dict[str, Open] = {**WITH_ETAGS, "bootstrap-file": bootstrap_file, "bootstrap-http": bootstrap_http}

every_source = pytest.mark.parametrize("source_of", EVERY.values(), ids=EVERY)
with_etags = pytest.mark.parametrize("source_of", WITH_ETAGS.values(), ids=WITH_ETAGS)


@every_source
async def test_the_document_comes_byte_for_byte(source_of: Open, tmp_path: Path) -> None:
    """The source gives the newest document, with any content."""
    async with source_of(tmp_path) as (source, put):
        for body in (document("one"), document("two", odd="ü\n\u0000"), b"not even JSON"):
            put(body)
            assert (await source.fetch(None)).body == body


@every_source
async def test_a_failure_is_an_upstream_error_and_passes(source_of: Open, tmp_path: Path) -> None:
    """A failure raises only UpstreamError, and the next fetch may succeed."""
    async with source_of(tmp_path) as (source, put):
        put(None)
        with pytest.raises(UpstreamError):
            await source.fetch(None)
        put(document("one"))
        assert (await source.fetch(None)).body == document("one")


@every_source
async def test_an_unknown_etag_gives_the_document(source_of: Open, tmp_path: Path) -> None:
    """The ETag may come from a configuration that was stored long ago."""
    async with source_of(tmp_path) as (source, put):
        put(document("one"))
        assert (await source.fetch('"unknown"')).body == document("one")


@with_etags
async def test_the_current_etag_gives_not_modified_and_an_old_one_the_document(source_of: Open, tmp_path: Path) -> None:
    """Not modified carries the ETag of the request; a return to an old document is a change too."""
    async with source_of(tmp_path) as (source, put):
        put(document("one"))
        one = await source.fetch(None)
        again = await source.fetch(one.etag)
        assert (again.body, again.etag) == (None, one.etag) and one.etag
        put(document("two"))
        two = await source.fetch(one.etag)
        assert two.body == document("two") and two.etag != one.etag
        put(document("one"))
        assert (await source.fetch(two.etag)).body == document("one")


async def test_a_bootstrap_address_that_is_none_is_an_upstream_error() -> None:
    """It is a warning like any other failure to bootstrap, and the start continues."""
    for url in ("ftp://x/flags", "file://other.example/x", "nonsense"):
        with pytest.raises(UpstreamError):
            await BootstrapSource(url, clock=SystemClock()).fetch(None)
