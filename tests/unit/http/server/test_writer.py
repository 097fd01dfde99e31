"""When answers are written: those of one turn of the loop together, and never out of order."""

from __future__ import annotations

import asyncio

import pytest

from flagsvc.http.server.writer import MAX_ANSWERS, MAX_BYTES
from support.aio import asynchronous
from support.frontkit import KEYED, Serving, get, head, open_connections, parse_answers, serving

HEALTH = get("/proxy/health")
MIDDLING = {
    "version": 2,
    "features": [{"name": f"on-{n:05}", "enabled": True, "strategies": [{"name": "default"}]} for n in range(500)],
}
"""A document whose answer is of some size, and still copied behind its head."""
LARGE = {
    "version": 2,
    "features": [{"name": f"on-{n:05}", "enabled": True, "strategies": [{"name": "default"}]} for n in range(2_000)],
}
"""A document whose answer is written beside its head."""


class Crowd:
    """Connections to one server."""

    def __init__(self, given: Serving, number: int) -> None:
        self.members = [(line.connection, line.transport) for line in open_connections(given, number)]

    def ask(self, data: bytes) -> None:
        """Send the same on every connection."""
        for connection, _ in self.members:
            connection.data_received(data)

    def statuses(self) -> list[list[int]]:
        """Return what every connection got."""
        return [
            [status for status, _, _ in parse_answers(data, ["GET"] * data.count(b"HTTP/1.1 "))]
            for data in (bytes(transport.data) for _, transport in self.members)
        ]


@asynchronous
async def test_answers_of_one_turn_go_out_at_its_end() -> None:
    """Nothing is written while other connections may still be answered; when the loop has turned everything is, once each."""
    callers = Crowd(serving(), 3)
    callers.ask(HEALTH * 2)
    assert callers.statuses() == [[], [], []]
    await asyncio.sleep(0)
    assert callers.statuses() == [[200, 200]] * 3
    assert [transport.writes for _, transport in callers.members] == [1, 1, 1]
    callers.ask(HEALTH)
    await asyncio.sleep(0)
    assert callers.statuses() == [[200, 200, 200]] * 3


@asynchronous
async def test_many_answers_do_not_wait_for_more() -> None:
    """At this number of answers, all are written within the turn."""
    callers = Crowd(serving(), MAX_ANSWERS + 1)
    callers.ask(HEALTH)
    assert callers.statuses() == [[200]] * MAX_ANSWERS + [[]]
    await asyncio.sleep(0)
    assert callers.statuses()[-1] == [200]


@asynchronous
async def test_many_bytes_do_not_wait_for_more() -> None:
    """At this number of bytes, all are written within the turn."""
    given = serving(MIDDLING)
    callers = Crowd(given, 20)
    callers.ask(get())
    sent = [len(transport.data) for _, transport in callers.members]
    assert sent[0] > 0 and sent[-1] == 0
    together = next(number for number in range(20) if sum(sent[:number]) >= MAX_BYTES)
    assert sent.index(0) % together == 0
    await asyncio.sleep(0)
    assert callers.statuses() == [[200]] * 20


@asynchronous
async def test_a_large_answer_does_not_overtake_a_small_one() -> None:
    """Ready answers of the same connection are written first."""
    callers = Crowd(serving(LARGE), 1)
    callers.ask(HEALTH + get() + HEALTH)
    await asyncio.sleep(0)
    _, transport = callers.members[0]
    answers = parse_answers(bytes(transport.data), ["GET"] * 3)
    assert [status for status, _, _ in answers] == [200, 200, 200]
    assert [len(body) > 65_536 for _, _, body in answers] == [False, True, False]


@asynchronous
async def test_a_word_to_go_on_does_not_overtake_an_answer() -> None:
    """The answer before comes first."""
    callers = Crowd(serving(), 1)
    callers.ask(HEALTH + head("POST /proxy HTTP/1.1", KEYED, "Content-Length: 2", "Expect: 100-continue"))
    _, transport = callers.members[0]
    assert transport.data.startswith(b"HTTP/1.1 200") and transport.data.endswith(b"HTTP/1.1 100 Continue\r\n\r\n")


@asynchronous
@pytest.mark.parametrize(
    ("last", "lingers"), [(get("/proxy/health", "Connection: close"), False), (b"nonsense\r\n\r\n", True)]
)
async def test_the_last_answer_is_written_before_the_end(last: bytes, lingers: bool) -> None:
    """The answer is written whether the connection closes at once or lingers."""
    callers = Crowd(serving(), 1)
    _, transport = callers.members[0]
    callers.ask(HEALTH + last)
    assert (transport.ended, transport.closed) == (lingers, not lingers)
    assert callers.statuses() == [[200, 400 if lingers else 200]]


@asynchronous
async def test_callers_who_are_gone_do_not_disturb_others() -> None:
    """An answer to a connection that was lost, is being closed or was cut off meanwhile is dropped; the others get theirs."""
    callers = Crowd(serving(), 4)
    callers.ask(HEALTH)
    (lost, _), (_, closing), (cut, aborted), (_, other) = callers.members
    lost.connection_lost(None)
    closing.closed = True
    cut.abort()
    await asyncio.sleep(0)
    assert aborted.aborted
    assert callers.statuses() == [[], [], [], [200]] and other.writes == 1
