"""The table of a connection: it is complete, and its invariants hold."""

from __future__ import annotations

import itertools

from flagsvc.http.server import states
from flagsvc.http.server.states import (
    ANSWERING,
    ANSWERING_EARLY,
    CLOSED,
    DISCARDING,
    EVENTS,
    IN_PARTS,
    LAST,
    LINGERING,
    STATES,
    action_of,
    cell,
    state_of,
)

PAIRS = list(itertools.product(range(STATES), range(EVENTS)))


def after(state: int, event: int) -> int:
    return state_of(cell(state, event))


def action(state: int, event: int) -> int:
    return action_of(cell(state, event))


def test_every_pair_is_there() -> None:
    """Each cell has a known state and a known action."""
    assert len(states.TABLE) == STATES * EVENTS
    assert all(after(*pair) in range(STATES) for pair in PAIRS)
    assert all(action(*pair) in range(states.CHECK_WRITING + 1) for pair in PAIRS)


def test_a_connection_that_ends_does_not_open_again() -> None:
    """After the last answer there are no more requests, and a closed connection stays closed."""
    for event in range(EVENTS):
        assert after(CLOSED, event) == CLOSED
        assert after(LINGERING, event) in (LINGERING, CLOSED)
        assert after(LAST, event) in (LAST, LINGERING, CLOSED)
        assert after(IN_PARTS, event) in (IN_PARTS, LAST, LINGERING, CLOSED)


def test_a_request_has_one_answer() -> None:
    """Once an answer is written or being made, no event makes a second one."""
    for state in (DISCARDING, ANSWERING_EARLY, ANSWERING, LAST, IN_PARTS, LINGERING, CLOSED):
        assert action(state, states.BAD_REQUEST) == states.NOTHING
    replies = {state for state in range(STATES) if action(state, states.ANSWER_MADE) == states.REPLY}
    assert replies == {ANSWERING_EARLY, ANSWERING}
