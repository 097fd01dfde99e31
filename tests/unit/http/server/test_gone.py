"""The work on an answer ends when its caller is gone (decision 0005)."""

from __future__ import annotations

import asyncio
from typing import Any

from flagsvc.http.server import ConnectionLimits
from flagsvc.testing import turns
from support.aio import until
from support.frontkit import dial, get, open_connections, serving

CALLERS = 100
ASKED = get("/proxy?userId=somebody")


async def test_the_enricher_ends_with_its_caller() -> None:
    """A connection that is lost takes its task and its enricher along; another's go on."""
    given = serving(slow=True)
    before = len(asyncio.all_tasks())
    lines = open_connections(given, CALLERS)
    for line in lines:
        line.send(ASKED)
    await until(lambda: given.waiting == CALLERS)
    for line in lines[1:]:
        line.lose()
    await until(lambda: len(asyncio.all_tasks()) == before + 2)
    state: Any = lines[0].connection.shared.server
    assert len(state.tasks) == 1 and len(state.connections) == 1
    given.gate.set()
    await turns()
    assert lines[0].answers() == [200] and given.log.lines == []
    assert given.left == CALLERS - 1


async def test_who_sends_no_more_may_be_gone() -> None:
    """Its answer has a second more to be made; each answer that it asked for has."""
    given = serving(slow=True)
    line = dial(given, ConnectionLimits(half_closed_s=2)).send(ASKED * 2)
    await until(lambda: given.waiting == 1)
    line.tick(50)
    assert line.connection.eof_received() is True
    line.tick(2)
    await turns()
    assert not line.transport.over
    given.gate.set()
    await until(lambda: line.transport.data.count(b"HTTP/1.1 200") == 2)
    assert line.transport.closed
    gone = dial(serving(slow=True), ConnectionLimits(half_closed_s=2)).send(ASKED)
    await turns()
    assert gone.connection.eof_received() is True
    gone.tick(3)
    await turns()
    assert gone.transport.aborted and gone.transport.data == b""
    assert not gone.connection.shared.server.tasks
