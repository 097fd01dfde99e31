"""Pings and silence of one process. Workers that do not answer: when they are killed, and whether the pool counts as answering."""

from __future__ import annotations

from flagsvc.proxy.workers import messages
from unit.proxy.workers.worker_pool_scene import FakeWorker, PoolScene, pool_scene

TIMEOUT_S = 2.0


async def let_pass(scene: PoolScene, seconds: float, step: float = 0.2) -> None:
    """Let time pass in steps, and handle the answers of workers in between."""
    for _ in range(round(seconds / step)):
        await scene.clock.advance(step)
        await wait_answered(scene)


async def wait_answered(scene: PoolScene) -> None:
    """Wait until every worker that answers has answered."""
    for slot in scene.worker_pool._slots:
        present = [worker for worker in scene.made if slot.child is worker]
        answers = bool(present) and not present[0].ignores & {messages.Ping, messages.Welcome}
        await scene.until(lambda: not answers or not slot.pulse.is_awaiting_answer)  # noqa: B023


def ignore_pings(*workers: FakeWorker) -> None:
    for worker in workers:
        worker.ignores.add(messages.Ping)


async def test_a_silent_worker_is_replaced() -> None:
    """It is killed within the timeout and two more checks, also soon after its start. That is logged and counted."""
    async with pool_scene(2, timeout_s=TIMEOUT_S) as scene:
        await let_pass(scene, 1)
        for number in range(3):
            silent = scene.made[-1]
            ignore_pings(silent)
            before = scene.clock.monotonic()
            while not silent.killed:
                await let_pass(scene, 0.2)
            assert TIMEOUT_S <= scene.clock.monotonic() - before <= TIMEOUT_S + 0.7
            await scene.until(lambda: len(scene.made) == number + 3 and scene.worker_pool.workers == 2)  # noqa: B023
            await let_pass(scene, 1)
        assert (scene.worker_pool.heartbeat.hangs, scene.worker_pool.restarts) == (3, 3)
        assert not scene.made[0].killed and scene.made[0].received_of(messages.Adopt), (
            "the other worker takes the connections that wait"
        )
        ended = [line for line in scene.log.lines if line.event == "a worker does not answer and is killed"]
        assert ended[0].fields == {"worker": 1, "pid": scene.made[1].pid, "silent_s": 2.0}


async def test_a_worker_that_answers_stays() -> None:
    """A worker that answers stays for ever. The next ping comes after its answer."""
    async with pool_scene(2, timeout_s=TIMEOUT_S) as scene:
        await let_pass(scene, 60)
        assert scene.worker_pool.heartbeat.hangs == 0 and len(scene.made) == 2
        ignore_pings(*scene.made)
        counts = [len(worker.received_of(messages.Ping)) for worker in scene.made]
        await let_pass(scene, 1.5)
        assert [len(worker.received_of(messages.Ping)) - 1 for worker in scene.made] == counts


async def test_a_delayed_parent_kills_no_worker() -> None:
    """A delayed parent, as after a suspended machine, reads the answers that have arrived before it kills a worker."""
    async with pool_scene(1, timeout_s=TIMEOUT_S) as scene:
        await let_pass(scene, 1)
        [worker] = scene.made
        ignore_pings(worker)
        for _ in range(4):  # each look comes a minute late
            scene.clock._elapsed += 60
            await scene.clock.advance(0)
        assert not worker.killed
        scene.worker_pool._slots[0].pulse.silent_s = TIMEOUT_S - 0.1
        scene.clock._elapsed += 60
        await scene.clock.advance(0)
        worker.channel.send(messages.Pong())
        await scene.until(lambda: scene.worker_pool._slots[0].pulse.silent_s == 0)
        await scene.clock.advance(0.2)
        assert not worker.killed and scene.worker_pool.heartbeat.hangs == 0  # type: ignore[redundant-expr]


async def test_a_new_process_has_longer() -> None:
    """A new process has half a minute for its first answer; then it is killed as well."""
    async with pool_scene(1, timeout_s=TIMEOUT_S) as scene:
        scene.ignores |= {messages.Welcome, messages.Ping}
        scene.made[0].end(1)
        await scene.until(lambda: len(scene.made) == 2 and scene.made[1].received)
        starting = scene.made[1]
        await let_pass(scene, 29)
        assert not starting.killed
        scene.ignores.clear()
        await let_pass(scene, 2)
        assert starting.killed
        await scene.until(lambda: len(scene.made) == 3 and scene.worker_pool.workers == 1)  # type: ignore[unreachable]


async def test_whether_the_pool_answers() -> None:
    """At least one worker must answer. A worker that is silent for half of the timeout does not count until it answers."""
    scene = PoolScene(2, timeout_s=TIMEOUT_S)
    assert not scene.worker_pool.is_answering
    scene.worker_pool.start()
    await scene.worker_pool.wait_started()
    await let_pass(scene, 1)
    ignore_pings(scene.made[0])
    await let_pass(scene, 0.6)
    ignore_pings(scene.made[1])
    await let_pass(scene, 0.8)
    assert scene.worker_pool.is_answering
    await let_pass(scene, 0.6)  # type: ignore[unreachable]
    assert not scene.worker_pool.is_answering and scene.worker_pool.workers == 2
    scene.made[1].channel.send(messages.Pong())
    await scene.until(lambda: scene.worker_pool.is_answering)
    await scene.worker_pool.stop()


async def test_without_a_timeout_no_worker_is_pinged() -> None:
    """Every worker that takes connections counts."""
    assert not PoolScene(1).worker_pool.is_answering
    async with pool_scene(1) as scene:
        await scene.clock.advance(100)
        assert not scene.made[0].received_of(messages.Ping) and scene.worker_pool.is_answering


async def test_one_that_does_not_even_die() -> None:
    """It is logged once."""
    async with pool_scene(1, timeout_s=TIMEOUT_S) as scene:
        await let_pass(scene, 1)
        [worker] = scene.made
        ignore_pings(worker)
        worker.kill = lambda: None  # type: ignore[method-assign]
        await let_pass(scene, 10)
        assert scene.worker_pool.heartbeat.hangs == 1
        worker.end(-9)
        await scene.until(lambda: len(scene.made) == 2 and scene.worker_pool.workers == 1)
