"""The table of a connection: it is complete, and its invariants hold."""

from __future__ import annotations

import itertools

import pytest

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
    WAITING,
    action_of,
    cell,
    state_of,
)

OPEN = (WAITING, DISCARDING, ANSWERING_EARLY, ANSWERING)
PAIRS = list(itertools.product(range(STATES), range(EVENTS)))


def after(state: int, event: int) -> int:
    """Return the state after an event."""
    return state_of(cell(state, event))


def action(state: int, event: int) -> int:
    """Return the action after an event."""
    return action_of(cell(state, event))


def test_every_pair_is_there() -> None:
    """Each cell has a known state and a known action."""
    assert len(states.TABLE) == STATES * EVENTS
    assert all(after(*pair) in range(STATES) for pair in PAIRS)
    assert all(action(*pair) in range(states.CHECK_WRITING + 1) for pair in PAIRS)


def test_every_event_has_one_row() -> None:
    """The rows are in the order of the events, with one cell for each state."""
    assert [row[0] for row in states._ROWS] == list(range(EVENTS))
    assert {len(cells) for row in states._ROWS for cells in row[1:]} == {STATES}


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


@pytest.mark.parametrize(
    ("events", "through"),
    [
        ([states.ANSWERED, states.REQUEST_COMPLETE], [DISCARDING, WAITING]),
        ([states.ANSWERED_LAST, states.REQUEST_COMPLETE], [LAST, LAST]),
        (
            [states.ANSWER_BEGUN, states.REQUEST_COMPLETE, states.ANSWER_MADE, states.ANSWERED],
            [ANSWERING_EARLY, ANSWERING, ANSWERING, WAITING],
        ),
        (
            [states.ANSWER_BEGUN, states.ANSWER_MADE, states.ANSWERED, states.REQUEST_COMPLETE],
            [ANSWERING_EARLY, ANSWERING_EARLY, DISCARDING, WAITING],
        ),
        ([states.ANSWERED, states.TOO_MUCH_DISCARDED, states.LINGER_BEGUN], [DISCARDING, LAST, LINGERING]),
        (
            [states.ANSWER_BEGUN, states.REQUEST_COMPLETE, states.PARTS_BEGUN, states.ANSWERED_LAST],
            [ANSWERING_EARLY, ANSWERING, IN_PARTS, LAST],
        ),
        ([states.BAD_REQUEST, states.ANSWERED_LAST, states.CLOSE_BEGUN], [WAITING, LAST, CLOSED]),
    ],
    ids=["at once", "at once, the last", "later", "before its body", "a body without end", "in parts", "no HTTP"],
)
def test_the_way_of_a_request(events: list[int], through: list[int]) -> None:
    """A request passes through these states."""
    assert list(itertools.accumulate(events, after, initial=WAITING))[1:] == through


def test_bytes_are_parsed_while_the_connection_is_open() -> None:
    """While an answer comes in parts or the connection lingers, bytes are counted; once it is closed, they are dropped."""
    actions = [action(state, states.DATA) for state in range(STATES)]
    assert actions == [states.PARSE] * len(OPEN) + [states.NOTHING, states.COUNT, states.COUNT, states.NOTHING]


def test_a_caller_that_sends_no_more() -> None:
    """Gets the answers it asked for; without any, the connection closes."""
    for state in range(STATES):
        asked = state in (ANSWERING_EARLY, ANSWERING)
        assert action(state, states.EOF) == (states.FINISH if asked else states.CLOSE)
        assert action(state, states.EOF_AHEAD) == (states.FINISH if state in OPEN else states.CLOSE)
