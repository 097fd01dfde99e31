"""The places of tokens that wait: one network cannot take them all, and none is ever lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.proxy.tokens import UnavailableError
from flagsvc.proxy.tokens.lookup import MAX_WAITING, RETRY_S, Places

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
