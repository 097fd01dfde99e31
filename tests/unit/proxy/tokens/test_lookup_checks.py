"""Known tokens are asked about again, and stored: requests, restarts, outages of the upstream and of storage, and the end."""

from __future__ import annotations

import asyncio
import json

import pytest

from flagsvc.core.errors import UpstreamError
from flagsvc.proxy.tokens import Budget, lookup
from flagsvc.proxy.tokens.book import KnownToken, digest_of, unpack
from flagsvc.proxy.tokens.lookup import LONGEST_PAUSE_S, STORE_S
from flagsvc.testing import FakeClock, turns
from support.lookup_scene import AWAY, FRONTEND, INTERVAL_S, RATE, SERVER, LookupScene, MemoryTokens, lookup_scene


async def test_a_request_while_a_question_is_on_its_way() -> None:
    """The answer may be older than the request: the token is asked about once more."""
    async with lookup_scene() as world:
        await world.know("a")
        world.gate = asyncio.Event()
        world.lookup.check_now()
        await turns()
        world.lookup.check_now()
        world.gate.set()
        await turns()
        assert world.questions == [["a"], ["a"]]


async def test_a_check_on_request_while_the_upstream_is_away() -> None:
    """Every token stays known. Each request asks at once, also within a pause; the answer counts when it comes."""
    async with lookup_scene() as world:
        await world.know("a", "b")
        del world.grants["a"]
        world.fault = AWAY
        for number in range(1, 4):
            world.lookup.check_now()
            await turns()
            assert len(world.questions) == number and world.revoked == []
            assert (await world.find("a"), await world.find("b")) == (FRONTEND, FRONTEND)
            await world.clock.advance(1)
        world.fault = None
        await world.clock.advance(LONGEST_PAUSE_S)
        assert world.revoked == ["a"] and await world.find("new") is None, "the pause is over for unknown tokens, too"


async def test_many_tokens_are_checked_within_the_budget() -> None:
    """A thousand tokens are ten questions, in the time that the budget gives them, however often they are requested."""
    names = [f"token-{number}" for number in range(1000)]
    async with lookup_scene() as world:
        await world.know(*names)
        await world.clock.advance(5)
        world.lookup.check_now()
        await turns()
        assert len(world.questions) <= RATE
        await world.clock.advance(2)
        assert sorted(token for each in world.questions for token in each) == sorted(names)
        world.questions.clear()
        for _ in range(100):
            world.lookup.check_now()
            await world.clock.advance(0.1)
        assert len(world.questions) <= 11 * RATE


async def test_a_token_that_is_forgotten_before_it_is_checked() -> None:
    """It is not asked about: that would make it known again."""
    async with lookup_scene() as world:
        await world.know("a", "b")
        world.lookup.check_now()
        world.lookup.book.known.clear()
        await turns()
        assert world.questions == [] and world.lookup.known == 0


async def test_the_regular_check_obeys_the_upstream() -> None:
    """Within a pause that the upstream has asked for, for any reason, known tokens are not asked about; they stay known."""
    async with lookup_scene() as world:
        await world.know("a")
        await world.clock.advance(INTERVAL_S - 11)
        world.fault = UpstreamError("throttled", "no", status=429, retry_after=300.0)
        assert await world.find("new") == 300.0
        assert world.questions == [["new"]]
        await world.clock.advance(299)
        assert len(world.questions) == 1, "the check was due ten seconds after the answer"
        await world.clock.advance(1)
        assert world.questions[1:] == [["a"]], "this answer asks for a pause, too"
        await world.clock.advance(299)
        assert len(world.questions) == 2 and await world.find("a") == FRONTEND and world.revoked == []
        world.fault = None
        await world.clock.advance(1)
        assert world.questions[2:] == [["a"]]


async def test_a_restart_asks_again() -> None:
    """A stored token works at once when it is used, and is asked about then: one that was revoked ends."""
    clock = FakeClock()
    async with lookup_scene(clock=clock) as world:
        await world.know("a", "b", "unused")
    async with lookup_scene(world.store, clock) as other:
        other.grants["b"] = FRONTEND
        assert (await other.find("a"), await other.find("b")) == (FRONTEND, FRONTEND)
        assert other.questions == []
        await turns()
        assert [sorted(each) for each in other.questions] == [["a", "b"]] and other.revoked == ["a"]
        assert (await other.find("a"), await other.find("b")) == (None, FRONTEND)
        await turns()
        assert len(other.questions) == 1, "each is asked about once"


async def test_random_tokens_are_not_stored() -> None:
    """Only a change of known tokens writes the record: callers could otherwise have it written all the time."""
    async with lookup_scene() as world:
        await world.know("a")
        await world.clock.advance(STORE_S)
        assert world.store.saved == 1
        for number in range(100):
            assert await world.find(f"random-{number}") is None
            await world.clock.advance(STORE_S)
        assert world.store.saved == 1 and len(world.questions) == 100
        assert await world.find("a") == FRONTEND
        await world.clock.advance(STORE_S)
        assert world.store.saved == 1
        world.grants["b"] = FRONTEND
        assert await world.find("b") == FRONTEND
        await world.clock.advance(STORE_S)
        assert world.store.saved == 2


async def test_each_check_is_stored() -> None:
    """The moments in the record are those of the last check, while the process runs, and not only at its end."""
    async with lookup_scene() as world:
        await world.know("a")
        began = world.clock.now()
        for number in range(1, 4):
            await world.clock.advance(INTERVAL_S + STORE_S)
            assert world.store.data is not None
            [stored] = json.loads(world.store.data)["tokens"]
            assert stored["checked"] > began + (number - 1) * INTERVAL_S and world.store.saved == number + 1


