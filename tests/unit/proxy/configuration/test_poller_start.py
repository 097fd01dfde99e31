"""The polling loop at the start: storage and bootstrap."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from flagsvc.proxy.configuration.stores import StoredDocument
from flagsvc.proxy.upstream import Fetched
from flagsvc.testing import FakeSource, MemoryStore, etag_of, turns
from support.aio import until
from support.polling import DOWN, EMPTY, ONE, PREPARE, TWO, PollerScene, WatchedPreparer, document, running, stored
from unit.proxy.configuration.test_document_storage import SlowStore

OLD = StoredDocument(ONE, '"old"')
READ = ["the stored configuration could not be read", "the stored configuration can be read again"]
USED = ["the stored configuration cannot be used", "the stored configuration can be used"]


async def test_a_fault_in_what_was_stored_does_not_cost_the_bootstrap() -> None:
    """If compiling the stored document fails unexpectedly, the bootstrap document is still used."""

    def fail(body: bytes, _: object) -> None:
        if body == ONE:
            raise RuntimeError("a bug")

    prepare = WatchedPreparer(fail)
    async with running(DOWN, store=stored(ONE, None), bootstrap=FakeSource(TWO), prepare=prepare) as world:
        await world.round()
        assert (world.serves, world.holder.state, world.poller.restarts) == (["two"], "bootstrapped", 0)
        assert "the stored configuration cannot be used" in world.log.at("warn")
        assert "a bug" not in str(world.log.lines)


async def test_a_storage_that_was_away_at_the_start() -> None:
    """While the upstream is down, the storage is read again."""
    store = stored(ONE, '"etag"')
    store.fault = OSError("away")
    async with running(DOWN, DOWN, DOWN, TWO, store=store) as world:
        await world.round()
        assert world.serves is None
        store.fault = None
        await world.round()
        assert (world.serves, world.holder.state) == (["one"], "restored")  # type: ignore[comparison-overlap]
        while world.holder.state != "fresh":
            await world.round()
        assert world.serves == ["two"] and world.source.etags[-1] in ('"etag"', etag_of(TWO))  # type: ignore[unreachable]
        said = [line for line in world.log.at("info", "warn") if "stored" in line]  # type: ignore[unreachable]
        assert said == READ


@pytest.mark.parametrize(
    ("data", "told"),
    [(b"", READ), (b"rubbish", READ), (StoredDocument(b"{", None).pack(), USED), (StoredDocument(b"[]", None).pack(), USED)],
)
async def test_a_stored_document_that_was_of_no_use_at_the_start(data: bytes, told: list[str]) -> None:
    """The start continues as if nothing were stored. Another may have been stored since, by another process."""
    store = MemoryStore()
    store.data["key"] = data
    async with running(DOWN, DOWN, DOWN, store=store) as world:
        await world.round()
        assert (world.serves, world.source.etags[0]) == (None, None)
        store.data.update(stored(ONE, None).data)
        await world.round()
        assert (world.serves, world.holder.state) == (["one"], "restored")
        said = [line for line in world.log.at("info", "warn") if "stored" in line]
        assert said == told


async def test_a_304_about_what_was_stored_does_not_confirm_the_bootstrap() -> None:
    """The 304 belongs to the stored document, which the bootstrap document has replaced."""
    source, bootstrap = FakeSource(ONE), FakeSource(document("boot"))
    source.gate = asyncio.Event()
    async with running(source=source, store=stored(ONE, etag_of(ONE)), bootstrap=bootstrap) as world:
        await turns()
        assert world.serves == ["boot"]
        source.gate.set()
        await world.clock.next_sleep()
        assert world.holder.state == "bootstrapped"
        await world.clock.advance(5)
        assert (world.serves, world.holder.state, source.etags) == (["one"], "fresh", [etag_of(ONE), None])


async def test_the_upstream_may_give_the_bootstrap_document() -> None:
    """The document then counts as the upstream's: it is stored, and its ETag is sent."""
    source, boot = FakeSource(document("boot")), document("boot")
    source.gate = asyncio.Event()
    async with running(source=source, bootstrap=FakeSource(boot)) as world:
        await world.holder.wait_ready()
        source.gate.set()
        await world.round()
        assert (world.holder.state, source.etags) == ("fresh", [None, etag_of(boot)])
        assert StoredDocument.unpack(world.store.data["key"]) == StoredDocument(boot, etag_of(boot))


