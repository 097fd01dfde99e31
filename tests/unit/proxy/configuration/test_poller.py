"""The loop that keeps the configuration current: its start with storage and bootstrap, and its ordinary life.

Trouble, polls that are requested, and what it tells.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from flagsvc.engine.snapshot import Snapshot
from flagsvc.proxy.configuration.sources import HttpSource
from flagsvc.proxy.configuration.stores import StoredDocument
from flagsvc.proxy.upstream import Fetched
from flagsvc.testing import FakeSource, MemoryStore, RecordingUpstream, etag_of, turns
from support.aio import until
from support.polling import DOWN, EMPTY, ONE, PREPARE, REFUSED, TWO, PollerScene, WatchedPreparer, document, running, stored
from unit.proxy.configuration.test_document_storage import SlowStore


async def test_not_modified_changes_the_date_of_the_check_only() -> None:
    """Snapshot and document stay the very same objects."""
    async with running(ONE) as world:
        await world.clock.next_sleep()
        before = world.holder.current, world.holder.document, world.holder.last_update_ms
        await world.clock.advance(5)
        after = world.holder.current, world.holder.document, world.holder.last_update_ms
        assert all(old is new for old, new in zip(before, after, strict=True))
        assert world.holder.last_fetch_ms == world.holder.last_update_ms + 5000


async def test_a_full_disk_at_the_start_costs_only_one_round() -> None:
    """What could not be stored is stored after the next good poll, also when that brings nothing new."""
    store = MemoryStore()
    store.fault = OSError("full")
    async with running(ONE, store=store) as world:
        delay = await world.clock.next_sleep()
        assert store.data == {}
        store.fault = None
        await world.clock.advance(delay)
        await world.poller.stop()
        assert StoredDocument.unpack(store.data["key"]).body == ONE


async def test_the_end_waits_for_what_is_being_stored() -> None:
    """A process that stops right after a new document starts with that document the next time."""
    store = SlowStore()
    async with running(ONE, store=store, head_start_s=0.01) as world:
        await world.clock.next_sleep()
        stopping = asyncio.ensure_future(world.poller.stop())
        await asyncio.wait([stopping], timeout=0.05)
        assert store.data == {}
        store.gate.set()
        await stopping
        assert StoredDocument.unpack(store.data["key"]).body == ONE


async def test_the_same_bytes_without_an_etag_are_no_change() -> None:
    """An upstream that knows no ETags does not cause a new snapshot every five seconds."""
    prepared: list[bytes] = []
    prepare = WatchedPreparer(lambda body, _: prepared.append(body))
    async with running(Fetched(ONE), Fetched(bytes(bytearray(ONE)), '"new"'), prepare=prepare) as world:
        await world.round()
        await world.round()
        assert (len(prepared), world.holder.state) == (1, "fresh")
        assert world.source.etags == [None, None, '"new"']


async def test_a_refresh_interval_of_0_polls_until_the_first_success_and_never_again() -> None:
    """Failures before it are retried (specification: Options)."""
    async with running(DOWN, DOWN, ONE, TWO, refresh_ms=0) as world:
        for _ in range(2):
            assert 0 < await world.round() <= 10
        await until(lambda: not world.poller.is_running)
        await world.clock.advance(100_000)
        assert (world.serves, len(world.source.etags), world.poller.restarts) == (["one"], 3, 0)


async def test_a_refresh_interval_of_0_still_confirms_an_empty_document() -> None:
    """A document that was held back is not a success."""
    async with running(EMPTY, EMPTY, refresh_ms=0, store=stored(ONE, None)) as world:
        assert await world.clock.next_sleep() == 5.0
        assert world.serves == ["one"]
        await world.clock.advance(5)
        assert world.serves == []
        await until(lambda: not world.poller.is_running)


async def test_a_cold_start_retries_soon() -> None:
    """A proxy that starts a moment before its upstream does not make callers wait for a refresh interval."""
    async with running(*[DOWN] * 5, ONE) as world:
        assert [await world.round() for _ in range(5)] == [1.0, 2.0, 2.5, 2.5, 2.5]
        assert world.serves == ["one"]


async def test_a_token_that_is_refused_at_a_cold_start_may_be_made_a_moment_later() -> None:
    """The proxy and the token may come in any order: a refused token is retried soon at a cold start."""
    async with running(*[REFUSED] * 9, ONE, REFUSED, REFUSED) as world:
        assert max([await world.round() for _ in range(9)]) <= 5.0
        assert world.serves == ["one"]
        assert [await world.round() for _ in range(2)] == [5.0, 25.0]
        assert (world.serves, world.holder.state) == (["one"], "refused")


async def test_odd_features_are_served_named_and_counted() -> None:
    """They count apart from left-out features; a flood of them is cut short in the log and on the page."""
    odd = json.dumps({"features": [{"name": f"f{at}", "enabled": at} for at in range(25)] + [7]}).encode()
    async with running(odd) as world:
        await world.clock.next_sleep()
        assert (len(world.serves or ()), world.holder.problems, world.holder.odd) == (25, 1, 25)
        lines = [(line.event, line.fields) for line in world.log.lines if line.level == "warn"]
        assert [text for text, _ in lines] == ["left out", *["served with an odd value"] * 20, "more has an odd value"]
        assert lines[1][1] == {"toggle": "f0", "path": "features[0].enabled", "problem": "must be true or false, is a number"}
        assert lines[-1][1] == {"problems": 5}
        notes = world.poller.notes
        assert (len(notes.left_out), len(notes.odd)) == (1, 20)


async def test_a_long_name_is_cut_in_the_log_and_on_the_page() -> None:
    """A document can have names of a megabyte, and twenty are named."""
    async with running(json.dumps({"features": [{"name": "\n" + "f" * 9999, "enabled": 1}]}).encode()) as world:
        await world.clock.next_sleep()
        [line] = [line for line in world.log.lines if line.level == "warn"]
        assert line.fields["toggle"] == "\\n" + "f" * 250 + "..."
        [note] = world.poller.notes.odd
        assert note.endswith("...") and len(note) == 510


async def test_an_unexpected_exception_does_not_end_the_loop() -> None:
    """An unexpected exception is counted and logged. The configuration is still served, and polling continues."""
    faults = [RuntimeError("bug")]

    def fail(_: bytes, previous: Snapshot | None) -> None:
        if previous is not None and faults:
            raise faults.pop()

    async with running(ONE, TWO, prepare=WatchedPreparer(fail)) as world:
        await world.round()
        assert (world.poller.restarts, world.poller.is_running, world.serves) == (1, True, ["one"])
        assert world.log.at("error") == ["polling failed and starts again"]
        await world.round()
        assert (world.poller.restarts, world.serves) == (1, ["two"])


async def test_a_source_that_is_cheap_to_ask_is_asked_at_its_own_pace() -> None:
    """Never slower than the refresh interval, and with a back-off of a few steps only."""
    async with running(source=FakeSource(ONE, *[DOWN] * 9, pace=0.5)) as world:
        assert await world.round() == 0.5
        assert [await world.round() for _ in range(4)] == [0.5, 1.0, 1.0, 1.0]
    async with running(source=FakeSource(ONE, pace=60.0)) as world:
        assert await world.round() == 5.0


async def test_every_poll_is_counted_by_what_it_brought() -> None:
    """Failures in a row are counted too, until a poll goes well. The last check is the last poll that went well."""
    script = (ONE, ONE, Fetched(bytes(bytearray(ONE))), DOWN, REFUSED, b"{", EMPTY, TWO, DOWN)
    async with running(*script) as world:
        failures, checks = [], []
        for _ in script:
            await world.round()
            failures.append(world.holder.failures)
            checks.append(world.holder.checked_at == world.clock.monotonic())
        # each round ends when the next poll is over
        assert failures == [0, 0, 1, 2, 3, 0, 0, 1, 2]
        assert checks == [count == 0 for count in failures]
        counts = {"fetched": 2, "not-modified": 1, "same": 1, "failed": 3, "refused": 1, "unusable": 1, "empty": 1}
        assert world.holder.event_counts == counts


async def test_nothing_was_checked_by_reading_what_is_stored() -> None:
    """Storage and bootstrap do not show when the upstream confirmed a document, and do not end a series of failures."""
    bootstrap = FakeSource(TWO)
    bootstrap.gate = asyncio.Event()
    async with running(DOWN, store=stored(ONE, '"old"'), bootstrap=bootstrap) as world:
        await world.holder.wait_ready()
        await world.round()
        assert (world.serves, world.holder.checked_at, world.holder.failures) == (["one"], None, 2)
        assert (world.holder.state, world.source.etags[0]) == ("restored", '"old"')
        assert (world.holder.last_fetch_ms, world.holder.last_update_ms) == (0.0, 0.0)
        bootstrap.gate.set()
        await turns()
        assert (world.serves, world.holder.checked_at, world.holder.failures) == (["two"], None, 2)
        assert sum(world.holder.event_counts.values()) == 2


async def test_a_requested_poll_is_made_at_once() -> None:
    """The interval starts again. Nothing waits for a request any more when the poller has stopped."""
    source, tasks = HttpSource(RecordingUpstream(FakeSource(ONE, TWO))), asyncio.all_tasks()
    async with running(source=source) as world:
        assert await world.clock.next_sleep() == 5.0
        await world.clock.advance(2)
        source.poll_now()
        assert await world.clock.next_sleep() == 5.0
        assert (world.serves, world.clock.monotonic(), world.clock.sleeping) == (["two"], 2.0, [5.0])
    assert (world.clock.sleeping, asyncio.all_tasks()) == ([], tasks)


async def test_a_poll_that_is_requested_during_another_is_not_missed() -> None:
    """It follows at once."""
    documents = FakeSource(ONE, TWO)
    documents.gate = asyncio.Event()
    source = HttpSource(RecordingUpstream(documents))
    async with running(source=source) as world:
        await until(lambda: documents.etags)
        source.poll_now()
        documents.gate.set()
        assert [await world.clock.next_sleep() for _ in range(2)] == [5.0, 5.0]
        assert (world.serves, world.clock.monotonic()) == (["two"], 0.0)


async def test_what_is_noted() -> None:
    """A failure notes its words and moment; the recovery removes the words, and a change of state notes when."""
    async with running(ONE, DOWN, DOWN, TWO, TWO) as world:
        notes, clock = world.poller.notes, world.clock
        delay = await clock.next_sleep()
        began = clock.now()
        assert (notes.since, notes.error, notes.failed_at, notes.next_at) == (began, "", None, began + delay)
        await clock.advance(delay)
        delay = await clock.next_sleep()
        failed = clock.now()
        assert (notes.since, notes.error, notes.failed_at) == (failed, str(DOWN), failed)
        await clock.advance(delay)
        delay = await clock.next_sleep()
        assert (notes.since, notes.failed_at) == (failed, clock.now()), "it is still the same state"
        await clock.advance(delay)
        await clock.next_sleep()
        assert notes.error == "" and notes.since == clock.now() > failed


async def test_the_phases_of_a_refresh() -> None:
    """Each poll has a fetch, also a poll that fails. Only another document is compiled, and served."""
    async with running(ONE, ONE, DOWN, TWO) as world:
        for _ in range(4):
            await world.round()
        assert {phase: sum(found.counts) for phase, found in world.holder.phases.items()} == {"fetch": 5, "compile": 2, "switch": 2}


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
