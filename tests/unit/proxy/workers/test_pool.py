"""The parent's side: how workers are started and replaced, how counts are added up, and how the pool stops."""

from __future__ import annotations

import asyncio
from typing import Any

from flagsvc.proxy.usage import UsageCounters
from flagsvc.proxy.usage.unsent import UsageWindow
from flagsvc.proxy.workers import messages
from flagsvc.testing import turns
from unit.proxy.workers.worker_pool_scene import PATIENT, SHORT, PoolScene, pool_scene, served


async def test_all_are_welcomed() -> None:
    """Each worker first gets its number, the options and all sockets. The message announces a configuration only if it exists."""
    async with pool_scene(3) as scene:
        welcomes = [worker.received[0] for worker in scene.made]
        assert sorted(each.worker for each in welcomes if isinstance(each, messages.Welcome)) == [0, 1, 2]
        assert welcomes[0] == messages.Welcome(0, [served()], [], [[0], [1], [2]], {"port": 3000})
        assert scene.worker_pool.workers == 3
        assert scene.worker_pool.pids() == [worker.pid for worker in scene.made]
    assert scene.worker_pool.pids() == []


async def test_a_worker_is_replaced() -> None:
    """The first that ends is replaced immediately, the next ones after a growing pause. Each end is logged and counted."""
    async with pool_scene(2) as scene:
        pauses = []
        for number in range(8):
            scene.made[-1].end(7)
            pauses.append(await pause(scene))
            await scene.until(lambda: len(scene.made) == number + 3 and scene.worker_pool.workers == 2)  # noqa: B023
        assert pauses == sorted(pauses) and pauses[0] == 0 < 0.5 <= pauses[1] < 20 < pauses[-1] <= 31
        assert scene.worker_pool.restarts == 8
        assert scene.log.at("error") == ["a worker has ended and is replaced"] * 8
        assert {line.fields["status"] for line in scene.log.lines} == {7}


async def pause(scene: PoolScene) -> float:
    """Let time pass until the next worker is started; return how many seconds that took."""
    count, began = len(scene.made), scene.clock.monotonic()
    await scene.until(lambda: scene.clock.sleeping or len(scene.made) > count)
    while len(scene.made) == count:
        await scene.clock.advance(0.1)
    return round(scene.clock.monotonic() - began, 3)


async def test_a_worker_is_replaced_soon_where_none_is_left() -> None:
    """A worker is then started within a second, however often it failed before. At most one is started in a second."""
    async with pool_scene(3) as scene:
        scene.ignores.add(messages.Welcome)  # no worker takes connections any more
        for _ in range(20):
            count, before = await end_all(scene), scene.clock.monotonic()
            while len(scene.made) == count:
                await scene.clock.advance(0.1)
            assert scene.clock.monotonic() - before < 1.2
        began, count = scene.clock.monotonic(), len(scene.made)
        while scene.clock.monotonic() - began < 30:
            await end_all(scene)
            await scene.clock.advance(0.1)
        assert 25 <= len(scene.made) - count <= 40


async def end_all(scene: PoolScene) -> int:
    """End all workers, and return how many were started before. The clock stands still until the pool has noticed each end."""
    await scene.until(lambda: all(worker.received for worker in scene.made))  # only a connected worker can end
    count = len(scene.made)
    for worker in scene.made:
        worker.end(7)
    await scene.until(lambda: scene.worker_pool.restarts >= count)  # threads see the ends
    return count


async def test_a_steady_worker_is_replaced_immediately() -> None:
    """A worker that ran for long is replaced without a pause, however often that happens."""
    async with pool_scene(1) as scene:
        for number in range(4):
            await scene.clock.advance(60)
            scene.made[-1].end(1)
            await scene.until(lambda: len(scene.made) == number + 2 and scene.worker_pool.workers == 1)  # noqa: B023
        assert scene.clock.sleeping == []


async def test_a_worker_that_cannot_be_started() -> None:
    """When the system refuses to start a process, the pool tries again and logs the reason."""
    async with pool_scene(1) as scene:
        scene.refusals.append(OSError(11, "no"))
        scene.made[-1].end(1)
        assert 0.5 <= await pause(scene) <= 1.1
        await scene.until(lambda: len(scene.made) == 2 and scene.worker_pool.workers == 1)
        assert "Resource temporarily unavailable" in str(scene.log.lines[-1].fields["status"])


