"""An upstream that cannot be asked about tokens, restarts, and the end: what is known stays known, and is stored."""

from __future__ import annotations

import asyncio

import pytest

from flagsvc.core.errors import UpstreamError
from flagsvc.proxy.tokens import Budget, bounds
from flagsvc.proxy.tokens.book import digest_of
from flagsvc.proxy.tokens.lookup import LONGEST_PAUSE_S, STORE_S
from flagsvc.testing import FakeClock, turns
from support.aio import asynchronous
from support.lookup_scene import AWAY, FRONTEND, INTERVAL_S, SERVER, MemoryTokens, lookup_scene

FAULTS = [
    UpstreamError("unauthorized", "no", status=401),
    UpstreamError("unauthorized", "no", status=403),
    UpstreamError("not-found", "no", status=404),
    UpstreamError("throttled", "no", status=429),
    UpstreamError("server", "no", status=500),
    UpstreamError("unexpected", "no", status=204),
    UpstreamError("document", "no"),
    UpstreamError("network", "no"),
]


# ---- an upstream that does not answer


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.kind}-{fault.status}")
@asynchronous
async def test_a_failure_is_no_answer(fault: UpstreamError) -> None:
    """With any fault of the upstream, an unknown token cannot be looked up for a moment, and a known one goes on."""
    async with lookup_scene() as world:
        world.grants |= {"known": FRONTEND, "new": SERVER}
        assert await world.find("known") == FRONTEND
        world.fault = fault
        seconds = await world.find("new")
        assert isinstance(seconds, float) and 1.0 <= seconds <= 60.0
        assert not world.lookup.is_refused("new"), "it is not known to be unknown"
        assert await world.find("known") == FRONTEND
        await world.clock.advance(INTERVAL_S + 2 * LONGEST_PAUSE_S)
        assert await world.find("known") == FRONTEND and world.revoked == []
        world.fault = None
        await world.clock.advance(LONGEST_PAUSE_S)
        assert await world.find("new") == SERVER
    assert world.log.at("warn", "error")[0] == "tokens could not be looked up"
    assert world.log.at("info")[-1] == "tokens are looked up again"


@asynchronous
async def test_no_question_within_a_pause() -> None:
    """After a failure no caller waits and nothing is asked until the pause is over; it grows to a minute."""
    async with lookup_scene() as world:
        world.fault = AWAY
        pauses = []
        for number in range(9):
            pause = await world.find(f"token-{number}")
            assert isinstance(pause, float)
            pauses.append(pause)
            for each in range(20):
                assert await world.find(f"other-{each}") == pause
            assert len(world.questions) == number + 1
            await world.clock.advance(pause)
        assert pauses == sorted(pauses) and pauses[0] == 1.0 and 30.0 <= pauses[-1] <= 60.0


@asynchronous
async def test_the_upstream_asks_for_a_pause() -> None:
    """Its Retry-After is obeyed, and passed on to callers."""
    async with lookup_scene() as world:
        world.fault = UpstreamError("throttled", "no", status=429, retry_after=25.0)
        assert await world.find("a") == 25.0
        await world.clock.advance(24)
        assert await world.find("a") == 1.0 and len(world.questions) == 1
        world.fault = None
        await world.clock.advance(1)
        assert await world.find("a") is None and len(world.questions) == 2


@asynchronous
async def test_a_check_that_fails_in_the_middle_goes_on() -> None:
    """Tokens that could not be checked are checked when the upstream answers again, and not an interval later."""
    async with lookup_scene() as world:
        names = [f"token-{number}" for number in range(250)]
        await world.know(*names)
        world.fault = AWAY
        await world.clock.advance(INTERVAL_S - world.clock.monotonic())
        del world.grants["token-249"]
        assert world.revoked == []
        await world.clock.advance(600)
        world.fault = None
        await world.clock.advance(120)
        assert world.revoked == ["token-249"]


