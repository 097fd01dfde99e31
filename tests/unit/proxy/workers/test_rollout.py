"""How a document comes to every worker in two steps."""

from __future__ import annotations

import asyncio

import pytest

from flagsvc.proxy.workers import messages as say
from support.aio import asynchronous
from support.crew_scene import SHORT, hall


@asynchronous
async def test_two_steps() -> None:
    """A document goes to all, and nobody is told to switch before all are ready."""
    async with hall(3) as around:
        first, second, third = around.made
        third.deaf.add(say.Prepare)
        key = object()
        preparing = asyncio.ensure_future(around.worker_pool.rollout.prepare(key, b"document"))
        await around.until(lambda: third.told(say.Prepare))
        assert not preparing.done()
        third.channel.send(say.Prepared(1, "revision"))
        await preparing
        assert first.bodies == second.bodies == [b"document"]
        assert not [worker for worker in around.made if worker.told(say.Switch)]
        around.worker_pool.rollout.switch(key)
        await around.worker_pool.rollout.settled()
        assert [worker.told(say.Switch) for worker in around.made] == [[say.Switch(1)]] * 3
        assert around.log.at("warn") == []


@asynchronous
async def test_a_late_worker() -> None:
    """The others do not wait for it for ever; it is told to switch like them, and is replaced if it never gets ready."""
    async with hall(2, patience=SHORT) as around:
        late = around.made[1]
        late.deaf.add(say.Prepare)
        key = object()
        await around.worker_pool.rollout.prepare(key, b"document")
        assert around.log.at("warn") == ["a worker is late with a configuration, the others do not wait"]
        around.worker_pool.rollout.switch(key)
        await around.until(lambda: around.made[0].told(say.Switch) and late.told(say.Switch))
        await around.until(lambda: late.killed)
        await around.until(lambda: len(around.made) == 3 and around.made[2].told(say.Switch))
        assert around.made[2].told(say.Switch) == [say.Switch(1)]


@asynchronous
async def test_a_late_worker_that_gets_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that gets ready after the others have switched stays."""
    async with hall(2, patience=SHORT._replace(stuck=0.5)) as around:
        rollout, late = around.worker_pool.rollout, around.made[1]
        give_up, looked = rollout._give_up, asyncio.Event()
        monkeypatch.setattr(rollout, "_give_up", lambda *given: (give_up(*given), looked.set()))  # type: ignore[func-returns-value]
        late.deaf.add(say.Prepare)
        await rollout.prepare(object(), b"document")
        late.channel.send(say.Prepared(1, "revision"))
        await looked.wait()
        assert not late.killed and around.worker_pool.restarts == 0


@asynchronous
async def test_a_dead_worker_is_not_waited_for() -> None:
    """One that ends while it prepares owes nothing."""
    async with hall(2) as around:
        around.made[1].deaf.add(say.Prepare)
        preparing = asyncio.ensure_future(around.worker_pool.rollout.prepare(object(), b"document"))
        await around.until(lambda: around.made[1].told(say.Prepare))
        around.made[1].end(1)
        await preparing
        assert around.log.at("warn") == []


@asynchronous
async def test_a_replacement_gets_what_is_served() -> None:
    """It is welcomed as warm, gets the document that is served, and switches to it."""
    async with hall(1) as around:
        key = object()
        await around.worker_pool.rollout.prepare(key, b"served")
        around.worker_pool.rollout.switch(key)
        await around.worker_pool.rollout.prepare(object(), b"not switched to")
        around.made[0].end(1)
        await around.until(lambda: len(around.made) == 2 and around.made[1].told(say.Switch))
        welcome, prepare, switch = around.made[1].heard
        assert isinstance(welcome, say.Welcome) and welcome.warm
        assert (prepare, switch) == (say.Prepare(1), say.Switch(1))
        assert around.made[1].bodies == [b"served"]


@asynchronous
async def test_a_worker_that_came_between_the_steps() -> None:
    """One that was not there when a document was given out gets it with the word to switch."""
    async with hall(1) as around:
        key = object()
        await around.worker_pool.rollout.prepare(key, b"document")
        around.made[0].end(1)
        await around.until(lambda: len(around.made) == 2 and around.worker_pool.workers == 1)
        assert not around.made[1].told(say.Prepare)
        around.worker_pool.rollout.switch(key)
        await around.worker_pool.rollout.settled()
        assert around.made[1].bodies == [b"document"]


@asynchronous
async def test_a_worker_that_came_between_two_documents() -> None:
    """One that was given the newer document and not the older gets the older one before it is told to switch to it."""
    async with hall(1) as around:
        older, newer = object(), object()
        await around.worker_pool.rollout.prepare(older, b"older")
        around.made[0].end(1)
        await around.until(lambda: len(around.made) == 2 and around.worker_pool.workers == 1)
        late = around.made[1]
        await around.worker_pool.rollout.prepare(newer, b"newer")
        for key in (older, newer):
            around.worker_pool.rollout.switch(key)
            await around.worker_pool.rollout.settled()
        assert late.bodies == [b"newer", b"older"]
        assert [each for each in late.heard[1:] if not isinstance(each, say.Checked)] == [
            say.Prepare(2), say.Prepare(1), say.Switch(1), say.Switch(2),
        ]  # fmt: skip


@asynchronous
async def test_a_document_that_nobody_serves() -> None:
    """What was prepared need not be switched to; an older one that is still on the table can be."""
    async with hall(1) as around:
        keys = [object() for _ in range(5)]
        for number, key in enumerate(keys):
            await around.worker_pool.rollout.prepare(key, b"%d" % number)
        around.worker_pool.rollout.switch(object())
        around.worker_pool.rollout.switch(keys[0])
        assert not around.worker_pool.rollout.warm
        around.worker_pool.rollout.switch(keys[3])
        await around.worker_pool.rollout.settled()
        assert around.made[0].told(say.Switch) == [say.Switch(4)]


@asynchronous
async def test_settled_without_a_configuration() -> None:
    """Where there is nothing to serve everything is settled."""
    async with hall(1) as around:
        await around.worker_pool.rollout.settled()
        assert not around.worker_pool.rollout.warm


@asynchronous
async def test_freshness_comes_to_all() -> None:
    """Every worker hears when what is served was last current, those that come later before they serve."""
    async with hall(2) as around:
        around.worker_pool.rollout.confirm(1.5)
        await around.until(lambda: all(worker.told(say.Checked) for worker in around.made))
        assert [worker.told(say.Checked) for worker in around.made] == [[say.Checked(1.5)]] * 2
        around.made[0].end(1)
        await around.until(lambda: len(around.made) == 3 and around.made[2].told(say.Checked))
        assert around.made[2].told(say.Checked) == [say.Checked(1.5)]
        assert around.worker_pool.loop_restarts == 0
