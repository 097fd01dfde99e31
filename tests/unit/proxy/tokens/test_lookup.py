"""Asking the upstream about tokens: one question at a time for each, many in one, within a budget; answers are kept.

The places of tokens that wait: one network cannot take them all, and none is ever lost.
The secrets of this process are shown to no other flag server than their own.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc import ProxyOptions
from flagsvc.proxy.tokens import Budget, OwnSecrets, UnavailableError
from flagsvc.proxy.tokens.lookup import MAX_ASKED, MAX_WAITING, RETRY_S, Places
from flagsvc.settings.environments import upstream_of_options
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


HALF = MAX_WAITING // 2


def fill(places: Places, network: bytes, number: int = 1) -> int:
    """Take places one step after another until there are no more; return how many those are."""
    before = places.taken
    try:
        while True:
            places.take(network, number)
    except UnavailableError as error:
        told = error.seconds
    assert told == RETRY_S
    return places.taken - before


def test_one_network() -> None:
    """It may have half of all places while no other network wants them. Then a second one gets most of a hundred."""
    places = Places()
    assert fill(places, b"bad") == HALF
    assert fill(places, b"good") == 84
    assert fill(places, b"bad") == 0
    places.give_back(b"bad", HALF)
    assert fill(places, b"good") == HALF - 84


def test_a_single_token_beside_many_networks_with_many() -> None:
    """A network with one token gets a place, however many others ask about as many as they may, in each size of question."""
    for size in (2, 10, 100):
        places = Places()
        for number in range(MAX_WAITING):
            fill(places, b"bad %d" % number, size)
        places.take(b"good", 1)


def test_many_networks() -> None:
    """Together they have no more than all places, the first ones more than the last ones."""
    places = Places()
    taken = [fill(places, b"%d" % number) for number in range(MAX_WAITING)]
    assert taken[0] == HALF and taken == sorted(taken, reverse=True)
    assert places.taken == MAX_WAITING


def test_an_unknown_network() -> None:
    """Callers without an address are bounded by all places only, because they may be many."""
    assert fill(Places(), b"") == MAX_WAITING


def test_too_many_at_once() -> None:
    """A request about many tokens gets places for all of them, or none."""
    places = Places()
    with pytest.raises(UnavailableError):
        places.take(b"n", HALF + 1)
    assert places.taken == 0
    places.take(b"n", HALF)
    assert places.taken == HALF


STEPS = st.lists(st.tuples(st.sampled_from([b"", b"a", b"b"]), st.integers(1, 400), st.booleans()))


@given(STEPS)
def test_places_are_never_lost(steps: list[tuple[bytes, int, bool]]) -> None:
    """Places are taken and given back in any order: the bounds hold, and nothing stays in the end."""
    places, held = Places(), list[tuple[bytes, int]]()
    for network, number, back in steps:
        if back and held:
            places.give_back(*held.pop(0))
            continue
        try:
            places.take(network, number)
        except UnavailableError:
            continue
        held.append((network, number))
        assert places.taken == sum(each for _, each in held) <= MAX_WAITING
    for each in held:
        places.give_back(*each)
    assert places.taken == 0 and places._networks == {}


def test_nothing_to_take() -> None:
    """One who needs no place is not turned away, however many are taken, and takes none."""
    places = Places()
    taken = {b"a": 300, b"b": 100, b"c": 100, b"d": 1}
    for network, number in taken.items():
        places.take(network, number)
    places.take(b"a", 0)
    places.take(b"new", 0)
    with pytest.raises(UnavailableError):
        places.take(b"a", 1)
    places.give_back(b"a", 0)
    places.give_back(b"new", 0)
    for network, number in taken.items():
        places.give_back(network, number)
    assert places.taken == 0 and places._networks == {}


ONE, TWO, THREE = "https://one.example/api", "https://two.example/api", "https://three.example/api"
A = {"flagsvc_url": ONE, "flagsvc_api_token": "*:production.a", "client_keys": ["made-up-key", "a:production.key"]}
B = {
    "flagsvc_url": TWO,
    "flagsvc_api_token": "made-up-b",
    "client_keys": "of-b",
    "exp_server_side_sdk_config_tokens": "b:production.key",
}


def options(**more: Any) -> ProxyOptions:
    """Return options of two environments with upstreams of their own; `more` are further options of the first one."""
    storage = "redis://:of-the-storage@server.example"
    return ProxyOptions(flagsvc_url=ONE, environments={"a": {**A, **more}, "b": B}, storage=storage)


def where(secrets: OwnSecrets, token: str) -> list[str]:
    """Return which upstreams may be asked about a token; an upstream of `options` has no headers of its own."""
    return [url for url in (ONE, TWO, THREE) if secrets.may_be_sent(token, upstream(url))]


def upstream(url: str, **more: Any) -> str:
    """Return the identity of the upstream at an address."""
    return upstream_of_options(ProxyOptions(flagsvc_url=url, flagsvc_api_token="t", client_keys="k", **more))


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("*:production.a", [ONE]),
        ("made-up-b", [TWO]),
        ("a:production.key", [ONE]),
        ("b:production.key", [TWO]),
        ("made-up-key", []),
        ("of-the-storage", []),
        ("of-the-bootstrap", []),
        ("*:production.of-a-caller", [ONE, TWO, THREE]),
        ("made-up-keys", [ONE, TWO, THREE]),
    ],
)
def test_where_a_token_may_be_sent(token: str, expected: list[str]) -> None:
    """A secret goes only to the upstream that has made it; any other text may be a token."""
    secrets = OwnSecrets(options(exp_bootstrap_authorization="of-the-bootstrap"))
    assert where(secrets, token) == expected


def test_former_secrets() -> None:
    """What was a secret stays one. One that two environments have belongs to both."""
    secrets = OwnSecrets(options())
    secrets.add(options(client_keys="new-key", flagsvc_api_token="*:production.new"))
    secrets.add(ProxyOptions(flagsvc_url=THREE, flagsvc_api_token="made-up-b", client_keys="only"))
    assert [where(secrets, key) for key in ("made-up-key", "new-key", "only")] == [[], [], []]
    assert where(secrets, "*:production.a") == where(secrets, "*:production.new") == [ONE]
    assert where(secrets, "made-up-b") == [TWO, THREE]


def test_tenants_of_one_address() -> None:
    """No tenant sees the token of another tenant. What is sent to the gateway is shown to neither."""
    headers = {"x-tenant": "for-the-gateway"}
    secrets = OwnSecrets(options(upstream_headers=headers))
    there, beside = upstream(ONE, upstream_headers=headers), upstream(ONE, upstream_headers={"x-tenant": "b"})
    for token, expected in (("*:production.a", (True, False)), ("for-the-gateway", (False, False))):
        assert (secrets.may_be_sent(token, there), secrets.may_be_sent(token, beside)) == expected


def test_no_secret_is_kept() -> None:
    """Only digests are."""
    assert "production" not in repr(vars(OwnSecrets(options())))
