"""The table of a connection: it is complete, and its invariants hold."""

from __future__ import annotations

import itertools

from flagsvc.http.server import states

PAIRS = list(itertools.product(range(states.STATES), range(states.EVENTS)))


def after(state: int, event: int) -> int:
    return states.state_of(states.cell(state, event))


def action(state: int, event: int) -> int:
    return states.action_of(states.cell(state, event))


def test_every_pair_is_there() -> None:
    """Each cell has a known state and a known action."""
    assert len(states.TABLE) == states.STATES * states.EVENTS
    assert all(after(*pair) in range(states.STATES) for pair in PAIRS)
    assert all(action(*pair) in range(states.CHECK_WRITING + 1) for pair in PAIRS)


def test_a_connection_that_ends_does_not_open_again() -> None:
    """After the last answer there are no more requests, and a closed connection stays closed."""
    for event in range(states.EVENTS):
        assert after(states.CLOSED, event) == states.CLOSED
        assert after(states.LINGERING, event) in (states.LINGERING, states.CLOSED)
        assert after(states.LAST, event) in (states.LAST, states.LINGERING, states.CLOSED)
        assert after(states.IN_PARTS, event) in (states.IN_PARTS, states.LAST, states.LINGERING, states.CLOSED)


def test_a_request_has_one_answer() -> None:
    """Once an answer is written or being made, no event makes a second one."""
    over = (states.LAST, states.IN_PARTS, states.LINGERING, states.CLOSED)
    for state in (states.DISCARDING, states.ANSWERING_EARLY, states.ANSWERING, *over):
        assert action(state, states.BAD_REQUEST) == states.NOTHING
    replies = {state for state in range(states.STATES) if action(state, states.ANSWER_MADE) == states.REPLY}
    assert replies == {states.ANSWERING_EARLY, states.ANSWERING}
