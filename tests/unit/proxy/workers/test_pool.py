"""The parent's end: who is started and replaced, what is added up, and how all end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from flagsvc.proxy.usage import UsageCounters
from flagsvc.proxy.usage.record import UsageWindow
from flagsvc.proxy.workers import messages as say
from flagsvc.testing import turns
from support.aio import asynchronous
from support.crew_scene import PATIENT, SHORT, Hall, hall


@asynchronous
async def test_all_are_welcomed() -> None:
    """Each worker gets its number, the options and all sockets first; none is warm before there is a configuration."""
    async with hall(3) as around:
        welcomes = [worker.heard[0] for worker in around.made]
        assert sorted(each.worker for each in welcomes if isinstance(each, say.Welcome)) == [0, 1, 2]
        assert welcomes[0] == say.Welcome(0, {"port": 1}, [[0], [1], [2]], False)
        assert around.worker_pool.workers == 3
        assert around.worker_pool.pids() == [worker.pid for worker in around.made]
    assert around.worker_pool.pids() == []


@asynchronous
async def test_a_worker_is_replaced() -> None:
    """The first that ends is replaced at once, those that follow it soon after a growing pause; each is told of and counted."""
    async with hall(2) as around:
        pauses = []
        for number in range(8):
            around.made[-1].end(7)
            pauses.append(await pause(around))
            await around.until(lambda: len(around.made) == number + 3 and around.worker_pool.workers == 2)  # noqa: B023
        assert pauses == sorted(pauses) and pauses[0] == 0 < 0.5 <= pauses[1] < 20 < pauses[-1] <= 31
        assert around.worker_pool.restarts == 8
        assert around.log.at("error") == ["a worker has ended and is replaced"] * 8
        assert {line.fields["status"] for line in around.log.lines} == {7}


async def pause(around: Hall) -> float:
    """Let time pass until the next worker is started; return how many seconds that took."""
    count, began = len(around.made), around.clock.monotonic()
    await around.until(lambda: around.clock.sleeping or len(around.made) > count)
    while len(around.made) == count:
        await around.clock.advance(0.1)
    return round(around.clock.monotonic() - began, 3)


@asynchronous
async def test_a_worker_is_replaced_soon_where_none_is_left() -> None:
    """However often it failed before, and whichever it is: one is started within a second, and no more than one a second."""
    async with hall(3) as around:
        around.deaf.add(say.Welcome)  # nobody takes connections any more
        for _ in range(20):
            for worker in around.made:
                worker.end(7)
            count, before = len(around.made), around.clock.monotonic()
            while len(around.made) == count:
                await around.clock.advance(0.1)
                await asyncio.sleep(0.002)  # what ends a process is seen by threads
            assert around.clock.monotonic() - before < 1.2
        began, count = around.clock.monotonic(), len(around.made)
        while around.clock.monotonic() - began < 30:
            await around.clock.advance(0.1)
            await asyncio.sleep(0.002)
            around.made[-1].end(7)
        assert 25 <= len(around.made) - count <= 40


@asynchronous
async def test_a_worker_that_lived_well_is_replaced_at_once() -> None:
    """After a steady life a worker is replaced without a pause, however often that happens."""
    async with hall(1) as around:
        for number in range(4):
            await around.clock.advance(60)
            around.made[-1].end(1)
            await around.until(lambda: len(around.made) == number + 2 and around.worker_pool.workers == 1)  # noqa: B023
        assert around.clock.sleeping == []


@asynchronous
async def test_a_worker_that_cannot_be_started() -> None:
    """A system that refuses to start a process is asked again; the reason is told."""
    async with hall(1) as around:
        around.refusals.append(OSError(11, "no"))
        around.made[-1].end(1)
        assert 0.5 <= await pause(around) <= 1.1
        await around.until(lambda: len(around.made) == 2 and around.worker_pool.workers == 1)
        assert "Resource temporarily unavailable" in str(around.log.lines[-1].fields["status"])


@asynchronous
async def test_a_closed_channel_is_a_worker_that_has_ended() -> None:
    """A worker that closes its end, or says what nobody understands, is killed when it does not end by itself, and replaced."""
    async with hall(1) as around:
        first = around.made[0]
        first.channel._transport.write(b"\xff" * 20)  # type: ignore[union-attr]
        await around.until(lambda: len(around.made) == 2 and around.worker_pool.workers == 1)
        assert first.killed


@asynchronous
async def test_counts_are_merged() -> None:
    """Usage goes to the parent's counters, samples to the sums; what a worker that has ended counted stays."""
    async with hall(2) as around:
        for worker in around.made:
            usage = UsageWindow(5.0, 6.0, {"a": (1, 2, {"v": 3})})
            samples: list[Any] = [(["flagsvc_http_requests", "/proxy", "GET", "200"], 4), (["flagsvc_present"], 10)]
            worker.channel.send(say.Counts(usage, samples))
        await around.worker_pool.gather()
        key = ("flagsvc_http_requests", "/proxy", "GET", "200")
        assert around.worker_pool.sums.total({key: 1}) == {key: 9, ("flagsvc_present",): 20}
        around.made[0].end(1)
        await around.until(lambda: around.worker_pool.restarts == 1)
        assert around.worker_pool.sums.total({}) == {key: 8, ("flagsvc_present",): 10}
        bucket = around.counters.drain()
        assert bucket is not None and bucket.start == 5.0
        tally = bucket.toggles["a"]
        assert (tally.yes, tally.no, tally.variants) == (2, 4, {"v": 6})


