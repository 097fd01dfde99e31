"""The distribution of a document to every worker, in two steps."""

from __future__ import annotations

import asyncio

import pytest

from flagsvc.proxy.workers import messages
from unit.proxy.workers.worker_pool_scene import SHORT, pool_scene


async def test_two_steps() -> None:
    """A document goes to all workers, and they switch when all have prepared it."""
    async with pool_scene(3) as scene:
        first, second, third = scene.made
        third.ignores.add(messages.Prepare)
        key = object()
        preparing = asyncio.ensure_future(scene.distribution.prepare(key, b"document"))
        await scene.until(lambda: third.received_of(messages.Prepare))
        assert not preparing.done()
        third.channel.send(messages.Prepared(1, "revision"))
        await preparing
        assert first.bodies == second.bodies == [b"document"]
        assert not [worker for worker in scene.made if worker.received_of(messages.Switch)]
        scene.distribution.switch(key)
        await scene.distribution.wait_settled()
        assert [worker.received_of(messages.Switch) for worker in scene.made] == [[messages.Switch(1)]] * 3
        assert scene.log.at("warn") == []


async def test_a_late_worker() -> None:
    """The others do not wait for ever. The late worker gets the switch too, and is replaced if it never prepares the document."""
    async with pool_scene(2, timeouts=SHORT) as scene:
        late = scene.made[1]
        late.ignores.add(messages.Prepare)
        key = object()
        await scene.distribution.prepare(key, b"document")
        assert scene.log.at("warn") == ["a worker is late with a configuration, the others do not wait"]
        scene.distribution.switch(key)
        await scene.until(lambda: scene.made[0].received_of(messages.Switch) and late.received_of(messages.Switch))
        await scene.until(lambda: late.killed)
        await scene.until(lambda: len(scene.made) == 3 and scene.made[2].received_of(messages.Switch))
        assert scene.made[2].received_of(messages.Switch) == [messages.Switch(1)]


@pytest.mark.parametrize("gone", [False, True])
async def test_a_late_worker_that_stays(monkeypatch: pytest.MonkeyPatch, gone: bool) -> None:
    """A worker that prepares the document after the others have switched stays; so does each worker if the environment is gone."""
    async with pool_scene(2, timeouts=SHORT._replace(stuck=0.5), names=("a", "b")) as scene:
        distribution, late = scene.distributions[1], scene.made[1]
        replace_if_stuck, looked = distribution._replace_if_stuck, asyncio.Event()
        monkeypatch.setattr(distribution, "_replace_if_stuck", lambda *given: (replace_if_stuck(*given), looked.set()))  # type: ignore[func-returns-value]
        late.ignores.add(messages.Prepare)
        await distribution.prepare(object(), b"document")
        if gone:
            scene.worker_pool.forget_feed(1)
        else:
            late.channel.send(messages.Prepared(1, "revision", 1))
        await looked.wait()
        assert not late.killed and scene.worker_pool.restarts == 0


async def test_a_dead_worker_is_not_waited_for() -> None:
    """A worker that ends while it prepares is not waited for."""
    async with pool_scene(2) as scene:
        scene.made[1].ignores.add(messages.Prepare)
        preparing = asyncio.ensure_future(scene.distribution.prepare(object(), b"document"))
        await scene.until(lambda: scene.made[1].received_of(messages.Prepare))
        scene.made[1].end(1)
        await preparing
        assert scene.log.at("warn") == []


async def test_a_worker_that_came_between_two_documents() -> None:
    """A worker that has only the newer document gets the older one before it switches to that."""
    async with pool_scene(1) as scene:
        older, newer = object(), object()
        await scene.distribution.prepare(older, b"older")
        scene.made[0].end(1)
        await scene.until(lambda: len(scene.made) == 2 and scene.worker_pool.workers == 1)
        late = scene.made[1]
        await scene.distribution.prepare(newer, b"newer")
        for key in (older, newer):
            scene.distribution.switch(key)
            await scene.distribution.wait_settled()
        assert late.bodies == [b"newer", b"older"]
        assert [each for each in late.received[1:] if not isinstance(each, messages.Checked)] == [
            messages.Prepare(2), messages.Prepare(1), messages.Switch(1), messages.Switch(2),
        ]  # fmt: skip


async def test_a_document_that_nobody_serves() -> None:
    """A prepared document need not be switched to. Workers can still switch to an older document that is kept."""
    async with pool_scene(1) as scene:
        keys = [object() for _ in range(5)]
        for number, key in enumerate(keys):
            await scene.distribution.prepare(key, b"%d" % number)
        scene.distribution.switch(object())
        scene.distribution.switch(keys[0])
        assert not scene.distribution.has_configuration
        scene.distribution.switch(keys[3])
        await scene.distribution.wait_settled()
        assert scene.made[0].received_of(messages.Switch) == [messages.Switch(4)]
