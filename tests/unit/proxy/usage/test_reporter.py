"""Registration and usage metrics."""

from __future__ import annotations

import asyncio

import pytest

from flagsvc.core.errors import UpstreamError
from flagsvc.proxy.usage import UsageSource, reporter
from flagsvc.testing import turns
from unit.proxy.usage.usage_scene import DOWN, HangingUpstream, ReporterScene, running, tally

LOST = "usage metrics are lost: they could be neither sent nor stored"


async def test_registration_is_retried_until_it_succeeds() -> None:
    """The back-off grows, Retry-After is obeyed, and the failure is logged once."""
    world = ReporterScene()
    faults = [DOWN] * 8 + [UpstreamError("throttled", "x", status=429, retry_after=1000)]
    world.upstream.faults = list(faults)
    world.usage.drain()
    world.reporter.start()
    delays: list[float] = []
    while not world.upstream.registrations:
        delay = await world.clock.next_sleep()
        await world.clock.advance(delay)
        delays.append(delay)
    pauses = [delay for delay in delays if delay != world.interval_ms / 1000]
    assert pauses == [5.0, 10.0, 20.0, 40.0, 80.0, 150.0, 150.0, 150.0, 1000.0]
    assert [line for line in world.log.at("info", "warn") if "registration" in line] == [
        "the registration was not taken",
        "the registration was not taken",
        "the registration was taken",
    ]
    await world.reporter.stop()


@pytest.mark.parametrize(
    ("jitter_ms", "draw", "seconds"),
    [(0, 0.9, 30.0), (10_000, 0.0, 20.0), (10_000, 0.5, 30.0), (10_000, 1.0, 40.0), (60_000, 0.0, 3.0)],
)
async def test_jitter_moves_each_interval(jitter_ms: int, draw: float, seconds: float) -> None:
    """Up to metricsJitter earlier or later, and never so early that it is a storm."""
    async with running(jitter_ms=jitter_ms, draw=lambda: draw) as world:
        assert await world.interval() == seconds


async def test_what_could_not_be_sent_is_sent_later() -> None:
    """Unsent counts are merged with later ones."""
    async with running() as world:
        world.upstream.faults = [DOWN, DOWN, UpstreamError("server", "x", status=503)]
        delays = []
        for _ in range(5):
            world.usage.count("a", True)
            delays.append(await world.interval())
        assert world.sent == [{"a": tally(4, 0)}, {"a": tally(1, 0)}]
        assert delays == [30.0, 30.0, 60.0, 120.0, 30.0]
        assert (world.usage.full, world.usage.refused) == (0, 0)
        assert world.log.at("warn") == [*["usage metrics could not be sent"] * 2, "usage metrics are sent again"]


async def test_retry_after_is_obeyed() -> None:
    """The next attempt is not a second too early."""
    async with running() as world:
        world.upstream.faults = [UpstreamError("throttled", "x", status=429, retry_after=1234)]
        world.usage.count("a", True)
        assert [await world.interval() for _ in range(2)] == [30.0, 1234.0]
        assert world.sent == [{"a": tally(1, 0)}]


@pytest.mark.parametrize(
    "error",
    [
        *(UpstreamError("x", "x", status=status) for status in (302, 401, 403, 404, 408, 429, 500, 503)),
        UpstreamError("document", "a web page", status=200),
        DOWN,
    ],
)
async def test_counts_that_may_be_taken_later_are_kept(error: UpstreamError) -> None:
    """Among them what may have arrived although the answer did not (decision 0017)."""
    async with running() as world:
        world.upstream.faults = [error]
        world.usage.count("a", True)
        await world.interval()
        await world.interval()
        assert (world.sent, world.usage.refused) == ([{"a": tally(1, 0)}], 0)


