"""Asking the upstream about tokens: one question at a time for each, many in one, within a budget; answers are kept."""

from __future__ import annotations

import asyncio

from flagsvc.proxy.tokens import Budget
from flagsvc.proxy.tokens.lookup import MAX_ASKED, MAX_WAITING
from flagsvc.testing import FakeClock, turns
from support.lookup_scene import FRONTEND, RATE, SERVER, lookup_scene


async def test_a_caller_comes_while_a_question_is_on_its_way() -> None:
    """It waits for the same answer, also if the first one goes away; other tokens wait for the next question."""
    async with lookup_scene() as world:
        world.grants |= {"a": FRONTEND, "b": SERVER}
        world.gate = asyncio.Event()
        first = await world.start_find("a")
        second, third = await world.start_find("a"), await world.start_find("b")
        assert world.places.tokens.taken == 2 and world.questions == [["a"]]
        first.cancel()
        world.gate.set()
        assert list(await asyncio.gather(second, third)) == [FRONTEND, SERVER]
        assert world.questions == [["a"], ["b"]]


async def test_many_tokens_in_one_question() -> None:
    """A question holds at most a hundred tokens, those that wait longest first, each once."""
    async with lookup_scene() as world:
        finds = [await world.start_find(f"token-{number}") for number in range(2)]
        world.gate = asyncio.Event()
        finds += [asyncio.ensure_future(world.find(f"token-{number}")) for number in range(2, 253)]
        await turns()
        world.gate.set()
        assert await asyncio.gather(*finds) == [None] * 253
        sizes = [len(each) for each in world.questions]
        assert max(sizes) == MAX_ASKED and sum(sizes) == 253
        assert [token for each in world.questions for token in each] == [f"token-{number}" for number in range(253)]


async def test_the_budget() -> None:
    """For any demand, a process sends no more requests than its rate, and as many at once as one second allows."""
    async with lookup_scene() as world:
        for second in range(20):
            for part in range(10):
                finds = [await world.start_find(f"token-{second}-{part}-{each}") for each in range(3)]
                await world.clock.advance(0.1)
            assert len(world.questions) <= RATE * (second + 2)
        await world.clock.advance(5)
        assert [each.done() for each in finds] == [True] * 3
        for start in range(20):
            assert len([each for each in world.moments if start <= each < start + 1]) <= 2 * RATE
    assert len(world.questions) >= RATE * 19, "nearly all of the budget is used"


async def test_a_pause_refills_the_budget_for_one_second_only() -> None:
    """After an hour of silence, as many requests as one second allows go out at once, and no more."""
    clock = FakeClock()
    budget = Budget(RATE, clock, lambda: 0.0)
    await clock.advance(3600)
    takes = [asyncio.ensure_future(budget.take()) for _ in range(RATE + 2)]
    await turns()
    assert sum(each.done() for each in takes) == RATE
    await clock.advance(1.1 / RATE)
    assert sum(each.done() for each in takes) == RATE + 1
    await clock.advance(1.0 / RATE)
    assert all(each.done() for each in takes)


async def test_many_networks_have_a_bound_too() -> None:
    """However many networks ask, only so many tokens wait, and they do not wait long."""
    async with lookup_scene() as world:
        world.gate = asyncio.Event()
        flood = [asyncio.ensure_future(world.find(f"t{each}", b"%d" % each)) for each in range(MAX_WAITING + 50)]
        await turns()
        assert world.places.tokens.taken == MAX_WAITING
        assert [each.result() for each in flood if each.done()] == [1.0] * 50
        world.gate.set()
        await turns()
        await world.clock.advance(MAX_WAITING / MAX_ASKED / RATE)
        assert await asyncio.gather(*flood) == [None] * MAX_WAITING + [1.0] * 50


async def test_many_requests_with_the_same_token_have_a_bound() -> None:
    """They need one question, but each waiting request holds its body."""
    async with lookup_scene() as world:
        world.gate = asyncio.Event()
        flood = [asyncio.ensure_future(world.find("t", b"%d" % each)) for each in range(MAX_WAITING + 50)]
        await turns()
        assert world.places.tokens.taken == 1
        assert [each.result() for each in flood if each.done()] == [1.0] * 50
        world.gate.set()
        assert await asyncio.gather(*flood[:MAX_WAITING]) == [None] * MAX_WAITING and len(world.questions) == 1


async def test_networks_take_turns() -> None:
    """A question holds equally many tokens of each network, so that a late caller does not wait long."""
    async with lookup_scene() as world:
        world.gate = asyncio.Event()
        flood = [asyncio.ensure_future(world.find(f"t{each}", b"bad")) for each in range(4 * MAX_ASKED)]
        await turns()
        late = await world.start_find("late", b"good")
        world.gate.set()
        await turns()
        assert late.done() and "late" in world.questions[1], "the first one had left"
        await world.clock.advance(2)
        assert await asyncio.gather(*flood) == [None] * (4 * MAX_ASKED)
