"""The life of a connection as a table: state × event → state, action. No I/O, no clock, no parser. Compiled.

A connection has two states. The parser's state tells what of a request has arrived (`NEW` to `BROKEN`). The connection's state
tells how far its answer and its end are (`WAITING` to `CLOSED`); the table is about this one. Both are integers, and a cell of the
table is one byte: a request looks up three cells.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, u8

# What the caller has sent of a request. They are in order: from HEAD on a request has begun.
NEW: Final = 0
"""Nothing of the connection's first request has arrived."""
IDLE: Final = 1
"""The last request is complete, and nothing of the next one has arrived."""
HEAD: Final = 2
"""A part of the head has arrived."""
BODY: Final = 3
"""The head has arrived, and perhaps a part of the body."""
COMPLETE: Final = 4
"""The request is complete, and the connection has not continued with the next one."""
BROKEN: Final = 5
"""The bytes are not HTTP, or too many. The start of the next request is unknown, so nothing more is parsed."""

# The connection. They are in order: up to DISCARDING bytes are parsed, up to ANSWERING the connection is open. From LAST on no
# request follows.
WAITING: Final = 0
"""The connection waits for a request, or for the rest of a request whose body is needed."""
DISCARDING: Final = 1
"""The answer is written. The rest of the request is read and discarded."""
ANSWERING_EARLY: Final = 2
"""The answer is being made, and the request is incomplete."""
ANSWERING: Final = 3
"""The answer is being made, and the request is complete."""
LAST: Final = 4
"""The last answer is written, or no answer is due. The connection is to end in order."""
IN_PARTS: Final = 5
"""The head of the last answer is written. Its body comes in parts, for as long as the program and the caller want."""
LINGERING: Final = 6
"""Nothing more is written. Received bytes are discarded, so that the caller can read the answer."""
CLOSED: Final = 7
"""The transport is closed, or will be when everything is sent."""
STATES: Final = 8

# What can happen to it.
DATA: Final = 0
"""Bytes arrived."""
ANSWER_BEGUN: Final = 1
"""The contract makes the answer later."""
ANSWER_MADE: Final = 2
"""The answer that was waited for is ready."""
ANSWERED: Final = 3
"""An answer is written, and the connection stays open."""
ANSWERED_LAST: Final = 4
"""An answer is written that is the last of its connection."""
REQUEST_COMPLETE: Final = 5
"""The last byte of a request arrived, and its answer is written or being made."""
TOO_MUCH_DISCARDED: Final = 6
"""The caller sends too much of a body that is discarded."""
BAD_REQUEST: Final = 7
"""The bytes are not HTTP, or the head is too large."""
MEMORY_SHORT: Final = 8
"""All connections together hold too much, and this connection holds more than most."""
EOF: Final = 9
"""The caller sends no more, and all its bytes are parsed."""
EOF_AHEAD: Final = 10
"""The caller sends no more, and some of its bytes are not parsed yet."""
SHUTDOWN: Final = 11
"""The server ends, and no request waits for its answer."""
LINGER_BEGUN: Final = 12
"""Our half of the connection is closed."""
CLOSE_BEGUN: Final = 13
"""The transport was told to close."""
LOST: Final = 14
"""The transport is lost."""
TICK: Final = 15
"""Time has passed."""
PARTS_BEGUN: Final = 16
"""The head of an answer in parts is written."""
EVENTS: Final = 17

# What the connection does then.
NOTHING: Final = 0
PARSE: Final = 1
"""Parse the bytes; hold those that must wait."""
COUNT: Final = 2
"""Discard the bytes, and count them."""
REPLY: Final = 3
"""Write the answer that is ready."""
FINISH: Final = 4
"""Answer all requests, then close."""
SETTLE: Final = 5
"""End after the last answer."""
CLOSE: Final = 6
"""Close when everything is sent."""
ABORT: Final = 7
"""Close at once."""
CHECK_READING: Final = 8
"""Check whether the request, or the pause before it, takes too long."""
CHECK_ANSWER: Final = 9
"""Check whether an answer takes too long for a caller that may have gone."""
CHECK_LINGER: Final = 10
"""Check whether lingering takes too long."""
CHECK_WRITING: Final = 11
"""Check whether the caller reads the answer."""

_SHIFT: Final = 4
_MASK: Final = 15

_Row = tuple[int, tuple[int, ...], tuple[int, ...]]