@asynchronous
async def test_a_question_is_answered_for_all() -> None:
    """A worker that asks gets the text when all have reported; one that does not report is not waited for for long."""
    async with hall(3, patience=SHORT) as around:
        asking, other, late = around.made
        late.deaf.add(say.Report)
        asking.channel.send(say.Ask(7))
        await around.until(lambda: asking.told(say.Text))
        assert asking.told(say.Text) == [say.Text(7)]
        assert other.told(say.Report) and late.told(say.Report) and not other.told(say.Text)


@asynchronous
async def test_a_question_of_one_that_is_gone() -> None:
    """It is answered to nobody: not to the worker that sits there now."""
    async with hall(2, patience=SHORT) as around:
        asking, late = around.made
        late.deaf.add(say.Report)
        asking.channel.send(say.Ask(1))
        await around.until(lambda: late.told(say.Report))
        asking.end(1)
        await around.until(lambda: around.worker_pool.workers == 2)
        await around.worker_pool.gather()
        assert not around.made[-1].told(say.Text)


@asynchronous
async def test_groups_of_the_fallen_are_adopted() -> None:
    """Another worker takes the connections of one that is gone until that is replaced; if it goes too, a third does."""
    async with hall(3) as around:
        around.deaf.add(say.Welcome)
        first, second, third = around.made
        first.end(1)
        await around.until(lambda: second.told(say.Adopt))
        assert second.told(say.Adopt) == [say.Adopt(0)]
        second.end(1)
        await around.until(lambda: len(third.told(say.Adopt)) == 2)
        assert {each.group for each in third.told(say.Adopt)} == {0, 1}
        await around.until(lambda: len(around.made) == 5)
        for worker in around.made[3:]:
            await around.until(lambda: worker.heard)  # noqa: B023
            worker.channel.send(say.Serving())
        await around.until(lambda: len(third.told(say.Release)) == 2)
        assert around.worker_pool.workers == 3


@asynchronous
async def test_one_group_needs_no_adoption() -> None:
    """Where all share one group, the others take its connections anyway."""
    async with hall(2, groups=1) as around:
        around.made[0].end(1)
        await around.until(lambda: around.worker_pool.restarts == 1 and around.worker_pool.workers == 2)
        assert not around.made[1].told(say.Adopt)


@asynchronous
async def test_those_that_fall_at_the_start_are_not_waited_for() -> None:
    """When one worker takes connections and another has failed to, the proxy listens."""
    around = Hall(2)
    around.refusals.append(OSError(12, "no"))
    around.worker_pool.start()
    await around.worker_pool.started()
    assert around.worker_pool.workers >= 1
    await around.worker_pool.stop()


@asynchronous
async def test_the_end() -> None:
    """Those that serve are told to leave, those that do not serve yet are ended, and nobody is replaced any more."""
    async with hall(2) as around:
        around.deaf.add(say.Welcome)
        around.made[0].end(1)
        await around.until(lambda: len(around.made) == 3 and around.made[2].heard)
    assert around.made[1].told(say.Leave) and not around.made[1].killed
    assert around.made[2].killed
    assert len(around.made) == 3