async def test_a_refused_token_is_retried_slowly_and_told_once() -> None:
    """The pace and the log are those of the poller for a refused token."""
    async with running() as world:
        world.upstream.faults = [UpstreamError("unauthorized", "x", status=401)] * 3
        world.usage.count("a", True)
        assert [await world.interval() for _ in range(4)] == [30.0, 150.0, 150.0, 150.0]
        assert world.log.at("error") == ["usage metrics could not be sent"]


async def test_a_failure_at_the_shutdown_does_not_stop_it() -> None:
    """Any exception is allowed: an error of the upstream or an unexpected one."""
    for fault in (DOWN, RuntimeError("bug")):
        async with running() as world:
            world.usage.count("a", False)
            world.upstream.faults = [fault]
        assert world.sent == [] and world.log.at("warn") == ["usage metrics could not be sent", LOST]


async def test_the_shutdown_waits_for_a_request_on_its_way() -> None:
    """The request is not cut off. Counts that came later are sent after it."""
    upstream = HangingUpstream()
    async with running(upstream=upstream) as world:
        world.usage.count("a", True)
        await world.interval()
        world.usage.count("b", True)
        stopping = asyncio.create_task(world.reporter.stop())
        await turns()
        assert world.sent == []
        upstream.gate.set()
        await stopping
    assert world.sent == [{"a": tally(1, 0)}, {"b": tally(1, 0)}]


async def test_the_shutdown_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """An upstream that hangs delays the shutdown by a few seconds."""
    monkeypatch.setattr(reporter, "LAST_SEND_S", 0.01)
    async with running(upstream=HangingUpstream()) as world:
        world.usage.count("a", True)
        before = asyncio.all_tasks()
        await world.interval()
    told, lost = world.log.lines[-2:]
    assert "at the shutdown" in str(told.fields["error"])
    assert (lost.event, lost.fields) == (LOST, {"entries": 1})
    assert asyncio.all_tasks() < before
    bucket = world.usage.drain()
    assert bucket is not None and bucket.toggles["a"].yes == 1


async def test_a_fault_nobody_thought_of_loses_no_counts_and_does_not_end_the_loop() -> None:
    """It is counted as a restart; the counts leave with the next sending."""
    async with running() as world:
        world.upstream.faults = [RuntimeError("bug")]
        world.usage.count("a", True)
        await world.interval()
        await world.interval()
        assert world.reporter.restarts == 1
        await world.interval()
        assert world.sent == [{"a": tally(1, 0)}]


async def test_applications_have_their_own_posts() -> None:
    """What an application counted goes upstream under its name and instance, also after a failure, with the earlier start."""
    async with running() as world:
        world.upstream.faults = [DOWN]
        world.usage.count("a", True)
        world.usage.add("b", 2, 1, {}, UsageSource("shop", "one"))
        await world.interval()
        assert world.sent == []
        world.usage.add("b", 1, 0, {}, UsageSource("shop", "one"))
        await world.interval()
        posts = {(each["appName"], each["instanceId"]): each["bucket"]["toggles"] for each in world.upstream.metrics}  # type: ignore[index]
        assert posts == {("app", "instance"): {"a": tally(1, 0)}, ("shop", "one"): {"b": tally(3, 1)}}
        assert "connectionId" not in world.upstream.metrics[1]
        assert len({each["bucket"]["start"] for each in world.upstream.metrics}) == 1  # type: ignore[index]
        assert world.usage.drain_sources() == []


async def test_registrations_of_applications_are_sent_once() -> None:
    """They wait while the upstream is away. A registration that the upstream refuses for good does not hold up the other ones."""
    async with running() as world:
        own = len(world.upstream.registrations)
        for name in ("bad", "shop"):
            world.usage.register(UsageSource(name, "one"), {"appName": name})
        world.upstream.faults = [DOWN]
        await world.interval()
        assert len(world.upstream.registrations) == own
        world.upstream.faults = [UpstreamError("unexpected", "x", status=400)]
        await world.interval()
        assert world.upstream.registrations[own:] == [{"appName": "shop"}]
        await world.interval()
        assert len(world.upstream.registrations) == own + 1