@pytest.mark.parametrize("answer", [DOWN, b"{", Fetched(None), RuntimeError("bug"), RuntimeError()])
async def test_a_failed_bootstrap_is_a_warning(answer: Any) -> None:
    """It never stops the start."""
    async with running(ONE, bootstrap=FakeSource(answer)) as world:
        await world.round()
        assert world.serves == ["one"]
        (line,) = [line for line in world.log.lines if line.level == "warn"]
        assert line.event == "bootstrapping failed" and line.fields["error"]
        assert not isinstance(answer, RuntimeError) or str(line.fields["error"]).startswith("RuntimeError at ")


async def test_an_empty_bootstrap_does_not_turn_everything_off() -> None:
    """An empty bootstrap document is ignored if something is served; otherwise it makes the proxy ready."""
    async with running(DOWN, store=stored(ONE, None), bootstrap=FakeSource(EMPTY)) as world:
        await turns()
        assert (world.serves, world.holder.state) == (["one"], "restored")
        assert "the bootstrap document is empty and is not used" in world.log.at("warn")
    async with running(DOWN, bootstrap=FakeSource(EMPTY)) as world:
        await turns()
        assert (world.serves, world.holder.state) == ([], "bootstrapped")


async def test_a_storage_that_hangs_does_not_hold_the_upstream_up() -> None:
    """The upstream is polled meanwhile, without a log line. A late stored document replaces nothing, here or in the storage."""
    store = SlowStore(key=OLD)
    async with running(TWO, document("three"), store=store, head_start_s=0.01) as world:
        async with asyncio.timeout(5):
            await world.holder.wait_synchronised()
        assert (world.serves, world.source.etags) == (["two"], [None])
        store.gate.set()
        await turns()
        assert (world.serves, world.holder.state, world.log.at("warn")) == (["two"], "fresh", [])
        world.document_storage.rename("other")
        world.document_storage.retry_save()
        await turns()
        assert [StoredDocument.unpack(data).body for data in store.data.values()] == [TWO, TWO]
        await world.round()
        await world.clock.next_sleep()
        assert (world.serves, world.source.etags) == (["three"], [None, etag_of(TWO)])


async def test_a_slow_storage_serves_where_the_upstream_fails() -> None:
    """Its document is served as soon as it answers, after any number of failed polls. It is read once, without a log line."""
    store = SlowStore(key=OLD)
    async with running(DOWN, DOWN, DOWN, ONE, store=store, head_start_s=0.01) as world:
        await world.round()
        await world.round()
        assert (world.serves, store.asked) == (None, 1)
        store.gate.set()
        await turns()
        assert (world.serves, world.holder.state) == (["one"], "restored")
        assert [line for line in world.log.at("warn") if "stored" in line] == []
        await world.round()
        await world.clock.next_sleep()
        assert world.source.etags[-1] == '"old"'


async def test_an_empty_document_waits_for_the_storage() -> None:
    """An empty document of the upstream must not turn off stored toggles, even if reading them takes a moment."""
    store = SlowStore(key=OLD)
    async with running(EMPTY, EMPTY, store=store, head_start_s=0.01) as world:
        await until(lambda: world.source.etags)
        await turns()
        assert world.serves is None
        store.gate.set()
        await world.clock.next_sleep()
        assert (world.serves, world.holder.state) == (["one"], "restored")  # type: ignore[comparison-overlap]


async def test_stopping_ends_a_storage_that_hangs() -> None:
    """The stop works before the first poll and after it."""
    for passing in (False, True):
        async with running(DOWN, store=SlowStore(key=OLD), head_start_s=0.01) as world:
            if passing:
                await world.clock.next_sleep()
            else:
                await turns()
        assert not world.holder.is_ready


async def test_a_holder_that_was_handed_over_is_not_set_back() -> None:
    """Storage, bootstrap and a single empty document do not replace it, because it may be newer."""
    world = PollerScene(FakeSource(EMPTY, TWO), bootstrap=FakeSource(ONE), store=stored(ONE, etag_of(ONE)))
    handed_over = await PREPARE(document("newer"), None)
    world.holder.replace(handed_over.snapshot, handed_over.document, 0)
    world.poller.start()
    await world.clock.next_sleep()
    assert (world.serves, world.holder.state, world.source.etags) == (["newer"], "stale", [None])
    await world.clock.advance(5)
    assert (world.serves, world.holder.state) == (["two"], "fresh")
    await world.poller.stop()


async def test_stopping_ends_a_bootstrap_that_hangs() -> None:
    """The stop also ends everything else that is in progress."""
    bootstrap, source = FakeSource(ONE), FakeSource(ONE)
    bootstrap.gate = source.gate = asyncio.Event()
    async with running(source=source, bootstrap=bootstrap) as world:
        await turns()
        assert bootstrap.etags == source.etags == [None]
    assert not world.holder.is_ready
