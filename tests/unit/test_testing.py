"""The public fakes behave like the real classes."""

from __future__ import annotations

import asyncio

import pytest

from flagsvc.core.clock import Clock
from flagsvc.core.errors import UpstreamError
from flagsvc.core.log import Logger
from flagsvc.proxy.upstream import Fetched
from flagsvc.testing import FakeClock, FakeSource, Line, MemoryStore, RecordingLog, RecordingUpstream, turns


async def test_time_passes_only_when_told() -> None:
    """Sleepers wake at their time, in the order of their time, each seeing its own moment."""
    clock = FakeClock(1000.0)
    port: Clock = clock
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, seconds: float, again: float) -> None:
        await port.sleep(seconds)
        woken.append((name, clock.now()))
        await port.sleep(again)
        woken.append((name, clock.monotonic()))

    tasks = [asyncio.create_task(sleeper("slow", 5, 100)), asyncio.create_task(sleeper("fast", 2, 2))]
    assert [await clock.next_sleep(), await clock.next_sleep()] == [5, 2]
    assert clock.sleeping == [5, 2]
    await clock.advance(1)
    assert woken == []
    await clock.advance(9)
    assert woken == [("fast", 1002.0), ("fast", 4.0), ("slow", 1005.0)]
    assert (clock.now(), clock.monotonic(), clock.sleeping) == (1010.0, 10.0, [100])
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert clock.sleeping == []


async def test_a_source_follows_its_script() -> None:
    """Documents with ETags, faults, answers as they are, the last one for ever; a gate holds an answer back."""
    fault = UpstreamError("server", "x")
    source = FakeSource(b"one", fault, Fetched(b"two", "e"), b"three")
    one = await source.fetch(None)
    assert one.body == b"one" and one.etag
    with pytest.raises(UpstreamError):
        await source.fetch(one.etag)
    assert await source.fetch("x") == Fetched(b"two", "e")
    three = await source.fetch(None)
    assert await source.fetch(three.etag) == Fetched(None, three.etag)
    assert source.etags == [None, one.etag, "x", None, three.etag]
    source.gate = asyncio.Event()
    held = asyncio.create_task(source.fetch(None))
    await turns()
    assert not held.done()
    source.gate.set()
    assert (await held).body == b"three"
    source.then([b"four"])
    assert (await source.fetch(three.etag)).body == b"four"


async def test_a_store_keeps_or_fails() -> None:
    """A store stores or fails, as the test sets it."""
    store = MemoryStore()
    await store.set("k", b"x")
    assert (await store.get("k"), await store.get("other"), store.data) == (b"x", None, {"k": b"x"})
    store.fault = OSError("full")
    with pytest.raises(OSError, match="full"):
        await store.set("k", b"y")
    assert store.data == {"k": b"x"}


async def test_an_upstream_writes_down_what_it_is_sent() -> None:
    """An upstream records accepted payloads separately from all payloads."""
    upstream = RecordingUpstream()
    assert (await upstream.get_features(None)).body == b'{"version":2,"features":[]}'
    with pytest.raises(UpstreamError, match="there is no stream"):
        await upstream.follow_stream("", pytest.fail)
    upstream.faults = [UpstreamError("server", "x")]
    with pytest.raises(UpstreamError):
        await upstream.register({"n": 1})
    await upstream.register({"n": 2})
    await upstream.send_metrics({"n": 3})
    assert (upstream.registrations, upstream.metrics) == ([{"n": 2}], [{"n": 3}])
    assert upstream.attempts == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert not upstream.closed
    await upstream.aclose()
    assert upstream.closed


def test_a_log_writes_into_a_list() -> None:
    """Every level."""
    log = RecordingLog()
    port: Logger = log
    for level in ("debug", "info", "warn", "error", "fatal"):
        getattr(port, level)("something", at=level)
    assert log.lines[0] == Line("debug", "something", {"at": "debug"})
    assert log.at("warn", "fatal") == ["something", "something"]