_STAYS: Final = (WAITING, DISCARDING, ANSWERING_EARLY, ANSWERING, LAST, IN_PARTS, LINGERING, CLOSED)
_CLOSES: Final = (CLOSED, CLOSED, CLOSED, CLOSED, CLOSED, CLOSED, CLOSED, CLOSED)
_NOTHING: Final = (NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING)

# A row: the event; the state after it and the action, for each state before it.
_ROWS: Final[tuple[_Row, ...]] = (
    # state before:    WAITING, DISCARDING, ANSWERING_EARLY, ANSWERING, LAST, IN_PARTS, LINGERING, CLOSED
    (DATA, _STAYS, (PARSE, PARSE, PARSE, PARSE, NOTHING, COUNT, COUNT, NOTHING)),
    (
        ANSWER_BEGUN,
        (ANSWERING_EARLY, DISCARDING, ANSWERING_EARLY, ANSWERING, LAST, IN_PARTS, LINGERING, CLOSED),
        _NOTHING,
    ),
    (ANSWER_MADE, _STAYS, (NOTHING, NOTHING, REPLY, REPLY, NOTHING, NOTHING, NOTHING, NOTHING)),
    (ANSWERED, (DISCARDING, DISCARDING, DISCARDING, WAITING, LAST, IN_PARTS, LINGERING, CLOSED), _NOTHING),
    (ANSWERED_LAST, (LAST, LAST, LAST, LAST, LAST, LAST, LINGERING, CLOSED), _NOTHING),
    (REQUEST_COMPLETE, (WAITING, WAITING, ANSWERING, ANSWERING, LAST, IN_PARTS, LINGERING, CLOSED), _NOTHING),
    (TOO_MUCH_DISCARDED, (WAITING, LAST, ANSWERING_EARLY, ANSWERING, LAST, IN_PARTS, LINGERING, CLOSED), _NOTHING),
    (
        BAD_REQUEST,  # a request that has its answer gets no second one
        (WAITING, LAST, ANSWERING_EARLY, ANSWERING, LAST, IN_PARTS, LINGERING, CLOSED),
        (REPLY, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING),
    ),
    (MEMORY_SHORT, _STAYS, (REPLY, REPLY, ABORT, ABORT, ABORT, ABORT, ABORT, ABORT)),
    (EOF, _STAYS, (CLOSE, CLOSE, FINISH, FINISH, CLOSE, CLOSE, CLOSE, CLOSE)),
    (EOF_AHEAD, _STAYS, (FINISH, FINISH, FINISH, FINISH, CLOSE, CLOSE, CLOSE, CLOSE)),
    (
        SHUTDOWN,
        (LAST, LAST, ANSWERING_EARLY, ANSWERING, LAST, IN_PARTS, LINGERING, CLOSED),
        (SETTLE, SETTLE, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING),
    ),
    (
        LINGER_BEGUN,
        (LINGERING, LINGERING, LINGERING, LINGERING, LINGERING, LINGERING, LINGERING, CLOSED),
        _NOTHING,
    ),
    (CLOSE_BEGUN, _CLOSES, _NOTHING),
    (LOST, _CLOSES, _NOTHING),
    (
        TICK,
        _STAYS,
        (CHECK_READING, CHECK_READING, CHECK_ANSWER, CHECK_ANSWER, NOTHING, NOTHING, CHECK_LINGER, CHECK_WRITING),
    ),
    (PARTS_BEGUN, (WAITING, DISCARDING, IN_PARTS, IN_PARTS, LAST, IN_PARTS, LINGERING, CLOSED), _NOTHING),
)


def _flat() -> bytes:
    """Return the table with one byte for each cell: the action above the state."""
    cells = bytearray(EVENTS * STATES)
    for event, states, actions in _ROWS:
        for before in range(STATES):
            cells[event * STATES + before] = actions[before] << _SHIFT | states[before]
    return bytes(cells)


TABLE: Final[bytes] = _flat()
"""The table as `cell` reads it. It has every pair of state and event."""


def cell(state: u8, event: i64) -> i64:
    """Return the cell for an event in a state. `state_of` and `action_of` split it."""
    return TABLE[event * STATES + i64(state)]


def state_of(found: i64) -> u8:
    """Return the state after an event."""
    return u8(found & _MASK)


def action_of(found: i64) -> i64:
    """Return the action after an event."""
    return found >> _SHIFT
