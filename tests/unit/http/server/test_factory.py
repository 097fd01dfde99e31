"""What uvicorn gets as its protocol."""

from __future__ import annotations

from flagsvc.http.server import ConnectionFactory, ConnectionLimits
from support.aio import asynchronous
from support.frontkit import State, serving


@asynchronous
async def test_connections_of_one_server_share_a_state() -> None:
    """Connections of one server share their state; those of another server do not. Each connection asks for the contract."""
    given = [serving().service, serving().service]
    make = ConnectionFactory(lambda: given[0], ConnectionLimits())
    state = State()
    first, second = make(None, state, {}), make(config=None, server_state=state, app_state={}, _loop=None)
    given.reverse()
    third = make(None, State(), {})
    assert first.shared is second.shared and first.parser.names is second.parser.names
    assert third.shared is not first.shared and third.parser.names is not first.parser.names
    assert first.contract is second.contract is given[1] and third.contract is given[0]


@asynchronous
async def test_the_number_of_answers() -> None:
    """It counts the answers on all connections of the server, from 0 on."""
    given = serving().service
    make = ConnectionFactory(lambda: given, ConnectionLimits())
    assert make.answered == 0
    connection = make(None, State(), {})
    connection.shared.answered += 2
    assert make.answered == 2


@asynchronous
async def test_draining() -> None:
    """After `drain`, every answer is the last of its connection, on existing and new connections of any server."""
    given = serving().service
    make = ConnectionFactory(lambda: given, ConnectionLimits())
    state = State()
    there = make(None, state, {})
    make.drain()
    come, other = make(None, state, {}), make(None, State(), {})
    assert there.shared.draining and come.shared.draining and other.shared.draining
    assert not (there.shared.times.stopping or other.shared.times.stopping)


@asynchronous
async def test_draining_before_the_first_connection() -> None:
    """It holds for those that come."""
    given = serving().service
    make = ConnectionFactory(lambda: given, ConnectionLimits())
    make.drain()
    assert make(None, State(), {}).shared.draining
