"""Documents from a file, the features endpoint as a source after a change of its token, `file:` URLs, and places to store at."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from flagsvc.core.errors import ConfigurationError, UpstreamError
from flagsvc.proxy.configuration import file_path, is_file_url
from flagsvc.proxy.configuration.sources import FileSource, HttpSource, signature
from flagsvc.proxy.configuration.stores import FileStore, NoStore, storage_at
from flagsvc.proxy.upstream import Fetched
from flagsvc.testing import FakeClock, FakeSource, RecordingUpstream, turns
from support.aio import until
from support.polling import DOWN, ONE, TWO, document, running

LONG_AGO = 1_000_000_000


def write(path: Path, body: bytes, when: float = LONG_AGO) -> None:
    path.write_bytes(body)
    os.utime(path, (when, when))


async def test_an_unchanged_file_is_not_read_again(tmp_path: Path) -> None:
    """Date, size and identity tell; a change of any of them is seen."""
    path, source = tmp_path / "flags.json", FileSource(tmp_path / "flags.json", clock=FakeClock(), refresh_ms=5000)
    write(path, b"one")
    first = await source.fetch(None)
    assert first.body == b"one" and first.etag
    assert (await source.fetch(first.etag)).body is None
    for body, when in ((b"two", LONG_AGO + 1), (b"three", LONG_AGO + 1)):
        write(path, body, when)
        assert (await source.fetch(first.etag)).body == body
    write(tmp_path / "other", b"fours", LONG_AGO + 1)
    (tmp_path / "other").replace(path)
    assert (await source.fetch(first.etag)).body == b"fours"


async def test_a_file_is_read_again_at_every_refresh_interval(tmp_path: Path) -> None:
    """Some file systems do not tell by the date that something changed."""
    clock, path = FakeClock(), tmp_path / "flags.json"
    write(path, b"one")
    watched, settled = (FileSource(path, clock=clock, refresh_ms=interval) for interval in (5000, 0))
    first = await watched.fetch(None)
    assert first == await settled.fetch(None)
    stat = path.stat()
    path.write_bytes(b"two")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert (await watched.fetch(first.etag)).body is None
    await clock.advance(5)
    assert (await watched.fetch(first.etag)).body == b"two"
    assert (await settled.fetch(first.etag)).body is None


async def test_a_very_young_file_has_no_etag(tmp_path: Path) -> None:
    """It may change again within the same tick of the file system's clock."""
    path = tmp_path / "flags.json"
    write(path, b"one")
    source = FileSource(path, clock=FakeClock(now=path.stat().st_mtime + 0.5), refresh_ms=60_000)
    assert (await source.fetch(None)).etag is None
    write(path, b"one", LONG_AGO - 60)
    assert (await source.fetch(None)).etag == signature(path.stat())


async def test_a_file_that_cannot_be_read_is_an_upstream_error(tmp_path: Path) -> None:
    """The message names the path: of a missing file, of a folder, and of a device that never ends, which is read to a bound."""
    for path, kind in ((tmp_path / "missing", "not-found"), (tmp_path, "unexpected")):
        with pytest.raises(UpstreamError, match=str(path)) as caught:
            await FileSource(path, clock=FakeClock(), refresh_ms=0).fetch(None)
        assert caught.value.kind == kind
    with pytest.raises(UpstreamError, match="`/dev/zero` cannot be read: it has more than 268435456 bytes"):
        await FileSource(Path("/dev/zero"), clock=FakeClock(), refresh_ms=5000).fetch(None)