@asynchronous
async def test_an_upstream_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller does not wait for ever, but the answer counts when it comes."""
    monkeypatch.setattr(bounds, "WAIT_S", 0.0)
    async with lookup_scene() as world:
        world.grants["a"] = FRONTEND
        world.gate = asyncio.Event()
        assert await world.find("a") == 1.0
        assert await world.find("a") == 1.0 and len(world.questions) == 1
        world.gate.set()
        await turns()
        assert await world.find("a") == FRONTEND and len(world.questions) == 1


@asynchronous
async def test_an_unexpected_error() -> None:
    """The loop starts again after a pause, and answers those that still wait; no new caller needs to come for that."""
    async with lookup_scene() as world:
        world.grants["a"] = FRONTEND
        world.fault = RuntimeError("no")
        waiting = await world.start_find("a")
        world.fault = None
        await world.clock.advance(1)
        assert await waiting == FRONTEND
        world.restarts = 1


@asynchronous
async def test_nothing_is_asked_about_nothing() -> None:
    """If those that waited have got their answers before a question may go out, none goes out."""
    clock = FakeClock()
    budget = Budget(1, clock, lambda: 0.0)
    async with lookup_scene(clock=clock, budget=budget) as world:
        world.grants["a"] = FRONTEND
        assert await world.find("a") == FRONTEND
        late = await world.start_find("b")
        world.fault = AWAY
        world.lookup._turn_away()
        await clock.advance(10)
        assert await late == 1.0 and world.questions == [["a"]]


# ---- storage and the end


@asynchronous
async def test_known_tokens_survive_a_restart() -> None:
    """Soon after a change they are stored, without their texts; the next process knows them without a question."""
    clock = FakeClock()
    async with lookup_scene(clock=clock) as world:
        world.grants |= {"*:production.very-secret": FRONTEND, "b": SERVER}
        await asyncio.gather(world.find("*:production.very-secret"), world.find("b"), world.find("no"))
        assert world.store.saved == 0
        await clock.advance(STORE_S)
        assert world.store.saved == 1 and world.store.data is not None and b"secret" not in world.store.data
        await clock.advance(60)
        assert world.store.saved == 1, "nothing has changed"
    assert world.store.saved == 1
    async with lookup_scene(world.store, clock) as other:
        assert other.lookup.known == 2
        assert (await other.find("*:production.very-secret"), await other.find("b")) == (FRONTEND, SERVER)
        assert other.questions == []
        other.grants["b"] = SERVER
        await clock.advance(INTERVAL_S)
        assert other.revoked == ["*:production.very-secret"], "they are checked like any other"


@asynchronous
async def test_what_storage_tells_is_told() -> None:
    """Once for each token: after the start, and when another process has added some. What is known already is not told again."""
    clock = FakeClock()
    async with lookup_scene(clock=clock) as world:
        world.grants["first"] = FRONTEND
        await world.find("first")
    async with lookup_scene(world.store, clock) as other:
        assert other.restored == [[digest_of("first")]]
        async with lookup_scene(world.store, clock) as third:
            third.grants["second"] = FRONTEND
            await third.find("second")
        other.grants["third"] = FRONTEND
        await other.find("third")
        await clock.advance(STORE_S)
        assert other.restored == [[digest_of("first")], [digest_of("second")]]


@asynchronous
async def test_an_old_stored_token_is_asked_about() -> None:
    """A token that was checked long ago is asked about first; it counts while the upstream is away, and not if it is revoked."""
    clock = FakeClock()
    async with lookup_scene(clock=clock) as world:
        world.grants |= {"a": FRONTEND, "b": SERVER}
        await asyncio.gather(world.find("a"), world.find("b"))
    await clock.advance(INTERVAL_S)
    async with lookup_scene(world.store, clock) as away:
        away.fault = AWAY
        assert await away.find("a") == FRONTEND and len(away.questions) == 1
        assert await away.find("b") == SERVER and len(away.questions) == 1
    async with lookup_scene(world.store, clock) as back:
        back.grants["b"] = SERVER
        assert (await back.find("a"), await back.find("b")) == (None, SERVER)


@asynchronous
async def test_a_record_that_cannot_be_read_at_the_start() -> None:
    """It is read later, also if nothing changes. Until then, and at an end before that, nothing overwrites it."""
    clock = FakeClock()
    async with lookup_scene(clock=clock) as world:
        world.grants["before"] = FRONTEND
        await world.find("before")
    stored = world.store.data
    world.store.is_away = True
    async with lookup_scene(world.store, clock) as away:
        away.grants["meanwhile"] = SERVER
        assert await away.find("meanwhile") == SERVER
        await clock.advance(100)
    assert world.store.data == stored
    async with lookup_scene(world.store, clock) as late:
        assert late.lookup.known == 0
        late.store.is_away = False
        await clock.advance(LONGEST_PAUSE_S)
        assert await late.find("before") == FRONTEND and late.questions == []


@asynchronous
async def test_the_last_changes_are_stored() -> None:
    """What was found a moment before the end is stored at the end."""
    async with lookup_scene() as world:
        world.grants["a"] = FRONTEND
        await world.find("a")
    assert world.store.saved == 1


@asynchronous
async def test_an_end_while_tokens_are_being_stored() -> None:
    """A write that the end interrupts is done again."""
    async with lookup_scene() as world:
        world.grants["a"] = FRONTEND
        await world.find("a")
        world.store.gate = asyncio.Event()
        await world.clock.advance(STORE_S)
        ending = asyncio.ensure_future(world.lookup.stop(world))
        await turns()
        world.store.gate.set()
        await ending
        assert world.store.saved == 1


@asynchronous
async def test_the_end() -> None:
    """Callers that wait are turned away; no question goes out after it."""
    async with lookup_scene() as world:
        world.gate = asyncio.Event()
        waiting = await world.start_find("a")
        await world.lookup.stop(world)
        assert await waiting == 1.0
        await world.clock.advance(60)
        assert len(world.questions) == 1


@asynchronous
async def test_a_request_after_the_end() -> None:
    """It is turned away and takes no place: no caller would ever give that back."""
    async with lookup_scene() as world:
        world.gate = asyncio.Event()
        waiting = await world.start_find("a", b"net")
        ending = asyncio.ensure_future(world.lookup.stop(world))
        late = await world.start_find("b", b"net")
        assert (await waiting, await late) == (1.0, 1.0)
        await ending
        assert await world.find("c", b"net") == 1.0
        assert world.places.tokens.taken == 0


@asynchronous
async def test_a_slow_store_is_not_waited_for() -> None:
    """Callers are answered while the stored tokens are still being read."""
    store = MemoryTokens()
    store.gate = asyncio.Event()
    async with lookup_scene(store) as world:
        world.grants["a"] = FRONTEND
        assert await world.find("a") == FRONTEND
        store.gate.set()
