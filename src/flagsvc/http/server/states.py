"""The life of a connection as a table: state × event → state, action. No I/O, no clock, no parser. Compiled.

A connection has two states. What the caller has sent of a request is the parser's (`NEW` to `BROKEN`). How far the answer is,
and how far the connection is on its way to its end, is the connection's (`WAITING` to `CLOSED`); the table is about that one.
Both are plain integers, and a cell of the table is one byte: a request looks up three of them.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, u8

# What the caller has sent of a request. They are in order: from HEAD on a request has begun.
NEW: Final = 0
"""Nothing of the connection's first request."""
IDLE: Final = 1
"""Nothing of the next request; the last one is complete."""
HEAD: Final = 2
"""A part of the head."""
BODY: Final = 3
"""The head, and perhaps a part of the body."""
COMPLETE: Final = 4
"""All of it; the connection has not gone on to the next request yet."""
BROKEN: Final = 5
"""Something that is no HTTP or too large: where the next request begins is unknown, and nothing more is parsed."""

# The connection. They are in order: up to DISCARDING bytes are parsed, up to ANSWERING the connection is open.
WAITING: Final = 0
"""For a request, or for the rest of one that needs its body."""
DISCARDING: Final = 1
"""The answer is written; the rest of the request is read and thrown away."""
ANSWERING_EARLY: Final = 2
"""The answer is being made, and the request is not complete."""
ANSWERING: Final = 3
"""The answer is being made, and the request is complete."""
LAST: Final = 4
"""The last answer is written, or there is none to write: what is left is to end well."""
LINGERING: Final = 5
"""Nothing more is written. What the caller still sends is thrown away, so that it gets to read the answer."""
CLOSED: Final = 6
"""The transport is closed, or will be when what was written is sent."""
STATES: Final = 7

# What can happen to it.
DATA: Final = 0
"""Bytes came."""
ANSWER_BEGUN: Final = 1
"""The contract makes the answer later."""
ANSWER_MADE: Final = 2
"""The answer that was waited for is there."""
ANSWERED: Final = 3
"""An answer is written, and the connection goes on."""
ANSWERED_LAST: Final = 4
"""An answer is written that says it is the last."""
REQUEST_COMPLETE: Final = 5
"""The last byte of a request came, and its answer is written or being made."""
TOO_MUCH_DISCARDED: Final = 6
"""The caller goes on sending a body that is thrown away."""
BAD_REQUEST: Final = 7
"""What came is no HTTP, or its head is too large."""
MEMORY_SHORT: Final = 8
"""All connections together hold too much, and this is one of those that hold most."""
EOF: Final = 9
"""The caller sends no more, and all that it sent is parsed."""
EOF_AHEAD: Final = 10
"""The caller sends no more, and what it sent before is not parsed yet."""
SHUTDOWN: Final = 11
"""The server ends, and nothing of a request is there that still needs its answer."""
LINGER_BEGUN: Final = 12
"""Our half of the connection is closed."""
CLOSE_BEGUN: Final = 13
"""The transport was told to close."""
LOST: Final = 14
"""The transport is gone."""
TICK: Final = 15
"""Time went on."""
EVENTS: Final = 16

# What the connection does then.
NOTHING: Final = 0
PARSE: Final = 1
"""Parse the bytes; hold those that have to wait."""
COUNT: Final = 2
"""Count the bytes that are thrown away."""
REPLY: Final = 3
"""Write the answer that is there."""
FINISH: Final = 4
"""Answer everything that was asked, then close."""
SETTLE: Final = 5
"""End after the last answer."""
CLOSE: Final = 6
"""Close when what was written is sent."""
ABORT: Final = 7
"""Close at once."""
CHECK_READING: Final = 8
"""Look whether the request, or the pause before it, takes too long."""
CHECK_ANSWER: Final = 9
"""Look whether an answer takes too long for a caller that may be gone."""
CHECK_LINGER: Final = 10
"""Look whether lingering takes too long."""
CHECK_WRITING: Final = 11
"""Look whether the caller takes what was written."""

