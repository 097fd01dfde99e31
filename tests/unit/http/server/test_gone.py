"""The work on an answer ends when its caller is gone (decision 0005)."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any

import pytest

from flagsvc.http.server import ConnectionLimits
from flagsvc.testing import turns
from support.aio import until
from support.frontkit import Serving, dial, get, open_connections, serving
from support.waiting import wait_until
from unit.http.server.test_end import dialled, loop, served

__all__ = ["loop"]

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


async def test_work_that_somebody_else_has_taken_over_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs in a thread, say, is not taken back."""
    given = serving()
    line = dial(given)
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    line.connection.wait(future)
    line.lose()
    assert not future.cancelled()
    future.set_result(given.service.early_refusal(400))
    await turns()
    assert line.transport.data == b""


def reset(connection: socket.socket) -> None:
    """Close a connection with a reset, so that the other side notices."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@pytest.mark.parametrize("how", ["reset", "close"])
def test_tasks_and_connections_of_callers_that_gave_up(how: str, loop: str) -> None:
    """They are as before within seconds, however long the enricher may take. Another caller is answered meanwhile."""
    given: Serving = serving(slow=True)
    with served(given, limits=ConnectionLimits(connections=CALLERS, tick_s=0.05, half_closed_s=0.05), loop=loop) as (port, server):
        state: Any = server.server_state
        callers = [dialled(port) for _ in range(CALLERS)]
        for caller in callers:
            caller.sendall(ASKED)
        wait_until(lambda: given.waiting == CALLERS)
        for caller in callers:
            reset(caller) if how == "reset" else caller.close()
        wait_until(lambda: not state.tasks and not state.connections)
        wait_until(lambda: given.left == CALLERS)
        with dialled(port) as other:
            other.sendall(get("/proxy/health", "Connection: close"))
            assert other.recv(100).startswith(b"HTTP/1.1 200")