async def test_a_closed_channel_is_a_worker_that_has_ended() -> None:
    """A worker that closes its end or sends an unknown message is killed if it does not end itself, and is replaced."""
    async with pool_scene(1) as scene:
        first = scene.made[0]
        first.channel._transport.write(b"\xff" * 20)  # type: ignore[union-attr]
        await scene.until(lambda: len(scene.made) == 2 and scene.worker_pool.workers == 1)
        assert first.killed


async def test_counts_are_merged() -> None:
    """Usage goes to the parent's counters, samples to the sums. The counts of a worker that has ended stay."""
    async with pool_scene(2) as scene:
        for worker in scene.made:
            usage = UsageWindow(5.0, 6.0, {"a": (1, 2, {"v": 3})})
            samples: list[Any] = [(["flagsvc_http_requests", "/proxy", "GET", "200"], 4), (["flagsvc_present"], 10)]
            worker.channel.send(messages.Counts(usage=[usage], samples=samples))
        await scene.worker_pool.gather_counts()
        key = ("flagsvc_http_requests", "/proxy", "GET", "200")
        assert scene.worker_pool.metric_sums.total({key: 1}) == {key: 9, ("flagsvc_present",): 20}
        scene.made[0].end(1)
        await scene.until(lambda: scene.worker_pool.restarts == 1)
        assert scene.worker_pool.metric_sums.total({}) == {key: 8, ("flagsvc_present",): 10}
        bucket = scene.counters.drain()
        assert bucket is not None and bucket.start == 5.0
        tally = bucket.toggles["a"]
        assert (tally.yes, tally.no, tally.variants) == (2, 4, {"v": 6})


async def test_a_question_is_answered_for_all() -> None:
    """A worker that asks gets the metrics when all have reported. The pool waits only briefly for a late worker."""
    async with pool_scene(3, timeouts=SHORT) as scene:
        asking, other, late = scene.made
        late.ignores.add(messages.CountsRequest)
        asking.channel.send(messages.MetricsRequest(7))
        await scene.until(lambda: asking.received_of(messages.MetricsText))
        assert asking.received_of(messages.MetricsText) == [messages.MetricsText(7)]
        assert all(worker.received_of(messages.CountsRequest) for worker in (other, late))
        assert not other.received_of(messages.MetricsText)


async def test_a_question_of_one_that_is_gone() -> None:
    """No answer is sent, not even to the worker's replacement."""
    async with pool_scene(2, timeouts=SHORT) as scene:
        asking, late = scene.made
        late.ignores.add(messages.CountsRequest)
        asking.channel.send(messages.MetricsRequest(1))
        await scene.until(lambda: late.received_of(messages.CountsRequest))
        asking.end(1)
        await scene.until(lambda: scene.worker_pool.workers == 2)
        await scene.worker_pool.gather_counts()
        assert not scene.made[-1].received_of(messages.MetricsText)


async def test_groups_of_ended_workers_are_adopted() -> None:
    """Another worker takes the connections of an ended worker until its replacement serves. If it ends too, a third does."""
    async with pool_scene(3) as scene:
        scene.ignores.add(messages.Welcome)
        first, second, third = scene.made
        first.end(1)
        await scene.until(lambda: second.received_of(messages.Adopt))
        assert second.received_of(messages.Adopt) == [messages.Adopt(0)]
        second.end(1)
        await scene.until(lambda: len(third.received_of(messages.Adopt)) == 2)
        assert {each.group for each in third.received_of(messages.Adopt)} == {0, 1}
        await scene.until(lambda: len(scene.made) == 5)
        for worker in scene.made[3:]:
            await scene.until(lambda: worker.received)  # noqa: B023
            worker.channel.send(messages.Serving())
        await scene.until(lambda: len(third.received_of(messages.Release)) == 2)
        assert scene.worker_pool.workers == 3


async def test_one_group_needs_no_adoption() -> None:
    """If all workers share one group, the others take its connections anyway."""
    async with pool_scene(2, groups=1) as scene:
        scene.made[0].end(1)
        await scene.until(lambda: scene.worker_pool.restarts == 1 and scene.worker_pool.workers == 2)
        assert not scene.made[1].received_of(messages.Adopt)