async def test_a_file_that_changes_while_it_is_read_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of one and half of the other might happen to be JSON."""
    path = tmp_path / "flags.json"
    write(path, b"one")
    real, calls = os.fstat, []

    def fstat(descriptor: int) -> os.stat_result:
        calls.append(descriptor)
        if len(calls) == 2:
            write(path, b"three")
        return real(descriptor)

    monkeypatch.setattr("flagsvc.proxy.configuration.sources.os.fstat", fstat)
    with pytest.raises(UpstreamError, match="changed while it was read") as caught:
        await FileSource(path, clock=FakeClock(), refresh_ms=0).fetch(None)
    assert caught.value.kind == "document"


async def test_a_change_of_the_file_is_served(tmp_path: Path) -> None:
    """Within the watching pace, a half-written file in between changes nothing (behaviour: Further options)."""
    path, clock = tmp_path / "flags.json", FakeClock()
    write(path, ONE)
    source, served = FileSource(path, clock=clock, refresh_ms=60_000), []
    async with running(source=source, clock=clock, refresh_ms=60_000) as world:
        for at, body in enumerate((ONE, TWO[:-5], TWO, document("three"))):
            write(path, body, LONG_AGO + at)
            await world.round()
            await until(lambda: clock.sleeping)
            served.append(world.serves)
    assert served == [["one"], ["one"], ["two"], ["three"]]
    assert world.log.at("warn") == ["the configuration could not be fetched", "the configuration is fetched again"]


async def test_a_change() -> None:
    """It is news at once, also to who asks later; until an answer is there no ETag is sent, which may be another document's."""
    api = FakeSource(DOWN, Fetched(b"{}", '"one"'))
    source = HttpSource(RecordingUpstream(api))
    news = asyncio.ensure_future(source.news())
    await turns()
    source.renew()
    await news
    await source.news()
    with pytest.raises(UpstreamError):
        await source.fetch('"one"')
    for _ in range(2):
        await source.fetch('"one"')
    assert api.etags == [None, None, '"one"']
    late = asyncio.ensure_future(source.news())
    await turns()
    assert not late.done(), "the fetch has brought it"
    late.cancel()


async def test_a_change_while_it_is_asked() -> None:
    """An answer to the replaced token says nothing about the present token."""
    api = FakeSource(Fetched(b"{}", '"one"'))
    source = HttpSource(RecordingUpstream(api))
    api.gate = asyncio.Event()
    fetching = asyncio.ensure_future(source.fetch('"one"'))
    await turns()
    source.renew()
    api.gate.set()
    await fetching
    await source.news()
    await source.fetch('"one"')
    assert api.etags == ['"one"', None]


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("file:///etc/flags.json", "/etc/flags.json"),
        ("FILE:///etc/flags.json", "/etc/flags.json"),
        ("file://localhost/etc/flags.json", "/etc/flags.json"),
        ("file:/etc/flags.json", "/etc/flags.json"),
        ("file:flags.json", "flags.json"),
        ("file:///a%20b/%C3%BC", "/a b/ü"),
    ],
)
def test_a_file_url_names_a_path(url: str, path: str) -> None:
    """A file URL may have an empty host, an absolute or relative path, and percent escapes."""
    assert is_file_url(url) and file_path(url) == Path(path)


@pytest.mark.parametrize("url", ["file://other.example/etc/flags.json", "file:", "file://"])
def test_a_file_url_of_another_machine_or_of_nothing_is_refused(url: str) -> None:
    """The message says what to write."""
    with pytest.raises(ConfigurationError, match="file:///folder/name"):
        file_path(url)


def test_other_urls_are_no_file_urls() -> None:
    """These go to the network."""
    assert not any(is_file_url(url) for url in ("http://x/file:", "files:///x", "/etc/flags.json", ""))


def test_places_to_store_at(tmp_path: Path) -> None:
    """`none`, a folder, and nothing else."""
    assert isinstance(storage_at("none"), NoStore) and isinstance(storage_at("None"), NoStore)
    store = storage_at(tmp_path.as_uri())
    assert isinstance(store, FileStore)
    store.set("k", b"x")
    assert list(tmp_path.iterdir())
    with pytest.raises(ConfigurationError, match="redis"):
        storage_at("redis://x")


async def test_an_event_without_an_id_causes_a_poll() -> None:
    """Neither the event nor the ETag tells a version, so the document may be another one."""
    source = HttpSource(RecordingUpstream(FakeSource(ONE, ONE)))
    await source.fetch(None)
    source.tell("")
    await asyncio.wait_for(source.news(), 5)