@asynchronous
async def test_one_that_does_not_leave() -> None:
    """A worker that does not end in time is ended, and that is told."""
    async with hall(2, patience=PATIENT._replace(leave=1)) as around:
        around.made[0].deaf.add(say.Leave)
    assert around.made[0].killed and not around.made[1].killed
    assert around.log.at("warn") == ["workers did not end in time and were ended"]


@asynchronous
async def test_an_end_during_a_pause() -> None:
    """Nobody is started after the end, also where one was about to be."""
    async with hall(1) as around:
        around.made[-1].end(1)
        await around.until(lambda: len(around.made) == 2 and around.worker_pool.workers == 1)
        around.made[-1].end(1)
        await around.clock.next_sleep()
    await around.clock.advance(100)
    await turns()
    assert len(around.made) == 2


@asynchronous
async def test_the_last_counts_are_there_at_the_end() -> None:
    """What a worker sends before it ends is counted."""
    async with hall(1) as around:
        worker = around.made[0]
        worker.deaf.add(say.Leave)
        stopping = asyncio.ensure_future(around.worker_pool.stop())
        await around.until(lambda: worker.told(say.Leave))
        worker.channel.send(say.Counts(UsageWindow(1.0, 2.0, {"a": (1, 0, {})})))
        worker.end(0)
        await stopping
    assert isinstance(around.counters, UsageCounters)
    bucket = around.counters.drain()
    assert bucket is not None and bucket.toggles["a"].yes == 1


@pytest.mark.parametrize("size", [1, 4])
def test_a_crew_is_made_without_a_loop(size: int) -> None:
    """Making it starts nothing."""
    made = Hall(size)
    assert (made.worker_pool.workers, made.worker_pool.pids(), made.made) == (0, [], [])


@asynchronous
async def test_other_options() -> None:
    """All workers are told, and it is waited until they have done so; a successor begins with them."""
    async with hall(2) as around:
        await around.worker_pool.reload({"port": 2, "client_keys": ("a",)})
        assert [worker.told(say.Reload) for worker in around.made] == [
            [say.Reload(1, {"port": 2, "client_keys": ["a"]})]
        ] * 2
        around.made[0].end(1)
        await around.until(lambda: len(around.made) == 3 and around.made[2].heard)
        assert around.made[2].heard[0] == say.Welcome(0, {"port": 2, "client_keys": ["a"]}, [[0], [1]], False)
        assert around.log.at("warn") == []


@asynchronous
async def test_other_options_with_a_late_worker() -> None:
    """One that does not say that it has them is told of, and does not hold up the others; one that has ended owes nothing."""
    async with hall(3, patience=SHORT) as around:
        around.made[0].deaf.add(say.Reload)
        await around.worker_pool.reload({"port": 2})
        assert around.log.at("warn") == ["a worker is late with new keys, the others do not wait"]
        reloading = asyncio.ensure_future(around.worker_pool.reload({"port": 3}))
        await around.until(lambda: len(around.made[0].told(say.Reload)) == 2)
        around.made[0].end(1)
        await reloading


@asynchronous
async def test_looking_again() -> None:
    """All are told to read their own files again; no option changes, and nothing is owed by that."""
    async with hall(2) as around:
        await around.worker_pool.reload({"port": 2})
        around.worker_pool.look_again()
        await around.until(lambda: all(len(worker.told(say.Reload)) == 2 for worker in around.made))
        assert {worker.told(say.Reload)[1] == say.Reload(1, {}) for worker in around.made} == {True}
        await around.worker_pool.reload({"port": 3})
        assert around.log.at("warn") == []


@asynchronous
async def test_draining() -> None:
    """All are told; who ends in order meanwhile is not replaced, who falls is, and its successor is told as well."""
    async with hall(3) as around:
        around.worker_pool.drain()
        await around.until(lambda: all(worker.told(say.Drain) for worker in around.made))
        around.made[0].end(0)
        await around.until(lambda: around.worker_pool.workers == 2)
        around.made[1].end(1)
        await around.until(lambda: len(around.made) == 4 and around.made[3].told(say.Drain))
        await around.until(lambda: around.worker_pool.workers == 2)
        assert len(around.made) == 4 and around.worker_pool.restarts == 1
        assert around.made[2].told(say.Adopt), "somebody takes the connections of the one that has gone"