_SHIFT: Final = 4
_MASK: Final = 15

_Row = tuple[int, tuple[int, ...], tuple[int, ...]]

_STAYS: Final = (WAITING, DISCARDING, ANSWERING_EARLY, ANSWERING, LAST, LINGERING, CLOSED)
_CLOSES: Final = (CLOSED, CLOSED, CLOSED, CLOSED, CLOSED, CLOSED, CLOSED)
_NOTHING: Final = (NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING)

# A row: the event; the state after it and the action, for each state before it.
_ROWS: Final[tuple[_Row, ...]] = (
    # state before:    WAITING, DISCARDING, ANSWERING_EARLY, ANSWERING, LAST, LINGERING, CLOSED
    (DATA, _STAYS, (PARSE, PARSE, PARSE, PARSE, NOTHING, COUNT, NOTHING)),
    (ANSWER_BEGUN, (ANSWERING_EARLY, DISCARDING, ANSWERING_EARLY, ANSWERING, LAST, LINGERING, CLOSED), _NOTHING),
    (ANSWER_MADE, _STAYS, (NOTHING, NOTHING, REPLY, REPLY, NOTHING, NOTHING, NOTHING)),
    (ANSWERED, (DISCARDING, DISCARDING, DISCARDING, WAITING, LAST, LINGERING, CLOSED), _NOTHING),
    (ANSWERED_LAST, (LAST, LAST, LAST, LAST, LAST, LINGERING, CLOSED), _NOTHING),
    (REQUEST_COMPLETE, (WAITING, WAITING, ANSWERING, ANSWERING, LAST, LINGERING, CLOSED), _NOTHING),
    (TOO_MUCH_DISCARDED, (WAITING, LAST, ANSWERING_EARLY, ANSWERING, LAST, LINGERING, CLOSED), _NOTHING),
    (
        BAD_REQUEST,  # a request that has its answer gets no second one
        (WAITING, LAST, ANSWERING_EARLY, ANSWERING, LAST, LINGERING, CLOSED),
        (REPLY, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING),
    ),
    (MEMORY_SHORT, _STAYS, (REPLY, REPLY, ABORT, ABORT, ABORT, ABORT, ABORT)),
    (EOF, _STAYS, (CLOSE, CLOSE, FINISH, FINISH, CLOSE, CLOSE, CLOSE)),
    (EOF_AHEAD, _STAYS, (FINISH, FINISH, FINISH, FINISH, CLOSE, CLOSE, CLOSE)),
    (
        SHUTDOWN,
        (LAST, LAST, ANSWERING_EARLY, ANSWERING, LAST, LINGERING, CLOSED),
        (SETTLE, SETTLE, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING),
    ),
    (LINGER_BEGUN, (LINGERING, LINGERING, LINGERING, LINGERING, LINGERING, LINGERING, CLOSED), _NOTHING),
    (CLOSE_BEGUN, _CLOSES, _NOTHING),
    (LOST, _CLOSES, _NOTHING),
    (
        TICK,
        _STAYS,
        (CHECK_READING, CHECK_READING, CHECK_ANSWER, CHECK_ANSWER, NOTHING, CHECK_LINGER, CHECK_WRITING),
    ),
)


def _flat() -> bytes:
    """Return the table with one byte a cell: the action above the state."""
    cells = bytearray(EVENTS * STATES)
    for event, states, actions in _ROWS:
        for before in range(STATES):
            cells[event * STATES + before] = actions[before] << _SHIFT | states[before]
    return bytes(cells)


TABLE: Final[bytes] = _flat()
"""What follows from each event in each state, as `cell` finds it. Every pair is there."""


def cell(state: u8, event: i64) -> i64:
    """Return what follows from an event: `state_of` and `action_of` take it apart."""
    return TABLE[event * STATES + i64(state)]


def state_of(found: i64) -> u8:
    """Return the state after an event."""
    return u8(found & _MASK)


def action_of(found: i64) -> i64:
    """Return the action after an event."""
    return found >> _SHIFT