async def test_a_store_that_fails_is_tried_again() -> None:
    """The pauses grow to a minute, without another change; then the record is stored."""
    async with lookup_scene() as world:
        world.store.is_full = True
        await world.know("a")
        assert world.store.saved == 1
        await world.clock.advance(20)
        assert 3 <= world.store.saved <= 6
        await world.clock.advance(600)
        assert 12 <= world.store.saved <= 30
        world.store.is_full = False
        await world.clock.advance(LONGEST_PAUSE_S)
        assert world.store.data is not None
        before = world.store.saved
        await world.clock.advance(600)
        assert world.store.saved == before


async def test_processes_that_share_a_record() -> None:
    """Each process adds its known tokens, until it has asked again. No process stores a token that another has taken back."""
    clock = FakeClock()
    async with lookup_scene(clock=clock) as one, lookup_scene(one.store, clock) as other:
        await one.know("of-one", "of-both")
        await other.know("of-other", "of-both")
        await one.know("later")
        assert known_in(one) == {"of-one", "of-both", "of-other", "later"}
        one.grants.clear()
        one.lookup.check_now()
        await turns()
        await clock.advance(STORE_S)
        assert known_in(one) == {"of-other"}
        await other.know("new")
        assert known_in(one) == {"of-other", "of-both", "new"}, "the other one has not asked about this one yet"
        other.grants.clear()
        other.lookup.check_now()
        await turns()
        await clock.advance(STORE_S)
        assert known_in(one) == set()


def known_in(world: LookupScene) -> set[str]:
    """Return which tokens a process knows that starts now."""
    started = LookupScene(world.store, world.clock)
    stored: dict[str, KnownToken] = {}
    assert world.store.data is not None
    for part in unpack(world.store.data) or ():
        stored |= part
    started.lookup.book.restore(stored)
    names = ("of-one", "of-both", "of-other", "later", "new")
    return {name for name in names if started.lookup.book.find(name)}


async def test_a_token_that_only_storage_knows() -> None:
    """It is stored again as long as it is there, and forgotten when another process has taken it back."""
    clock = FakeClock()
    async with lookup_scene(clock=clock) as first:
        await first.know("of-one", "of-both")
    async with lookup_scene(first.store, clock) as one, lookup_scene(first.store, clock) as other:
        await one.know("new")
        assert known_in(one) == {"of-one", "of-both", "new"}
        other.grants |= {"of-both": FRONTEND, "new": SERVER}
        assert await other.find("of-one") == FRONTEND
        await turns()
        await clock.advance(STORE_S)
        assert other.revoked == ["of-one"] and known_in(one) == {"of-both", "new"}
        await one.know("later")
        assert known_in(one) == {"of-both", "new", "later"} and one.lookup.book.find("of-one") is None


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


async def test_an_upstream_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller does not wait for ever, but the answer counts when it comes."""
    monkeypatch.setattr(lookup, "WAIT_S", 0.0)
    async with lookup_scene() as world:
        world.grants["a"] = FRONTEND
        world.gate = asyncio.Event()
        assert await world.find("a") == 1.0
        assert await world.find("a") == 1.0 and len(world.questions) == 1
        world.gate.set()
        await turns()
        assert await world.find("a") == FRONTEND and len(world.questions) == 1


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


async def test_nothing_is_asked_about_nothing() -> None:
    """If all callers have their answers before a question may go out, no question goes out."""
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


async def test_what_storage_tells_is_told() -> None:
    """Once for each token: after the start, and when another process has added some. What is known already is not told again."""
    clock = FakeClock()
    async with lookup_scene(clock=clock) as world:
        await world.know("first")
    async with lookup_scene(world.store, clock) as other:
        assert other.restored == [[digest_of("first")]]
        async with lookup_scene(world.store, clock) as third:
            await third.know("second")
        await other.know("third")
        await clock.advance(STORE_S)
        assert other.restored == [[digest_of("first")], [digest_of("second")]]


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


async def test_a_record_that_cannot_be_read_at_the_start() -> None:
    """It is read later, also if nothing changes. Until then, and at an end before that, nothing overwrites it."""
    clock = FakeClock()
    async with lookup_scene(clock=clock) as world:
        await world.know("before")
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


async def test_an_end_while_tokens_are_being_stored() -> None:
    """A write that the end interrupts is done again."""
    async with lookup_scene() as world:
        await world.know("a")
        world.store.gate = asyncio.Event()
        await world.clock.advance(STORE_S)
        ending = asyncio.ensure_future(world.lookup.stop(world))
        await turns()
        world.store.gate.set()
        await ending
        assert world.store.saved == 1


async def test_a_request_after_the_end() -> None:
    """It is turned away and takes no place: no caller would ever give that back. So is a caller that waits."""
    async with lookup_scene() as world:
        world.gate = asyncio.Event()
        waiting = await world.start_find("a", b"net")
        ending = asyncio.ensure_future(world.lookup.stop(world))
        late = await world.start_find("b", b"net")
        assert (await waiting, await late) == (1.0, 1.0)
        await ending
        assert await world.find("c", b"net") == 1.0
        await world.clock.advance(60)
        assert world.places.tokens.taken == 0 and len(world.questions) == 1


async def test_a_slow_store_is_not_waited_for() -> None:
    """Callers are answered while the stored tokens are still being read."""
    store = MemoryTokens()
    store.gate = asyncio.Event()
    async with lookup_scene(store) as world:
        world.grants["a"] = FRONTEND
        assert await world.find("a") == FRONTEND
        store.gate.set()
