"""What uvicorn gets as its protocol."""

from __future__ import annotations

from flagsvc.http.server import Limits, front
from support.aio import asynchronous
from support.frontkit import State, serving


@asynchronous
async def test_connections_of_one_server_share_a_site() -> None:
    """And those of another server do not; each connection asks for the service anew."""
    given = [serving().service, serving().service]
    make = front(lambda: given[0], Limits())
    state = State()
    first, second = make(None, state, {}), make(config=None, server_state=state, app_state={}, _loop=None)
    given.reverse()
    third = make(None, State(), {})
    assert first.site is second.site and first.names is second.names
    assert third.site is not first.site and third.names is not first.names
    assert first.service is second.service is given[1] and third.service is given[0]


@asynchronous
async def test_draining() -> None:
    """From then on every answer is the last of its connection, on those that are there and on those that come, of any server."""
    given = serving().service
    make = front(lambda: given, Limits())
    state = State()
    there = make(None, state, {})
    make.drain()
    come, other = make(None, state, {}), make(None, State(), {})
    assert there.site.ending and come.site.ending and other.site.ending
    assert not (there.site.stopping or other.site.stopping)


@asynchronous
async def test_draining_before_the_first_connection() -> None:
    """It holds for those that come."""
    given = serving().service
    make = front(lambda: given, Limits())
    make.drain()
    assert make(None, State(), {}).site.ending