async def test_workers_that_fail_to_start_are_not_waited_for() -> None:
    """The proxy listens when one worker takes connections and another one has failed to start."""
    scene = PoolScene(2)
    scene.refusals.append(OSError(12, "no"))
    scene.worker_pool.start()
    await scene.worker_pool.wait_started()
    assert scene.worker_pool.workers >= 1
    await scene.worker_pool.stop()


async def test_the_end() -> None:
    """Serving workers get Leave, workers that do not serve yet are killed, and none is replaced."""
    async with pool_scene(2) as scene:
        scene.ignores.add(messages.Welcome)
        scene.made[0].end(1)
        await scene.until(lambda: len(scene.made) == 3 and scene.made[2].received)
    assert scene.made[1].received_of(messages.Leave) and not scene.made[1].killed
    assert scene.made[2].killed
    assert len(scene.made) == 3


async def test_one_that_does_not_leave() -> None:
    """A worker that does not end in time is killed, and that is logged."""
    async with pool_scene(2, timeouts=PATIENT._replace(leave=1)) as scene:
        scene.made[0].ignores.add(messages.Leave)
    assert scene.made[0].killed and not scene.made[1].killed
    assert scene.log.at("warn") == ["workers did not end in time and were ended"]


async def test_an_end_during_a_pause() -> None:
    """No worker starts after the stop, also not after a pause that was running."""
    async with pool_scene(1) as scene:
        scene.made[-1].end(1)
        await scene.until(lambda: len(scene.made) == 2 and scene.worker_pool.workers == 1)
        scene.made[-1].end(1)
        await scene.clock.next_sleep()
    await scene.clock.advance(100)
    await turns()
    assert len(scene.made) == 2


async def test_the_last_counts_are_there_at_the_end() -> None:
    """Counts that a worker sends before it ends are added."""
    async with pool_scene(1) as scene:
        worker = scene.made[0]
        worker.ignores.add(messages.Leave)
        stopping = asyncio.ensure_future(scene.worker_pool.stop())
        await scene.until(lambda: worker.received_of(messages.Leave))
        worker.channel.send(messages.Counts(usage=[UsageWindow(1.0, 2.0, {"a": (1, 0, {})})]))
        worker.end(0)
        await stopping
    assert isinstance(scene.counters, UsageCounters)
    bucket = scene.counters.drain()
    assert bucket is not None and bucket.toggles["a"].yes == 1


async def test_other_options_with_a_late_worker() -> None:
    """A worker that does not acknowledge them is logged, and delays no other worker. One that has ended is not waited for."""
    async with pool_scene(3, timeouts=SHORT) as scene:
        scene.made[0].ignores.add(messages.Reload)
        await scene.reload(served(port=2))
        assert scene.log.at("warn") == ["a worker is late with new keys, the others do not wait"]
        reloading = asyncio.ensure_future(scene.reload(served(port=3)))
        await scene.until(lambda: len(scene.made[0].received_of(messages.Reload)) == 2)
        scene.made[0].end(1)
        await reloading


async def test_reloading_files() -> None:
    """All workers reload their own files. No option changes, and no acknowledgement is expected."""
    async with pool_scene(2) as scene:
        await scene.reload(served(port=2))
        scene.worker_pool.reload_files()
        await scene.until(lambda: all(len(worker.received_of(messages.Reload)) == 2 for worker in scene.made))
        assert {worker.received_of(messages.Reload)[1] == messages.Reload(2) for worker in scene.made} == {True}
        await scene.reload(served(port=3))
        assert scene.log.at("warn") == []


async def test_draining() -> None:
    """All workers get Drain. Who ends in order is not replaced. After a failure the pool starts a new worker, which drains."""
    async with pool_scene(3) as scene:
        scene.worker_pool.drain()
        await scene.until(lambda: all(worker.received_of(messages.Drain) for worker in scene.made))
        scene.made[0].end(0)
        await scene.until(lambda: scene.worker_pool.workers == 2)
        scene.made[1].end(1)
        await scene.until(lambda: len(scene.made) == 4 and scene.made[3].received_of(messages.Drain))
        await scene.until(lambda: scene.worker_pool.workers == 2)
        assert len(scene.made) == 4 and scene.worker_pool.restarts == 1
        assert scene.made[2].received_of(messages.Adopt), "another worker takes the connections of the one that has ended"
